/** Parses `context_management` of a request in all spellings, and encodes it for providers with native compaction. */
import { isObject, wrongValue, type JsonObject, type JsonValue } from 'sluice';

/** Compaction that a client requests, in neutral form. */
export interface RequestedCompaction {
  /** Tokens from which on the context is compacted. Absent: the gateway's own threshold. */
  readonly threshold?: number;
  /** The client's prompt for the summary, in place of the gateway's. */
  readonly instructions?: string;
  /** The reply ends with the compaction: nothing is generated. */
  readonly pause?: boolean;
}

/** Content of `context_management`. */
export interface ContextManagement {
  readonly compaction?: RequestedCompaction;
  /** Paths of what is not supported: edits that clear single items, unknown strategies. */
  readonly lost: readonly string[];
}

const field = 'context_management';

/** Reads the value of `context_management`. Throws 400 for fields of the wrong type. */
export function readContextManagement(value: JsonValue | undefined): ContextManagement {
  if (value === undefined || value === null) return { lost: [] };
  if (typeof value === 'string') return fromWord(value, field);
  if (Array.isArray(value)) return firstOf((value as readonly JsonValue[]).map(fromEntry));
  if (!isObject(value)) throw wrongValue(field, 'an array of objects, or an object');
  if (Array.isArray(value.edits))
    return firstOf(
      (value.edits as readonly JsonValue[]).map((edit, index) => fromEdit(edit, `${field}.edits[${index}]`)),
    );
  if (typeof value.strategy === 'string') return fromWord(value.strategy, `${field}.strategy`);
  if (isObject(value.compaction))
    return { compaction: withThreshold(value.compaction, `${field}.compaction`), lost: [] };
  if (value.type === undefined || value.type === 'compaction')
    return { compaction: withThreshold(value, field), lost: [] };
  return fromWord(String(value.type), `${field}.type`);
}

/** Returns `context_management` as providers with native compaction take it. */
export function officialForm({ threshold }: RequestedCompaction): readonly JsonObject[] {
  return [{ type: 'compaction', ...(threshold === undefined ? {} : { compact_threshold: threshold }) }];
}

/** Reads the name of a strategy. No specification lists the names, so that an unknown one is dropped and is no error. */
function fromWord(word: string, path: string): ContextManagement {
  if (word === 'auto' || word === 'compaction') return { compaction: {}, lost: [] };
  return { lost: word === 'none' || word === 'disabled' ? [] : [path] };
}

function fromEntry(entry: JsonValue, index: number): ContextManagement {
  const path = `${field}[${index}]`;
  if (!isObject(entry)) throw wrongValue(path, 'an object');
  if (entry.type === 'none') return { lost: [] };
  if (entry.type === 'compaction') return { compaction: withThreshold(entry, path), lost: [] };
  return fromEdit(entry, path);
}

/** Parses an edit of the Messages API: `compact_…` requests compaction. `clear_…` removes old content, and is not supported. */
function fromEdit(edit: JsonValue, at: string): ContextManagement {
  if (!isObject(edit) || typeof edit.type !== 'string') throw wrongValue(at, 'an object with a type');
  if (edit.type.startsWith('clear_')) return { lost: [at] };
  if (!edit.type.startsWith('compact_')) throw wrongValue(`${at}.type`, 'compaction');
  const { trigger, instructions, pause_after_compaction: pause } = edit;
  const value = isObject(trigger) ? trigger.value : undefined;
  return {
    compaction: {
      ...(typeof value === 'number' ? { threshold: tokens(value, `${at}.trigger.value`) } : {}),
      ...(typeof instructions === 'string' && instructions !== '' ? { instructions } : {}),
      ...(pause === true ? { pause } : {}),
    },
    lost: [],
  };
}

function withThreshold(entry: JsonObject, path: string): RequestedCompaction {
  for (const name of ['compact_threshold', 'threshold']) {
    const value = entry[name];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'number') throw wrongValue(`${path}.${name}`, 'a number of tokens');
    return { threshold: tokens(value, `${path}.${name}`) };
  }
  return {};
}

function tokens(value: number, path: string): number {
  if (!Number.isInteger(value) || value < 1) throw wrongValue(path, 'a whole number of tokens, at least 1');
  return value;
}

function firstOf(all: readonly ContextManagement[]): ContextManagement {
  const compaction = all.find((one) => one.compaction !== undefined)?.compaction;
  const lost = all.flatMap((one) => one.lost);
  return compaction === undefined ? { lost } : { compaction, lost };
}

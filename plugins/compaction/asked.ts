import { isObject, wrongValue, type JsonObject, type JsonValue } from 'sluice';

/** A wish for compaction, whichever of its spellings the client used. */
export interface Wish {
  /** Tokens of context from which on it is compacted; absent: whatever the server thinks right. */
  readonly threshold?: number;
  /** What the summary shall hold, in the client's words instead of the gateway's. */
  readonly instructions?: string;
  /** The reply ends with the compaction: nothing is generated. */
  readonly pause?: boolean;
}

/** What `context_management` asks for. */
export interface Asked {
  readonly wish?: Wish;
  /** Paths of what nothing here can do: edits that clear single items, strategies of other names. */
  readonly lost: readonly string[];
}

const field = 'context_management';

/** What is asked for under {@link field}. Throws 400 for fields of the wrong type. */
export function readAsked(value: JsonValue | undefined): Asked {
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
    return { wish: withThreshold(value.compaction, `${field}.compaction`), lost: [] };
  if (value.type === undefined || value.type === 'compaction')
    return { wish: withThreshold(value, field), lost: [] };
  return fromWord(String(value.type), `${field}.type`);
}

/** The wish in the words of the providers that compact by themselves. */
export function officialForm({ threshold }: Wish): readonly JsonObject[] {
  return [{ type: 'compaction', ...(threshold === undefined ? {} : { compact_threshold: threshold }) }];
}

/** Words are not settled anywhere: one that is not known here is no mistake, only something that is not done. */
function fromWord(word: string, path: string): Asked {
  if (word === 'auto' || word === 'compaction') return { wish: {}, lost: [] };
  return { lost: word === 'none' || word === 'disabled' ? [] : [path] };
}

function fromEntry(entry: JsonValue, index: number): Asked {
  const path = `${field}[${index}]`;
  if (!isObject(entry)) throw wrongValue(path, 'an object');
  if (entry.type === 'none') return { lost: [] };
  if (entry.type === 'compaction') return { wish: withThreshold(entry, path), lost: [] };
  return fromEdit(entry, path);
}

/** The edits of the messages family: one of them compacts, the others clear what has grown old. */
function fromEdit(edit: JsonValue, at: string): Asked {
  if (!isObject(edit) || typeof edit.type !== 'string') throw wrongValue(at, 'an object with a type');
  if (edit.type.startsWith('clear_')) return { lost: [at] };
  if (!edit.type.startsWith('compact_')) throw wrongValue(`${at}.type`, 'compaction');
  const { trigger, instructions, pause_after_compaction: pause } = edit;
  const value = isObject(trigger) ? trigger.value : undefined;
  return {
    wish: {
      ...(typeof value === 'number' ? { threshold: tokens(value, `${at}.trigger.value`) } : {}),
      ...(typeof instructions === 'string' && instructions !== '' ? { instructions } : {}),
      ...(pause === true ? { pause } : {}),
    },
    lost: [],
  };
}

function withThreshold(entry: JsonObject, path: string): Wish {
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

function firstOf(all: readonly Asked[]): Asked {
  const wish = all.find((one) => one.wish !== undefined)?.wish;
  const lost = all.flatMap((one) => one.lost);
  return wish === undefined ? { lost } : { wish, lost };
}

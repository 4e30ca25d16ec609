/** Seals a compacted context, so that only the gateway can read it. */
import { GatewayError, isObject, type JsonObject, type JsonValue, type Sealer } from 'sluice';
import type { Item } from './items.ts';

const purpose = 'compaction';

/** Content of a compaction item. Only the gateway reads it. */
export interface Compacted {
  /** The model that wrote the summary. */
  readonly model: string;
  readonly summary: string;
  /** Items that go on word for word behind the summary: the last turn, or calls that still want an output. */
  readonly kept: readonly Item[];
  /**
   * How many items of the context this one stands for. A context that still has that many in front of it has them a second time. Absent
   * where the client was told what to keep in front.
   */
  readonly covers?: number;
}

/** Returns the item that a client keeps and sends back. */
export function compactionItem(sealer: Sealer, owner: string, id: string, compacted: Compacted): Item {
  const { model, summary, kept, covers } = compacted;
  const value: JsonObject = { v: 1, model, summary, kept, ...(covers === undefined ? {} : { covers }) };
  return { id, type: 'compaction', encrypted_content: sealer.seal(purpose, owner, value) };
}

/** Returns the text that replaces the summarised items in the context. */
export function asContext({ summary, kept }: Pick<Compacted, 'summary' | 'kept'>): readonly Item[] {
  return [
    { type: 'message', role: 'developer', content: [{ type: 'input_text', text: preamble + summary }] },
    ...kept,
  ];
}

const preamble =
  'The conversation up to here was compacted to save room. This summary, written by the assistant, replaces it; go on from where it ends.\n\n';

/** Returns true for the message that an opened compaction has become. */
export function isSummary(item: Item | undefined): boolean {
  const parts = item?.role === 'developer' && Array.isArray(item.content) ? item.content : [];
  const [part] = parts as readonly JsonValue[];
  return isObject(part) && typeof part.text === 'string' && part.text.startsWith(preamble);
}

/** Services for opening the compaction items of one request. */
export interface Opening {
  readonly sealer: Sealer;
  readonly owner: string;
  /** True where the channel speaks this format: a blob that no gateway made is its provider's own, and goes on as it is. */
  readonly native: boolean;
}

/** Returns the items with the gateway's own compactions opened; the same array when there are none. Throws 400 for one that does not open. */
export function opened(items: readonly Item[], opening: Opening): readonly Item[] {
  if (!items.some(isCompaction)) return items;
  let context: Item[] = [];
  let changed = false;
  for (const [index, item] of items.entries()) {
    const compacted = isCompaction(item) ? open(item, index, opening) : undefined;
    if (compacted === undefined) {
      context.push(item);
      continue;
    }
    const { covers } = compacted;
    if (covers !== undefined && index >= covers) context = [];
    for (const one of asContext(compacted)) context.push(one);
    changed = true;
  }
  return changed ? context : items;
}

/** Returns true for a compaction item. Some clients send it back under an older name. */
function isCompaction({ type }: Item): boolean {
  return type === 'compaction' || type === 'compaction_summary';
}

/** Returns undefined for a provider's own. */
function open(item: Item, index: number, opening: Opening): Compacted | undefined {
  const { encrypted_content: text } = item;
  const { sealer, owner, native } = opening;
  if (typeof text === 'string') {
    const value = sealer.open(purpose, owner, text);
    if (value !== undefined) return compactedOf(value);
  }
  if (native && !(typeof text === 'string' && sealer.made(text))) return undefined;
  const path = `input[${index}].encrypted_content`;
  throw new GatewayError(
    'invalid_request',
    `${path} cannot be decrypted: it was changed, or was created by another gateway or for another caller.`,
    { param: path },
  );
}

function compactedOf({ model, summary, kept, covers }: JsonObject): Compacted {
  return {
    model: typeof model === 'string' ? model : '',
    summary: typeof summary === 'string' ? summary : '',
    kept: Array.isArray(kept) ? (kept as readonly JsonValue[]).filter(isObject) : [],
    ...(typeof covers === 'number' ? { covers } : {}),
  };
}

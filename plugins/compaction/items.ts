/**
 * Items of the Responses API in a context: their kinds and estimated tokens, and the place where a context is cut into a part to summarise and a
 * part to keep.
 */
import { isObject, type JsonObject, type JsonValue } from 'sluice';

/** An item of a request's `input`. */
export type Item = JsonObject;

/** Returns the items of a request's `input`: a plain text is one user message, and entries that are no objects are left out. */
export function itemsOf(body: JsonObject): readonly Item[] {
  const { input } = body;
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }];
  return Array.isArray(input) ? (input as readonly JsonValue[]).filter(isObject) : [];
}

/** Returns true for a message of the user, also in the short form without `type`. */
export function isUserMessage(item: Item): boolean {
  return (item.type === undefined || item.type === 'message') && item.role === 'user';
}

/** Returns true for a call that needs an output: of a function, a shell, a patch and so on. Calls of hosted tools have no `call_id`. */
export function isCall({ type, call_id: id }: Item): boolean {
  return typeof type === 'string' && type.endsWith('_call') && typeof id === 'string';
}

/** Returns true for the output of a call. */
export function isOutput({ type }: Item): boolean {
  return typeof type === 'string' && type.endsWith('_output');
}

/** Returns the id by which an output names its call: `call_id`, or `id` in the oldest form. */
export function callOf(output: Item): string {
  const { call_id: call, id } = output;
  return typeof call === 'string' ? call : typeof id === 'string' ? id : '';
}

/** Returns the calls without an output. They must stay, because their outputs may come with the next request. */
export function openCalls(items: readonly Item[]): readonly Item[] {
  const answered = new Set(items.filter(isOutput).map(callOf));
  return items.filter((item) => isCall(item) && !answered.has(callOf(item)));
}

const charactersPerToken = 4;
/** Characters that an image or a file counts as, whatever the length of its base64. */
const dataCharacters = 4_000;
const shortData = 8_192;
const media: ReadonlySet<unknown> = new Set(['input_image', 'input_file', 'computer_screenshot']);

/** Estimates the tokens of a value from its characters, to decide how much of a context is kept. */
export function weigh(value: JsonValue | undefined): number {
  return Math.ceil(characters(value) / charactersPerToken);
}

function characters(value: JsonValue | undefined): number {
  if (typeof value === 'string')
    return value.length > shortData && value.startsWith('data:') ? dataCharacters : value.length + 2;
  if (Array.isArray(value)) {
    let sum = 0;
    for (const one of value as readonly JsonValue[]) sum += characters(one);
    return sum;
  }
  if (!isObject(value)) return 4;
  if (media.has(value.type)) return dataCharacters;
  let sum = 0;
  for (const key in value) sum += key.length + 4 + characters(value[key]);
  return sum;
}

/** Factor by which an estimate may be wrong, because characters per token differ between languages and code. */
const uncertainty = 4;

/**
 * Returns true when the request has more than `threshold` tokens. They are counted only where the estimate is too close, because counting takes
 * long.
 */
export async function exceeds(
  threshold: number,
  body: JsonObject,
  count: () => Promise<number>,
): Promise<boolean> {
  const guess = weigh(body);
  if (guess * uncertainty <= threshold) return false;
  return guess > threshold * uncertainty || (await count()) > threshold;
}

/** The two parts of a context: `head` is summarised, `kept` stays as it is. */
export interface Split {
  readonly head: readonly Item[];
  readonly kept: readonly Item[];
}

/**
 * Cuts a context before its last user message. Where an agent has worked for long since then, later, so that about `budget` tokens stay:
 * the user's message stays too. No call is parted from its output or from the reasoning that led to it. Undefined when nothing would be
 * in front of the cut.
 */
export function split(items: readonly Item[], budget: number): Split | undefined {
  const user = items.findLastIndex(isUserMessage);
  // Right behind the message nothing would be gained: it stays in either case.
  const cuts = possibleCuts(items).filter((cut) => cut >= user && (user < 0 || cut !== user + 1));
  const last = cuts.at(-1);
  if (last === undefined) return undefined;
  const weights = tailWeights(items);
  const cut = cuts.find((one) => (weights[one] ?? 0) <= budget) ?? last;
  if (cut <= 0) return undefined;
  const message = items[user];
  const kept = items.slice(cut);
  return { head: items.slice(0, cut), kept: cut > user && message !== undefined ? [message, ...kept] : kept };
}

/** Returns the indexes at which a context can be cut without separating a call from its output, or reasoning from what it led to. */
function possibleCuts(items: readonly Item[]): readonly number[] {
  const open = new Set<string>();
  const cuts: number[] = [0];
  for (const [index, item] of items.entries()) {
    if (isCall(item)) open.add(callOf(item));
    else if (isOutput(item)) open.delete(callOf(item));
    if (open.size === 0 && item.type !== 'reasoning') cuts.push(index + 1);
  }
  return cuts;
}

/** Returns, for each index, the estimated tokens of all items from there on. */
function tailWeights(items: readonly Item[]): readonly number[] {
  const weights: number[] = Array.from({ length: items.length + 1 }, () => 0);
  for (let index = items.length - 1; index >= 0; index -= 1)
    weights[index] = (weights[index + 1] ?? 0) + weigh(items[index]);
  return weights;
}

/** Returns the newest user messages, in order, that weigh no more than `budget` together: in full form, each with an id. */
export function userMessages(
  items: readonly Item[],
  budget: number,
  idOf: (index: number) => string,
): readonly Item[] {
  const chosen: Item[] = [];
  let weight = 0;
  for (const item of items.filter(isUserMessage).toReversed()) {
    weight += weigh(item);
    if (weight > budget) break;
    chosen.push(item);
  }
  return chosen.toReversed().map(({ id, content, ...rest }, index) => ({
    ...rest,
    id: typeof id === 'string' ? id : idOf(index),
    type: 'message',
    status: 'completed',
    role: 'user',
    content: typeof content === 'string' ? [{ type: 'input_text', text: content }] : content,
  }));
}

import { isObject, type JsonObject, type JsonValue } from 'sluice';

/** An item of a request's `input`. What is not even an object is refused before it comes here. */
export type Item = JsonObject;

/** The context as items: a plain text is one user message. */
export function itemsOf(body: JsonObject): readonly Item[] {
  const { input } = body;
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }];
  return Array.isArray(input) ? (input as readonly JsonValue[]).filter(isObject) : [];
}

/** True for a message of the user; the easy form has no type. */
export function isUserMessage(item: Item): boolean {
  return (item.type === undefined || item.type === 'message') && item.role === 'user';
}

/** True for a call that wants an output: of a function, a shell, a patch and so on. Records of hosted tools have none. */
export function isCall({ type, call_id: id }: Item): boolean {
  return typeof type === 'string' && type.endsWith('_call') && typeof id === 'string';
}

/** True for what a call gave. */
export function isOutput({ type }: Item): boolean {
  return typeof type === 'string' && type.endsWith('_output');
}

/** The id by which an output names its call: `call_id`, or `id` in the oldest form. */
export function callOf(output: Item): string {
  const { call_id: call, id } = output;
  return typeof call === 'string' ? call : typeof id === 'string' ? id : '';
}

/** Calls that have no output yet: their outputs may come with the next request, and mean nothing without them. */
export function openCalls(items: readonly Item[]): readonly Item[] {
  const answered = new Set(items.filter(isOutput).map(callOf));
  return items.filter((item) => isCall(item) && !answered.has(callOf(item)));
}

const charactersPerToken = 4;
/** What an image or a file in the request is taken for, whatever its length in base64. */
const dataCharacters = 4_000;
const shortData = 8_192;
const media: ReadonlySet<unknown> = new Set(['input_image', 'input_file', 'computer_screenshot']);

/** A rough number of tokens, for deciding how much of the context stays as it is. */
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

/** How far a rough number may be off: languages and code differ by as much. */
const uncertainty = 4;

/** Whether the request has more tokens than this. They are counted only where a rough number does not settle it: counting many takes long. */
export async function exceeds(
  threshold: number,
  body: JsonObject,
  count: () => Promise<number>,
): Promise<boolean> {
  const guess = weigh(body);
  if (guess * uncertainty <= threshold) return false;
  return guess > threshold * uncertainty || (await count()) > threshold;
}

/** A context in two: what a summary will stand for, and what stays word for word. */
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

/** Places where no call in front waits for an output behind, and no reasoning stands alone. The end is one, where no call is open. */
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

/** For each index what all items from there on weigh together. */
function tailWeights(items: readonly Item[]): readonly number[] {
  const weights: number[] = Array.from({ length: items.length + 1 }, () => 0);
  for (let index = items.length - 1; index >= 0; index -= 1)
    weights[index] = (weights[index + 1] ?? 0) + weigh(items[index]);
  return weights;
}

/** The newest user messages, in order, that weigh no more than `budget` together: in full form, each with an id. */
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

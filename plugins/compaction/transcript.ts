import { isObject, type JsonObject, type JsonValue } from 'sluice';
import { callOf, isCall, isOutput, type Item } from './items.ts';

/** Maximum length in characters of the text of one call or result in the summary's input. Head and tail are kept. */
const longestEntry = { head: 15_000, tail: 5_000 };

/** Types of items without content for a summary, or with content only for the model that wrote it. */
const left: ReadonlySet<unknown> = new Set([
  'reasoning',
  'additional_tools',
  'configuration_update',
  'compaction_trigger',
]);

/** Types of items that only their own provider can read. They stay unchanged, and only such a provider is called. */
const verbatim: ReadonlySet<unknown> = new Set(['compaction', 'item_reference']);

/**
 * Returns the conversation as messages that every model can read. Calls and results become text: several providers refuse them in a request that
 * offers no tools, and none are offered to a model that shall only summarise.
 */
export function transcript(items: readonly Item[]): readonly Item[] {
  const names = new Map<string, string>();
  for (const item of items) if (isCall(item)) names.set(callOf(item), nameOf(item));
  return items.flatMap((item) => written(item, names));
}

function written(item: Item, names: ReadonlyMap<string, string>): readonly Item[] {
  const { type } = item;
  if (type === undefined || type === 'message') return messageOf(item);
  if (verbatim.has(type)) return [item];
  if (left.has(type)) return [];
  if (isOutput(item)) return [outputOf(item, names.get(callOf(item)) ?? nameOf(item))];
  return [messageItem('assistant', `[called ${nameOf(item)}] ${inputOf(item)}`)];
}

function messageOf({ role, content }: Item): readonly Item[] {
  if (role !== 'assistant') return content === undefined ? [] : [{ type: 'message', role, content }];
  const text = textOf(content);
  return text === '' ? [] : [messageItem('assistant', text)];
}

function outputOf(item: Item, name: string): Item {
  const { output } = item;
  const parts = Array.isArray(output) ? (output as readonly JsonValue[]).filter(isObject) : [];
  const media = parts.filter(({ type }) => type === 'input_image' || type === 'input_file');
  const text = parts.length > 0 ? textOf(parts) : typeof output === 'string' ? output : rest(item);
  const whole = `[result of ${name}] ${shortened(text)}`;
  if (media.length === 0) return messageItem('user', whole);
  return { type: 'message', role: 'user', content: [{ type: 'input_text', text: whole }, ...media] };
}

function messageItem(role: 'user' | 'assistant', content: string): Item {
  return { type: 'message', role, content };
}

function nameOf({ name, type }: Item): string {
  return typeof name === 'string' ? name : String(type).replace(/_(call|output)$/, '');
}

function inputOf(item: Item): string {
  const { arguments: json, input } = item;
  return shortened(typeof json === 'string' ? json : typeof input === 'string' ? input : rest(item));
}

/** Returns an item without what only its format needs. */
function rest({ id: _id, call_id: _call, type: _type, status: _status, ...fields }: JsonObject): string {
  return JSON.stringify(fields);
}

/** Returns the text of a message's content, or of its parts. */
function textOf(content: JsonValue | readonly JsonObject[] | undefined): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return (content as readonly JsonValue[])
    .map((part) => (isObject(part) ? (part.text ?? part.refusal) : undefined))
    .filter((text) => typeof text === 'string')
    .join('\n');
}

function shortened(text: string): string {
  const { head, tail } = longestEntry;
  if (text.length <= head + tail) return text;
  return `${text.slice(0, head)}\n[… ${text.length - head - tail} characters left out …]\n${text.slice(-tail)}`;
}

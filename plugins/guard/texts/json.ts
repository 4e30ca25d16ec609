/** Replaces strings in JSON values and in JSON texts. Values in which nothing changes stay the same objects. */
import { parseJson, type JsonObject, type JsonValue } from 'sluice';
import { JsonText } from '../patterns/json-text.ts';

/** Receives a text and its path, and returns the replacement. */
export type MapText = (text: string, at: string) => string;

/** Returns a JSON value with its strings replaced, and with a string in place of each number whose digits change. */
export function mapStrings(value: JsonValue, at: string, map: MapText): JsonValue {
  if (typeof value === 'string') return map(value, at);
  if (typeof value === 'number') {
    const text = String(value);
    const changed = map(text, at);
    return changed === text ? value : changed;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return mapItems(value, (item, index) => mapStrings(item, `${at}[${index}]`, map));
  return mapMembers(value as JsonObject, (member, name) => mapStrings(member, `${at}.${name}`, map));
}

/** Members of format-specific parts whose strings are content. Other members have ids, types and encrypted data. */
const wordMembers =
  /^(?:text|content|title|query|queries|input|arguments|output|outputs|code|stdout|stderr|result|results|response|args|snippet|quote|cited_text|context|summary|instructions|name|description|reasoning|thought|transcript|markdown|revised_?prompt|error|message|word|action|command|commands|parts|segments|words|pages)$/i;

/** Returns a format-specific part with its content replaced. */
export function mapWords(value: JsonValue, at: string, map: MapText): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return mapItems(value, (item, index) => mapWords(item, `${at}[${index}]`, map));
  return mapMembers(value as JsonObject, (member, name) => {
    const path = `${at}.${name}`;
    if (typeof member === 'string') return wordMembers.test(name) ? map(member, path) : member;
    const isListOfTexts = Array.isArray(member) && member.every((item) => typeof item === 'string');
    return isListOfTexts && wordMembers.test(name)
      ? mapStrings(member, path, map)
      : mapWords(member, path, map);
  });
}

/**
 * Returns JSON text with its strings, names and numbers changed, as {@link JsonText} does; what is no JSON, or nests too deeply, is one text.
 */
export function mapJsonText(text: string, map: (text: string) => string): string {
  if (!isJson(text)) return map(text);
  const json = new JsonText(() => {
    let whole = '';
    return {
      push(part) {
        whole += part;
        return '';
      },
      end: () => (whole === '' ? '' : map(whole)),
    };
  });
  return json.push(text) + json.end();
}

function isJson(text: string): boolean {
  try {
    parseJson(text);
    return true;
  } catch {
    return false;
  }
}

/** Returns the items changed; the same array where none has. */
export function mapItems<Item>(items: readonly Item[], map: (item: Item, index: number) => Item): Item[] {
  const changed = items.map(map);
  return changed.some((item, index) => item !== items[index]) ? changed : (items as Item[]);
}

/** Returns an object with its members changed; the same object where none has. */
export function mapMembers(
  value: JsonObject,
  map: (member: JsonValue, name: string) => JsonValue,
): JsonValue {
  const entries = Object.entries(value);
  const changed = entries.map(([name, member]): [string, JsonValue | undefined] => [
    name,
    member === undefined ? undefined : map(member, name),
  ]);
  return changed.some(([, member], index) => member !== entries[index]?.[1])
    ? Object.fromEntries(changed)
    : value;
}

/** `instructions` and `truncation`, which may be objects. */
import { wrongType, wrongValue } from '../../sdk/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { given, optionalString } from '../_shared/check.ts';
import { setOf } from '../_shared/fields.ts';

const at = 'instructions';
/** Members of the object whose meaning is in the text, or in the place where it stands. */
const members = setOf('type role text content');
const textTypes: ReadonlySet<unknown> = new Set(['input_text', 'output_text', 'text', undefined]);

/**
 * Returns the text of `instructions`; undefined if there is none. The specification also allows an object, with the text as `text` or as
 * `content`, which may be a list of parts; providers accept only text. Throws 400 with the path.
 */
export function readInstructions(value: JsonValue | undefined): string | undefined {
  if (!given(value) || typeof value === 'string') return value ?? undefined;
  if (!isObject(value)) throw wrongType(at, 'a string, or an object with text or content');
  const text = optionalString(value.text, `${at}.text`);
  if (text !== undefined) return text;
  const { content } = value;
  if (!given(content)) throw wrongValue(at, 'a string, or an object with text or content');
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw wrongType(`${at}.content`, 'a string or an array');
  return content.map((part: JsonValue, index) => textOf(part, `${at}.content[${index}]`)).join('\n\n');
}

function textOf(part: JsonValue, path: string): string {
  if (typeof part === 'string') return part;
  if (!isObject(part)) throw wrongType(path, 'an object');
  if (!textTypes.has(part.type ?? undefined)) throw wrongValue(`${path}.type`, 'input_text');
  const text = optionalString(part.text, `${path}.text`);
  if (text === undefined) throw wrongValue(path, 'an object with text');
  return text;
}

/** Paths of what stands beside the text: a string has no room for it. */
export function besideInstructions({ instructions }: JsonObject): readonly string[] {
  if (!isObject(instructions)) return [];
  return Object.keys(instructions).flatMap((key) =>
    members.has(key) || !given(instructions[key]) ? [] : [`${at}.${key}`],
  );
}

/**
 * Returns the value of `truncation`; undefined if it is not set. The specification also allows an object with the value as `type`; `auto`
 * if that is absent. Throws 400.
 */
export function readTruncation(value: JsonValue | undefined): string | undefined {
  if (!given(value) || typeof value === 'string') return value ?? undefined;
  if (!isObject(value)) throw wrongType('truncation', 'a string or an object');
  return value.type === 'disabled' ? value.type : 'auto';
}

/** Returns true if `truncation` requests more than a plain value can express. */
export function isMoreThanWord(truncation: JsonObject): boolean {
  const { type, ...rest } = truncation;
  return (type !== 'auto' && type !== 'disabled') || Object.values(rest).some(given);
}

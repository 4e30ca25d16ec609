/** Decodes `functionResponse` parts of generateContent, and encodes the text of a tool result as their `response` object. */
import { missingValue } from '../../sdk/errors.ts';
import type { Block, TextBlock, ToolResultBlock } from '../../model/chat.ts';
import { parseObject } from '../../json/parse.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { given, jsonText, optionalObject, optionalString, readObjects } from '../_shared/check.ts';
import type { CallPairs } from './request-in/calls.ts';
import type { Leftovers } from '../_shared/extra.ts';
import { formatName, official, leftovers } from './wire.ts';
import { readMedia } from './parts.ts';
import { defined, isText, setOf } from '../_shared/fields.ts';

/** Members of `response` that hold a plain text, by convention. */
const textKeys = setOf('output result error');
const resultFields = setOf('id name response parts');

/** Decodes a part with a `functionResponse`. `at` is the part's path, `extras` already holds the part's unknown fields. Throws 400 with the path. */
export function readResult(
  { functionResponse }: JsonObject,
  at: string,
  extras: Leftovers,
  calls: CallPairs,
): ToolResultBlock {
  const path = `${at}.functionResponse`;
  const result = official(optionalObject(functionResponse, path) ?? {}, 'functionResponse');
  extras.take(result, resultFields, 'functionResponse.');
  const id = optionalString(result.id, `${path}.id`);
  const stated = optionalString(result.name, `${path}.name`);
  if (stated === undefined && id === undefined) throw missingValue(`${path}.name`);
  const pair = calls.result(stated, id);
  if (!isText(id)) extras.put('$noId', true);
  else if (id !== pair.id) extras.put('$id', id);
  const { text, failed } = readResponse(
    optionalObject(result.response, `${path}.response`),
    `${path}.response`,
    extras,
  );
  const files = readObjects(result.parts, `${path}.parts`, decodeFile);
  if (given(result.parts) && files.length === 0) extras.put('$noParts', true);
  return {
    type: 'tool-result',
    id: pair.id,
    ...defined({ name: pair.name }),
    content: text === undefined ? files : [text, ...files],
    ...(failed ? { failed } : {}),
    ...(files.length === 0 && text !== undefined ? { plain: true } : {}),
  };
}

/** Reads `response` as text: its one text member by convention, else compact JSON. */
function readResponse(
  response: JsonObject | undefined,
  path: string,
  extras: Leftovers,
): { readonly text?: TextBlock; readonly failed: boolean } {
  if (response === undefined) {
    extras.put('$noResponse', true);
    return { failed: false };
  }
  const [only = '', second] = Object.keys(response);
  const failed = only === 'error' && second === undefined;
  const alone = second === undefined && textKeys.has(only) ? response[only] : undefined;
  if (typeof alone !== 'string')
    return { text: { type: 'text', text: jsonText(response, path), at: path }, failed };
  extras.put('$key', only);
  return { text: { type: 'text', text: alone, at: `${path}.${only}` }, failed };
}

function decodeFile(value: JsonObject, at: string): Block {
  const part = official(value, 'part');
  const extras = leftovers();
  const inline = given(part.inlineData);
  if (!inline && !given(part.fileData)) return { type: 'opaque', format: formatName, value: part, at };
  const media = readMedia(part, at, extras);
  extras.take(part, new Set([inline ? 'inlineData' : 'fileData']));
  return { ...media, at, ...extras.extra() };
}

/** Encodes a result's text as `response`. JSON of an object is sent as that object; other text under `output`, or `error` when the tool failed. */
export function writeResponse(text: string, failed: boolean, key: JsonValue | undefined): JsonObject {
  if (typeof key === 'string' && textKeys.has(key)) return { [key]: text };
  const parsed = text.trimStart().startsWith('{') ? parseObject(text) : undefined;
  if (failed) return parsed !== undefined && isErrorObject(parsed) ? parsed : { error: text };
  if (parsed === undefined || isConventional(parsed)) return { output: text };
  return parsed;
}

/** Returns true for `{error: {…}}`, which already states that the tool failed. */
function isErrorObject(object: JsonObject): boolean {
  return Object.keys(object).length === 1 && object.error !== undefined && typeof object.error !== 'string';
}

/** Returns true for an object that would be decoded as the text of its one member. */
function isConventional(object: JsonObject): boolean {
  const [only, second] = Object.keys(object);
  if (only === undefined || second !== undefined) return false;
  return only === 'error' || (textKeys.has(only) && typeof object[only] === 'string');
}

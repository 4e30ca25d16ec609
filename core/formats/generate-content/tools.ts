import { missing, wrongType } from '../../sdk/errors.ts';
import type { Block, TextBlock, ToolResultBlock } from '../../model/chat.ts';
import { isObject, parseObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { given, optionalArray, optionalObject, optionalString, jsonText } from '../_shared/check.ts';
import type { CallPairs } from './request-in/calls.ts';
import type { Leftovers } from '../_shared/extra.ts';
import { formatName, official, leftovers } from './wire.ts';
import { readMedia } from './parts.ts';
import { setOf } from '../_shared/fields.ts';

/** Members of `response` that hold a plain text, by convention. */
const textKeys = setOf('output result error');

/** A `functionResponse`. `at` is the part's path, `extras` already holds the part's own. Throws 400 with the path. */
export function decodeResult(
  value: JsonValue | undefined,
  at: string,
  calls: CallPairs,
  extras: Leftovers,
): ToolResultBlock {
  const path = `${at}.functionResponse`;
  const result = official(optionalObject(value, path) ?? {}, 'functionResponse');
  extras.take(result, new Set(['id', 'name', 'response', 'parts']), 'functionResponse.');
  const id = optionalString(result.id, `${path}.id`);
  const stated = optionalString(result.name, `${path}.name`);
  if (stated === undefined && id === undefined) throw missing(`${path}.name`);
  const pair = calls.result(stated, id);
  if (id === undefined || id === '') extras.put('$noId', true);
  else if (id !== pair.id) extras.put('$id', id);
  const response = optionalObject(result.response, `${path}.response`);
  const answer = readResponse(response, `${path}.response`, extras);
  const files = optionalArray(result.parts, `${path}.parts`);
  if (files?.length === 0) extras.put('$noParts', true);
  const content: Block[] = answer.text === undefined ? [] : [answer.text];
  for (const [index, file] of (files ?? []).entries())
    content.push(decodeFile(file, `${path}.parts[${index}]`));
  return {
    type: 'tool-result',
    id: pair.id,
    ...(pair.name === undefined ? {} : { name: pair.name }),
    content,
    ...(answer.failed ? { failed: true } : {}),
    ...(content.length === 1 && answer.text !== undefined ? { plain: true } : {}),
    at,
    ...extras.extra(),
  };
}

/** `response` as text: the one text it holds by convention, else compact JSON. */
function readResponse(
  response: JsonObject | undefined,
  path: string,
  extras: Leftovers,
): { readonly text?: TextBlock; readonly failed: boolean } {
  if (response === undefined) {
    extras.put('$noResponse', true);
    return { failed: false };
  }
  const keys = Object.keys(response);
  const [only] = keys;
  const alone = keys.length === 1 && only !== undefined && textKeys.has(only) ? response[only] : undefined;
  if (only !== undefined && typeof alone === 'string') {
    extras.put('$key', only);
    return { text: { type: 'text', text: alone, at: `${path}.${only}` }, failed: only === 'error' };
  }
  return {
    text: { type: 'text', text: jsonText(response, path), at: path },
    failed: only === 'error' && keys.length === 1,
  };
}

function decodeFile(value: JsonValue, at: string): Block {
  if (!isObject(value)) throw wrongType(at, 'an object');
  const part = official(value, 'part');
  const extras = leftovers();
  const inline = given(part.inlineData);
  if (!inline && !given(part.fileData)) return { type: 'opaque', format: formatName, value: part, at };
  const media = readMedia(part, at, extras);
  extras.take(part, new Set([inline ? 'inlineData' : 'fileData']));
  return { ...media, at, ...extras.extra() };
}

/** A result's text as `response`. An object stays one; anything else stands under `output`, or `error` when the tool failed. */
export function writeResponse(text: string, failed: boolean, key: JsonValue | undefined): JsonObject {
  if (typeof key === 'string' && textKeys.has(key)) return { [key]: text };
  const parsed = text.trimStart().startsWith('{') ? parseObject(text) : undefined;
  if (failed) return parsed !== undefined && isErrorObject(parsed) ? parsed : { error: text };
  if (parsed === undefined || isConventional(parsed)) return { output: text };
  return parsed;
}

/** `{error: {…}}`: it already says that the tool failed. */
function isErrorObject(object: JsonObject): boolean {
  return Object.keys(object).length === 1 && object.error !== undefined && typeof object.error !== 'string';
}

/** An object that would not be read as itself on the way back. */
function isConventional(object: JsonObject): boolean {
  const [only, second] = Object.keys(object);
  if (only === undefined || second !== undefined) return false;
  return only === 'error' || (textKeys.has(only) && typeof object[only] === 'string');
}

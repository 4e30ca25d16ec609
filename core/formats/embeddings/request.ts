/** Decodes and encodes requests of `/v1/embeddings`. */
import { unsupportedContent, GatewayError, missingValue, wrongType, wrongValue } from '../../sdk/errors.ts';
import type { EmbedInput, EmbedRequest } from '../../model/embed.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { given, optionalNumber, optionalString, requiredModel } from '../_shared/check.ts';
import { reportForeign } from '../_shared/foreign.ts';
import { extraOf, spellingIn } from '../_shared/spelling.ts';
import type { EncodedRequest, EncodeTarget } from '../../sdk/format.ts';
import { formatName, mostInputs, path, purposeOf } from './wire.ts';

/** Reads and checks a request. */
export function decodeRequest(body: JsonObject): EmbedRequest {
  const { model, input, dimensions, encoding_format: encoding, user, input_type: type, task, ...rest } = body;
  if (given(encoding) && encoding !== 'float' && encoding !== 'base64')
    throw wrongValue('encoding_format', '"float" or "base64"');
  const length = optionalNumber(dimensions, 'dimensions', { min: 1, integer: true });
  const endUser = optionalString(user, 'user');
  const purpose = purposeOf(type) ?? purposeOf(task);
  // The official API has no field for the purpose of vectors; other vendors of this format use one of two.
  const purposeFields: JsonObject = {
    ...(type === undefined ? {} : { input_type: type }),
    ...(task === undefined ? {} : { task }),
  };
  // The spelling is kept for channels of this format, and is not reported as dropped elsewhere.
  const spelled: JsonObject = {
    ...(purpose === undefined ? {} : { purpose: purposeFields }),
    ...(given(encoding) ? { encoding } : {}),
    ...(isList(input) ? {} : { single: true }),
  };
  return {
    operation: 'embed',
    format: formatName,
    model: requiredModel(model),
    inputs: readInputs(input),
    ...(length === undefined ? {} : { dimensions: length }),
    ...(purpose === undefined ? {} : { purpose }),
    ...(endUser === undefined ? {} : { user: endUser }),
    ...extraOf(formatName, purpose === undefined ? { ...rest, ...purposeFields } : rest, spelled),
  };
}

/** Returns true for several inputs. A single text, or a list of tokens, is one input. */
function isList(input: JsonValue | undefined): boolean {
  return Array.isArray(input) && !isTokens(input as readonly JsonValue[]);
}

/** Returns the number of inputs in a body; undefined where it has none. */
export function countInputs({ input }: JsonObject): number | undefined {
  if (!given(input)) return undefined;
  return Array.isArray(input) && isList(input as readonly JsonValue[]) ? input.length : 1;
}

function readInputs(input: JsonValue | undefined): readonly EmbedInput[] {
  if (!given(input)) throw missingValue('input');
  if (typeof input === 'string') return [textInput(input, 'input')];
  if (!Array.isArray(input)) throw wrongType('input', 'a string, a list of strings, or tokens');
  const list = input as readonly JsonValue[];
  if (list.length === 0) throw wrongValue('input', 'a list with at least one entry');
  if (isTokens(list)) return [tokenInput(list, 'input')];
  if (list.length > mostInputs) throw wrongValue('input', `a list of at most ${mostInputs} entries`);
  return list.map((one, index) => {
    const at = `input[${index}]`;
    if (typeof one === 'string') return textInput(one, at);
    if (Array.isArray(one)) return tokenInput(one as readonly JsonValue[], at);
    if (isObject(one)) return { type: 'opaque', format: formatName, value: one };
    throw wrongType(at, 'a string, or a list of tokens');
  });
}

function isTokens(list: readonly JsonValue[]): boolean {
  return list.length > 0 && typeof list[0] === 'number';
}

function textInput(text: string, at: string): EmbedInput {
  if (text === '') throw wrongValue(at, 'a string that is not empty');
  return { type: 'text', text };
}

function tokenInput(tokens: readonly JsonValue[], at: string): EmbedInput {
  if (tokens.length === 0) throw wrongValue(at, 'a list of tokens that is not empty');
  const wrong = tokens.findIndex((token) => !Number.isInteger(token) || (token as number) < 0);
  if (wrong >= 0) throw wrongType(`${at}[${wrong}]`, 'a token: an integer from 0 on');
  return { type: 'tokens', tokens: tokens as readonly number[] };
}

/** Writes a request for a provider. */
export function encodeRequest(request: EmbedRequest, { model, drop }: EncodeTarget): EncodedRequest {
  const { inputs, dimensions, purpose, title, user, extra, format } = request;
  reportForeign(extra, formatName, undefined, drop);
  if (format !== formatName && purpose !== undefined) drop('taskType');
  if (title !== undefined) drop('title');
  const { single, encoding, purpose: spelledPurpose } = spellingIn(extra, formatName);
  const written = inputs.map((input, index) => {
    reportForeign(input.extra, formatName, `requests[${index}]`, drop);
    return writeInput(input, `input[${index}]`);
  });
  return {
    path,
    body: {
      model,
      input:
        single === true || (format !== formatName && written.length === 1) ? (written[0] ?? '') : written,
      ...(encoding === undefined ? {} : { encoding_format: encoding }),
      ...(dimensions === undefined ? {} : { dimensions }),
      ...(user === undefined ? {} : { user }),
      ...(isObject(spelledPurpose) ? spelledPurpose : {}),
      ...extra?.[formatName],
    },
  };
}

function writeInput(input: EmbedInput, at: string): JsonValue {
  switch (input.type) {
    case 'text':
      return input.text;
    case 'tokens':
      return input.tokens;
    default:
      if (input.format === formatName) return input.value;
      throw unsupportedContent(at, 'content other than text', formatName);
  }
}

/**
 * Returns the text of an input, for providers that take nothing else. Throws a 400 error that names the input.
 *
 * @example
 * const texts = request.inputs.map(requireText);
 */
export function requireText(input: EmbedInput, index: number): string {
  if (input.type === 'text') return input.text;
  throw new GatewayError(
    'unsupported_content',
    `input[${index}]: the channel for this model embeds only text.`,
    { param: `input[${index}]` },
  );
}

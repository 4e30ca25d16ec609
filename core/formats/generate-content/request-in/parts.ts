import { missing, wrongType } from '../../../sdk/errors.ts';
import type { Block, ReasoningBlock, TextBlock } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { brokenArguments } from '../../_shared/call-arguments.ts';
import {
  given,
  optionalArray,
  optionalObject,
  optionalString,
  requiredString,
  jsonText,
} from '../../_shared/check.ts';
import type { CallPairs } from './calls.ts';
import { decodeResult } from '../tools.ts';
import { dataFields, formatName, official, leftovers, structures } from '../wire.ts';
import { readDetail, readMedia } from '../parts.ts';
import { readSignature } from '../reasoning.ts';
import { setOf } from '../../_shared/fields.ts';

/** Metadata that becomes a member of the block, by the kind of data. */
const textMeta = setOf('text thought thoughtSignature');
const callMeta = setOf('functionCall thoughtSignature');
const inlineMeta = setOf('inlineData mediaResolution');
const fileMeta = setOf('fileData mediaResolution');
const resultMeta = setOf('functionResponse');

/** One part as a block. Parts that only this format has are opaque. Throws 400 with the path. */
export function decodePart(value: JsonValue, at: string, calls: CallPairs): Block {
  if (!isObject(value)) throw wrongType(at, 'an object');
  const part = official(value, 'part');
  switch (dataField(part)) {
    case 'text':
      return decodeText(part, at);
    case 'inlineData':
    case 'fileData':
      return decodeMedia(part, at);
    case 'functionCall':
      return decodeCall(part, at, calls);
    case 'functionResponse': {
      const extras = leftovers().take(part, resultMeta);
      return decodeResult(part.functionResponse, at, calls, extras);
    }
    default:
      return { type: 'opaque', format: formatName, value: part, at };
  }
}

/** The one field that holds the data; `text` also for a part with nothing but metadata, undefined for one that is not understood. */
export function dataField(part: JsonObject): (typeof dataFields)[number] | undefined {
  const fields = dataFields.filter((field) => given(part[field]));
  const [first, second] = fields;
  if (second !== undefined)
    return fields.length === 2 && first === 'text' && part.text === '' ? second : undefined;
  if (first !== undefined) return first;
  return Object.keys(part).every((key) => structures.part.known.has(key)) ? 'text' : undefined;
}

function decodeText(part: JsonObject, at: string): TextBlock | ReasoningBlock {
  const extras = leftovers().take(part, textMeta);
  const text = optionalString(part.text, `${at}.text`);
  if (text === undefined) extras.put('$noText', true);
  const thought = part.thought === true;
  if (part.thought === false) extras.put('thought', false);
  const signature = optionalString(part.thoughtSignature, `${at}.thoughtSignature`);
  return {
    type: thought ? 'reasoning' : 'text',
    text: text ?? '',
    ...(signature === undefined ? {} : { proof: readSignature(signature) }),
    at,
    ...extras.extra(),
  };
}

function decodeMedia(part: JsonObject, at: string): Block {
  const extras = leftovers();
  const media = readMedia(part, at, extras);
  extras.take(part, given(part.inlineData) ? inlineMeta : fileMeta);
  const detail = readDetail(part.mediaResolution);
  if (detail === undefined && given(part.mediaResolution))
    extras.put('mediaResolution', part.mediaResolution);
  return { ...media, ...(detail === undefined ? {} : { detail }), at, ...extras.extra() };
}

function decodeCall(part: JsonObject, at: string, calls: CallPairs): Block {
  const path = `${at}.functionCall`;
  const call = official(optionalObject(part.functionCall, path) ?? {}, 'functionCall');
  const extras = leftovers()
    .take(part, callMeta)
    .take(call, new Set(['id', 'name', 'args']), 'functionCall.');
  const name = requiredString(call.name, `${path}.name`);
  const id = optionalString(call.id, `${path}.id`);
  if (id === undefined || id === '') extras.put('$noId', true);
  const args = optionalObject(call.args, `${path}.args`);
  if (args === undefined) extras.put('$noArgs', true);
  const signature = optionalString(part.thoughtSignature, `${at}.thoughtSignature`);
  return {
    type: 'tool-call',
    id: calls.call(name, id),
    name,
    input: args === undefined ? '' : (brokenArguments(args) ?? jsonText(args, `${path}.args`)),
    ...(signature === undefined ? {} : { proof: readSignature(signature) }),
    at,
    ...extras.extra(),
  };
}

/** The parts of a content; a single part in place of the list is tolerated. Throws 400 with the path. */
export function decodeParts(value: JsonValue | undefined, at: string, calls: CallPairs): readonly Block[] {
  if (!given(value)) throw missing(at);
  if (isObject(value)) return [decodePart(value, at, calls)];
  return (optionalArray(value, at) ?? []).map((part, index) => decodePart(part, `${at}[${index}]`, calls));
}

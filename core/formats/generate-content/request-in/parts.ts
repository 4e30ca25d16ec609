/** Decodes the parts of a content in a generateContent request. */
import { missingValue, wrongType } from '../../../sdk/errors.ts';
import type { Block } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { brokenArguments } from '../../../json/arguments.ts';
import {
  given,
  optionalArray,
  optionalObject,
  optionalString,
  requiredString,
  jsonText,
} from '../../_shared/check.ts';
import type { CallPairs } from './calls.ts';
import { readResult } from '../tools.ts';
import { dataFields, formatName, official, leftovers, structures } from '../wire.ts';
import { readDetail, readMedia } from '../parts.ts';
import { readSignature } from '../reasoning.ts';
import type { Proof } from '../../../model/extra.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { defined, isText, setOf } from '../../_shared/fields.ts';

/** Reader of parts with one kind of data. */
interface PartReading {
  /** The data, and the metadata that becomes a member of the block. */
  readonly known: ReadonlySet<string>;
  readonly read: (part: JsonObject, at: string, extras: Leftovers, calls: CallPairs) => Block;
}

const readings: { readonly [Field in (typeof dataFields)[number]]?: PartReading } = {
  text: { known: setOf('text thought thoughtSignature'), read: readText },
  inlineData: { known: setOf('inlineData mediaResolution'), read: readMediaPart },
  fileData: { known: setOf('fileData mediaResolution'), read: readMediaPart },
  functionCall: { known: setOf('functionCall thoughtSignature'), read: readCall },
  functionResponse: { known: setOf('functionResponse'), read: readResult },
};

/** Decodes a part as a block. Parts that only this format has become opaque blocks. Throws 400 with the path. */
export function decodePart(value: JsonValue, at: string, calls: CallPairs): Block {
  if (!isObject(value)) throw wrongType(at, 'an object');
  const part = official(value, 'part');
  const field = dataField(part);
  const reading = field === undefined ? undefined : readings[field];
  if (reading === undefined) return { type: 'opaque', format: formatName, value: part, at };
  const extras = leftovers().take(part, reading.known);
  return extras.onto({ ...reading.read(part, at, extras, calls), at });
}

/** Returns the one field that holds the data; `text` also for a part with metadata alone, undefined for a part that is not understood. */
export function dataField(part: JsonObject): (typeof dataFields)[number] | undefined {
  const fields = dataFields.filter((field) => given(part[field]));
  const [first, second] = fields;
  if (second !== undefined)
    return fields.length === 2 && first === 'text' && part.text === '' ? second : undefined;
  if (first !== undefined) return first;
  return Object.keys(part).every((key) => structures.part.known.has(key)) ? 'text' : undefined;
}

function readText(part: JsonObject, at: string, extras: Leftovers): Block {
  const text = optionalString(part.text, `${at}.text`);
  if (text === undefined) extras.put('$noText', true);
  if (part.thought === false) extras.put('thought', false);
  return { type: part.thought === true ? 'reasoning' : 'text', text: text ?? '', ...proofOf(part, at) };
}

function proofOf({ thoughtSignature }: JsonObject, at: string): { readonly proof?: Proof } {
  const signature = optionalString(thoughtSignature, `${at}.thoughtSignature`);
  return signature === undefined ? {} : { proof: readSignature(signature) };
}

function readMediaPart(part: JsonObject, at: string, extras: Leftovers): Block {
  const media = readMedia(part, at, extras);
  const detail = readDetail(part.mediaResolution);
  if (detail === undefined && given(part.mediaResolution))
    extras.put('mediaResolution', part.mediaResolution);
  return { ...media, ...defined({ detail }) };
}

function readCall(part: JsonObject, at: string, extras: Leftovers, calls: CallPairs): Block {
  const path = `${at}.functionCall`;
  const call = official(optionalObject(part.functionCall, path) ?? {}, 'functionCall');
  extras.take(call, callFields, 'functionCall.');
  const name = requiredString(call.name, `${path}.name`);
  const id = optionalString(call.id, `${path}.id`);
  if (!isText(id)) extras.put('$noId', true);
  const args = optionalObject(call.args, `${path}.args`);
  if (args === undefined) extras.put('$noArgs', true);
  const proof = proofOf(part, at);
  return {
    type: 'tool-call',
    id: calls.call(name, id),
    name,
    input: args === undefined ? '' : (brokenArguments(args) ?? jsonText(args, `${path}.args`)),
    ...proof,
  };
}

const callFields = setOf('id name args');

/** Returns the parts of a content; a single part in place of the list is tolerated. Throws 400 with the path. */
export function decodeParts(value: JsonValue | undefined, at: string, calls: CallPairs): readonly Block[] {
  if (!given(value)) throw missingValue(at);
  if (isObject(value)) return [decodePart(value, at, calls)];
  return (optionalArray(value, at) ?? []).map((part, index) => decodePart(part, `${at}[${index}]`, calls));
}

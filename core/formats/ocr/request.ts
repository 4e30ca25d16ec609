/** Requests of the OCR format, in both directions. */
import { missingValue, wrongType, wrongValue } from '../../sdk/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { OcrRequest } from '../../model/ocr.ts';
import type { EncodedRequest, EncodeTarget, Expected } from '../../sdk/format.ts';
import { given, optionalBoolean, optionalNumber, optionalString, requiredModel } from '../_shared/check.ts';
import { fieldsBeside } from '../_shared/fields.ts';
import { reportForeign } from '../_shared/foreign.ts';
import { extraOf } from '../_shared/spelling.ts';
import { formatName, mostPages, path } from './wire.ts';

const flags = ['include_image_base64', 'extract_header', 'extract_footer', 'include_blocks'] as const;
const counts = ['image_limit', 'image_min_size'] as const;
const texts = ['document_annotation_prompt', 'table_format', 'confidence_scores_granularity'] as const;
const schemas = ['bbox_annotation_format', 'document_annotation_format'] as const;

const read: ReadonlySet<string> = new Set(['model', 'document']);

/** Reads and checks a request. Members: `OCRRequest` of @mistralai/mistralai 2.7.0, models/components/ocrrequest. */
export function decodeRequest(body: JsonObject): OcrRequest {
  for (const name of flags) optionalBoolean(body[name], name);
  for (const name of counts) optionalNumber(body[name], name, { min: 0, integer: true });
  for (const name of texts) optionalString(body[name], name);
  for (const name of schemas)
    if (given(body[name]) && !isObject(body[name])) throw wrongType(name, 'an object with a JSON schema');
  const { document } = body;
  if (!given(document)) throw missingValue('document');
  if (!isObject(document)) throw wrongType('document', 'an object');
  const { kind, address } = addressOf(document);
  const pages = kind === 'image_url' ? 1 : pagesOf(body['pages']);
  return {
    operation: 'ocr',
    format: formatName,
    model: requiredModel(body['model']),
    document,
    isAnnotated: schemas.some((name) => given(body[name])),
    ...(address.startsWith('data:') ? { bytes: Math.ceil((address.length * 3) / 4) } : {}),
    ...(pages === undefined ? {} : { pages }),
    ...extraOf(formatName, fieldsBeside(body, read)),
  };
}

/** Returns the source of the document. Throws 400 if there is none, or more than one. */
function addressOf(document: JsonObject): { readonly kind: string; readonly address: string } {
  const kinds = ['document_url', 'image_url', 'file_id'].filter((name) => given(document[name]));
  const [kind, another] = kinds;
  if (kind === undefined) throw missingValue('document.document_url');
  if (another !== undefined) throw wrongValue(`document.${another}`, `absent beside ${kind}`);
  const wanted = kind === 'file_id' ? 'file' : kind;
  if (given(document['type']) && document['type'] !== wanted)
    throw wrongValue('document.type', `"${wanted}" beside ${kind}`);
  const value = document[kind];
  const address = kind === 'image_url' && isObject(value) ? value['url'] : value;
  if (typeof address !== 'string') throw wrongType(`document.${kind}`, 'a string');
  if (kind !== 'file_id' && !/^(?:https?:\/\/|data:)/i.test(address))
    throw wrongValue(`document.${kind}`, 'an http or https address, or a data URL');
  return { kind, address };
}

/** Returns the number of pages that are named: a list, or text such as `0,2-4`. Throws 400 for what names none. */
function pagesOf(value: JsonValue | undefined): number | undefined {
  if (!given(value)) return undefined;
  if (Array.isArray(value)) {
    const list = value as readonly JsonValue[];
    const wrong = list.findIndex(
      (page) => typeof page !== 'number' || !Number.isSafeInteger(page) || page < 0,
    );
    if (wrong >= 0) throw wrongType(`pages[${wrong}]`, 'the number of a page, from 0');
    if (list.length > mostPages) throw wrongValue('pages', `at most ${mostPages} pages`);
    return Math.max(1, list.length);
  }
  if (
    typeof value !== 'string' ||
    value.length > 10_000 ||
    !/^\s*\d{1,6}(-\d{1,6})?(\s*,\s*\d{1,6}(-\d{1,6})?)*\s*$/.test(value)
  )
    throw wrongType('pages', 'a list of numbers, or text such as "0,2-4"');
  const named = value.split(',').reduce((sum, range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return sum + Math.max(1, last - first + 1);
  }, 0);
  return Math.min(mostPages, named);
}

/** Writes the request for a provider. */
export function encodeRequest(request: OcrRequest, { model, drop }: EncodeTarget): EncodedRequest {
  const { document, extra } = request;
  reportForeign(extra, formatName, undefined, drop);
  return { path, body: { model, document, ...extra?.[formatName] } };
}

/** Bytes of one page of a document that holds few images, and of one that holds hardly anything. */
const usualPage = 20_000;
const leastPage = 200;

/**
 * Estimates the maximum usage of reading a document. A document by URL counts with the maximum number of pages, because its pages are
 * unknown.
 */
export function expectedOf({ pages, bytes, isAnnotated }: OcrRequest): Expected {
  const at = (perPage: number): number =>
    pages ?? (bytes === undefined ? mostPages : Math.min(mostPages, Math.ceil(bytes / perPage)));
  const units = (count: number) => ({ pages: count, ...(isAnnotated ? { annotatedPages: count } : {}) });
  return {
    input: 0,
    output: 0,
    units: units(at(usualPage)),
    most: { units: units(at(leastPage)) },
  };
}

/** Decodes and encodes requests of `/v1/rerank`. */
import { missingValue, wrongType, wrongValue } from '../../sdk/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { RerankRequest } from '../../model/rerank.ts';
import {
  given,
  optionalArray,
  optionalBoolean,
  optionalNumber,
  requiredModel,
  requiredString,
} from '../_shared/check.ts';
import { fieldsBeside } from '../_shared/fields.ts';
import { reportForeign } from '../_shared/foreign.ts';
import { extraOf, spellingIn } from '../_shared/spelling.ts';
import type { EncodedRequest, EncodeTarget } from '../../sdk/format.ts';
import { formatName, mostDocuments, mostFields, path } from './wire.ts';

/** Decodes a request, with the field names of both families of providers. Throws 400 with the path. */
export function decodeRequest(body: JsonObject): RerankRequest {
  const { model, query, documents, top_n: topN, top_k: topK, return_documents: returns } = body;
  const wanted =
    optionalNumber(topN, 'top_n', { min: 1, integer: true }) ??
    optionalNumber(topK, 'top_k', { min: 1, integer: true });
  const fields = optionalArray(body.rank_fields, 'rank_fields')?.map((field, index) =>
    requiredString(field, `rank_fields[${index}]`),
  );
  if (fields !== undefined && fields.length > mostFields)
    throw wrongValue('rank_fields', `a list of at most ${mostFields} names`);
  const count = (name: string): number | undefined =>
    optionalNumber(body[name], name, { min: 0, integer: true });
  const chunks = count('max_chunk_per_doc') ?? count('max_chunks_per_doc');
  const tokens = count('max_tokens_per_doc');
  const overlap = count('overlap_tokens');
  return {
    operation: 'rerank',
    format: formatName,
    model: requiredModel(model),
    query: requiredString(query, 'query'),
    documents: readDocuments(documents, fields),
    returnDocuments: optionalBoolean(returns, 'return_documents') ?? false,
    ...(wanted === undefined ? {} : { topN: wanted }),
    ...(fields === undefined ? {} : { rankFields: fields }),
    ...(chunks === undefined ? {} : { maxChunksPerDocument: chunks }),
    ...(tokens === undefined ? {} : { maxTokensPerDocument: tokens }),
    ...(overlap === undefined ? {} : { overlapTokens: overlap }),
    ...extraOf(formatName, fieldsBeside(body, read), spellingOf(body)),
  };
}

/** Fields that limit documents. Their spelling is kept for this format; their values are members of the neutral request. */
const limits = ['max_chunk_per_doc', 'max_chunks_per_doc', 'max_tokens_per_doc', 'overlap_tokens'];

function spellingOf(body: JsonObject): JsonObject {
  return Object.fromEntries(
    limits.flatMap((name) => (Object.hasOwn(body, name) ? [[name, body[name]] as const] : [])),
  );
}

/** Members that are decoded; others go to `extra`. */
const read: ReadonlySet<string> = new Set([
  'model',
  'query',
  'documents',
  'top_n',
  'top_k',
  'return_documents',
  'rank_fields',
  ...limits,
]);

function readDocuments(
  value: JsonValue | undefined,
  fields: readonly string[] | undefined,
): RerankRequest['documents'] {
  const documents = optionalArray(value, 'documents');
  if (documents === undefined) throw missingValue('documents');
  if (documents.length === 0) throw wrongValue('documents', 'a list with at least one document');
  if (documents.length > mostDocuments)
    throw wrongValue('documents', `a list of at most ${mostDocuments} documents`);
  return documents.map((document, index) => {
    const at = `documents[${index}]`;
    if (typeof document === 'string') return document;
    if (!isObject(document)) throw wrongType(at, 'a string, or an object with a text');
    if (fields === undefined && !given(document.image) && typeof document.text !== 'string') {
      if (given(document.text)) throw wrongType(`${at}.text`, 'a string');
      throw missingValue(`${at}.text`);
    }
    return document;
  });
}

/** Encodes a request. `return_documents` is false, because the gateway adds the documents to the reply itself. */
export function encodeRequest(request: RerankRequest, { model, drop }: EncodeTarget): EncodedRequest {
  const { query, documents, topN, rankFields, extra } = request;
  reportForeign(extra, formatName, undefined, drop);
  return {
    path,
    body: {
      model,
      query,
      documents,
      ...(topN === undefined ? {} : { top_n: Math.min(topN, documents.length) }),
      return_documents: false,
      ...(rankFields === undefined ? {} : { rank_fields: rankFields }),
      ...spellingIn(extra, formatName),
      ...extra?.[formatName],
    },
  };
}

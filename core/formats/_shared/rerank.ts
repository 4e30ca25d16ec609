/** Channel kit for rerank: document texts, token estimate for budgets, decoding and sorting of scores. */
import { GatewayError } from '../../sdk/errors.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { RerankRequest, RerankResult, RerankScore } from '../../model/rerank.ts';
import type { Expected } from '../../sdk/format.ts';
import { throwIfError, unusableResponse } from './upstream-error/index.ts';
import { extraOf } from './spelling.ts';
import { noUsage, readTokenUsage } from './usage.ts';

/**
 * Returns the text of a document that is ranked: its `text`, or the fields that the client names, one on each line as `field: value`.
 *
 * @example
 * const texts = request.documents.map((one) => documentText(one, request.rankFields));
 */
export function documentText(document: string | JsonObject, fields: readonly string[] | undefined): string {
  if (typeof document === 'string') return document;
  if (fields === undefined && typeof document.text === 'string') return document.text;
  return Object.entries(document)
    .filter(([field, value]) => value !== undefined && (fields === undefined || fields.includes(field)))
    .map(([field, value]) => `${field}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('\n');
}

/** Maximum number of tokens that providers add around each document and its query. */
const frame = 16;

/**
 * Estimates input tokens for budgets: one token per 4 bytes expected, one token per byte as the upper bound. The query is counted once per
 * document. Output is 0.
 *
 * @example
 * estimate: estimateRerank,
 */
export function estimateRerank({ query, documents, rankFields }: RerankRequest): Expected {
  const queryBytes = Buffer.byteLength(query);
  let bytes = 0;
  for (const document of documents)
    bytes += queryBytes + Buffer.byteLength(documentText(document, rankFields));
  return {
    input: Math.ceil(bytes / 4),
    output: 0,
    most: { input: bytes + frame * documents.length },
  };
}

/**
 * Returns the events of a response with scores: `results` or `data`, a list of objects with `index` and `relevance_score` or `score`; usage
 * in `usage` or `meta`, if there is any. Throws GatewayError when the body is an error or has no list of scores.
 *
 * @example
 * decodeWhole: (body) => decodeRerank(body, 'acme'),
 */
export function decodeRerank(body: JsonObject, format: string): readonly GatewayEvent[] {
  throwIfError(body);
  const { id, results, data, usage, meta, model, object: _, ...rest } = body;
  const list = Array.isArray(results) ? results : data;
  if (!Array.isArray(list)) throw noScores();
  const scores = (list as readonly JsonValue[]).map(scoreOf);
  const billed = isObject(meta) && isObject(meta.billed_units) ? meta.billed_units : {};
  const tokens = isObject(meta) && isObject(meta.tokens) ? meta.tokens : undefined;
  const searchUnits = typeof billed.search_units === 'number' ? billed.search_units : undefined;
  const result: RerankResult = {
    scores,
    ...(typeof id === 'string' ? { id } : {}),
    ...(searchUnits === undefined ? {} : { searchUnits }),
    ...extraOf(format, rest),
  };
  const events: GatewayEvent[] = [
    { type: 'head', id: typeof id === 'string' ? id : '', model: typeof model === 'string' ? model : '' },
    { type: 'result', value: result },
  ];
  const reported = isObject(usage) ? usage : tokens;
  if (reported !== undefined) events.push({ type: 'usage', usage: readTokenUsage(reported, format) });
  // Billed by searches, not by tokens.
  else if (searchUnits !== undefined) events.push({ type: 'usage', usage: noUsage });
  return events;
}

function scoreOf(value: JsonValue): RerankScore {
  if (!isObject(value) || typeof value.index !== 'number') throw noScores();
  const score = value.relevance_score ?? value.score;
  if (typeof score !== 'number' || !Number.isFinite(score)) throw noScores();
  return { index: value.index, score };
}

function noScores(): GatewayError {
  return unusableResponse('sent JSON that is not a list of scores');
}

/**
 * Reports limits on the pieces of documents for which a provider has no word.
 *
 * @example
 * reportRerankLimits(request, target.drop);
 */
export function reportRerankLimits(
  {
    maxChunksPerDocument,
    maxTokensPerDocument,
    overlapTokens,
  }: Pick<RerankRequest, 'maxChunksPerDocument' | 'maxTokensPerDocument' | 'overlapTokens'>,
  drop: (path: string) => void,
): void {
  if (maxChunksPerDocument !== undefined) drop('max_chunks_per_doc');
  if (maxTokensPerDocument !== undefined) drop('max_tokens_per_doc');
  if (overlapTokens !== undefined) drop('overlap_tokens');
}

/** Returns each document once, the best first, ties in the order of the request. Scores of unknown documents are dropped. */
export function rankedScores(scores: readonly RerankScore[], count: number): readonly RerankScore[] {
  const known = new Map<number, RerankScore>();
  for (const score of scores) {
    if (Number.isInteger(score.index) && score.index >= 0 && score.index < count && !known.has(score.index))
      known.set(score.index, score);
  }
  return [...known.values()].toSorted((one, other) => other.score - one.score || one.index - other.index);
}

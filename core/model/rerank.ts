/** Requests to rerank documents and their results, in neutral form. */
import type { Extra } from './extra.ts';
import type { JsonObject } from './json.ts';

/**
 * A request to sort documents by how well they answer a query.
 *
 * @example
 * const encodeRequest = ({ query, documents, rankFields }: RerankRequest, { model }: EncodeTarget) => ({
 *   path: '/rerank',
 *   body: { model, query, texts: documents.map((one) => documentText(one, rankFields)) },
 * });
 */
export interface RerankRequest {
  readonly operation: 'rerank';
  /** The format that the client wrote. */
  readonly format: string;
  readonly model: string;
  readonly query: string;
  /** As the client wrote them: text, or objects with a `text` (or what `rankFields` name). */
  readonly documents: readonly (string | JsonObject)[];
  /** Most results wanted; absent means all. */
  readonly topN?: number;
  /** True if results include their document. */
  readonly returnDocuments: boolean;
  readonly rankFields?: readonly string[];
  readonly maxChunksPerDocument?: number;
  readonly maxTokensPerDocument?: number;
  readonly overlapTokens?: number;
  readonly extra?: Extra;
}

/** Score of one document. */
export interface RerankScore {
  /** In the request's `documents`, from 0. */
  readonly index: number;
  readonly score: number;
}

/**
 * The value of the `result` event of `rerank`: scores in the provider's order. The gateway sorts them and applies `topN`.
 *
 * @example
 * const value: RerankResult = { scores: [{ index: 1, score: 0.9 }, { index: 0, score: 0.2 }] };
 */
export interface RerankResult {
  readonly scores: readonly RerankScore[];
  readonly id?: string;
  /** Billed units other than tokens. */
  readonly searchUnits?: number;
  readonly extra?: Extra;
}

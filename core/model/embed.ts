/** Requests and results of embeddings, in neutral form. */
import type { Extra } from './extra.ts';
import type { JsonObject } from './json.ts';

/**
 * One input to embed: text, the tokens of one provider's tokenizer, or a value that only one format knows.
 *
 * @example
 * const input: EmbedInput = { type: 'text', text: 'hello' };
 */
export type EmbedInput = (
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tokens'; readonly tokens: readonly number[] }
  | { readonly type: 'opaque'; readonly format: string; readonly value: JsonObject }
) & { readonly extra?: Extra };

/**
 * Purpose of the vectors. Some models make different ones for each.
 *
 * @example
 * const words: Partial<Record<EmbedPurpose, string>> = { query: 'search_query', document: 'search_document' };
 */
export type EmbedPurpose =
  | 'query'
  | 'document'
  | 'similarity'
  | 'classification'
  | 'clustering'
  | 'question'
  | 'fact'
  | 'code-query';

/**
 * A request for embeddings, in no vendor's words.
 *
 * @example
 * const encodeRequest = ({ inputs, dimensions }: EmbedRequest, { model }: EncodeTarget) => ({ path: '/embed', body: { model, dimensions, input: inputs.map(requireText) } });
 */
export interface EmbedRequest {
  readonly operation: 'embed';
  /** The format that the client wrote. */
  readonly format: string;
  readonly model: string;
  readonly inputs: readonly EmbedInput[];
  /** Length that the vectors shall have. */
  readonly dimensions?: number;
  readonly purpose?: EmbedPurpose;
  /** Title of the document that is embedded. */
  readonly title?: string;
  /** The end user's identifier. */
  readonly user?: string;
  readonly extra?: Extra;
}

/**
 * A vector: numbers, or the base64 of little-endian 32-bit floats that the provider sent.
 *
 * @example
 * const vector: EmbedVector = [0.12, -0.5];
 */
export type EmbedVector = readonly number[] | string;

/**
 * The value of the `result` event of `embed`: one vector for each input, in their order.
 *
 * @example
 * const value: EmbedResult = { vectors: readVectors(body.vectors) };
 */
export interface EmbedResult {
  readonly vectors: readonly EmbedVector[];
  readonly extra?: Extra;
}

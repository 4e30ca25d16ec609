/** Requests for OCR of documents and their results, in neutral form. */
import type { Extra } from './extra.ts';
import type { JsonObject } from './json.ts';

/**
 * A request to read a document.
 *
 * @example
 * const encodeRequest = ({ document }: OcrRequest, { model }: EncodeTarget) => ({ path: '/ocr', body: { model, document } });
 */
export interface OcrRequest {
  readonly operation: 'ocr';
  /** The format that the client wrote. */
  readonly format: string;
  readonly model: string;
  /** As the client wrote it: an address or a data URL of a document or an image, or a file that the provider keeps. */
  readonly document: JsonObject;
  /** Bytes of a document that is given as a data URL. */
  readonly bytes?: number;
  /** Number of pages that are named; 1 for an image, absent where all pages of a document are read. */
  readonly pages?: number;
  /** True where pages are annotated by a schema, which has a price of its own. */
  readonly isAnnotated: boolean;
  readonly extra?: Extra;
}

/** The value of the `result` event: the reply without its model and usage, as the provider wrote it. */
export interface OcrResult {
  readonly pages: readonly JsonObject[];
  readonly extra?: Extra;
}

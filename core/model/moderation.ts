/** Requests for moderation and their results, in neutral form. */
import type { JsonObject } from './json.ts';
import type { Extra } from './extra.ts';

/**
 * A request to check whether content is harmful. Only one format has it, so that its inputs stay as they were written.
 *
 * @example
 * const encodeRequest = ({ inputs }: ModerationRequest, { model }: EncodeTarget) => ({ path: '/moderations', body: { model, input: inputs } });
 */
export interface ModerationRequest {
  readonly operation: 'moderate';
  /** The format that the client wrote. */
  readonly format: string;
  readonly model: string;
  readonly inputs: readonly (string | JsonObject)[];
  readonly extra?: Extra;
}

/** The value of the `result` event: one verdict for each text, or one for all parts of a mixed input. */
export interface ModerationResult {
  readonly results: readonly JsonObject[];
  readonly id?: string;
  readonly extra?: Extra;
}

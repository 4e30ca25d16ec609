/** Errors of tasks for videos, from what a provider reports. */
import { GatewayError } from '../../sdk/errors.ts';
import type { JsonValue } from '../../model/json.ts';
import type { VideoReport } from '../../model/video.ts';
import { redact } from './redact.ts';

/**
 * Returns the `error` of a VideoReport from the provider's code (text or a number) and sentence.
 *
 * @example
 * const error = videoError(body.error_code, body.error_message);
 */
export function videoError(
  code: JsonValue | undefined,
  message: JsonValue | undefined,
): NonNullable<VideoReport['error']> {
  return {
    code: typeof code === 'string' || typeof code === 'number' ? String(code) : 'generation_failed',
    message: typeof message === 'string' ? redact(message) : 'The video could not be made.',
  };
}

/**
 * Returns an error for a request that the provider's content policy has refused. `sentence` is the provider's, empty when it gave none.
 *
 * @example
 * if (body.status === 'moderated') throw contentRefused('');
 */
export function contentRefused(sentence: string): GatewayError {
  return new GatewayError(
    'content_policy_violation',
    redact(sentence) || 'The request was refused by the content policy of the upstream.',
    { origin: 'upstream' },
  );
}

import { GatewayError } from '../../sdk/errors.ts';
import type { JsonValue } from '../../model/json.ts';
import type { VideoReport } from '../../model/video.ts';
import { redact } from './redact.ts';

/** Why there is no video, by the provider's code, which is text or a number, and its sentence. */
export function failureOf(
  code: JsonValue | undefined,
  message: JsonValue | undefined,
): NonNullable<VideoReport['error']> {
  return {
    code: typeof code === 'string' || typeof code === 'number' ? String(code) : 'generation_failed',
    message: typeof message === 'string' ? redact(message) : 'The video could not be made.',
  };
}

/** A provider whose review of content has refused a request; its sentence, empty when it gave none. */
export function contentRefused(sentence: string): GatewayError {
  return new GatewayError(
    'content_policy_violation',
    redact(sentence) || 'The request was refused by the content policy of the upstream.',
    { origin: 'upstream' },
  );
}

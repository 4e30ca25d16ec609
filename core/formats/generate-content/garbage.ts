import { GatewayError } from '../../sdk/errors.ts';
import type { JsonValue } from '../../model/json.ts';

/** 502: the provider sent something that cannot be understood. */
export function garbage(cause?: unknown): GatewayError {
  return new GatewayError('upstream_error', 'The upstream sent something that is no answer.', {
    origin: 'upstream',
    cause,
  });
}

/** Compact JSON of a value in a reply. Throws 502 for what is nested beyond what can be written. */
export function replyText(value: JsonValue): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    throw garbage(cause);
  }
}

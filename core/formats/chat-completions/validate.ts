/** Rejects chat completions requests that the official API forbids, and returns the error for `top_p` beside `temperature`. */
import type { ChatRequest } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import type { GatewayError } from '../../sdk/errors.ts';
import { checkMetadata, given, invalid } from '../_shared/check.ts';
import { decodeRequest } from './request-in/index.ts';

/** Checks what the specification and the official API forbid, and the types of all fields that the gateway reads. Throws 400 with the path. */
export function validate(body: JsonObject): ChatRequest {
  const request = decodeRequest(body);
  if (given(body.top_logprobs) && body.logprobs !== true) {
    throw invalid('top_logprobs', 'top_logprobs requires logprobs to be true.');
  }
  checkMetadata(body.metadata);
  return request;
}

/** Returns the error for `top_p` beside `temperature`, unless one of them is at 1, where it changes nothing. */
export function samplingConflict(body: JsonObject): GatewayError | undefined {
  const { temperature, top_p: topP } = body;
  if (!given(temperature) || !given(topP) || temperature === 1 || topP === 1) return undefined;
  return invalid(
    'top_p',
    "temperature and top_p are mutually exclusive: leave one of them out, or at 1. The option sampling: 'forward' in gateway.config.ts lets both pass.",
  );
}

import { GatewayError, wrongType, wrongValue } from '../../errors.ts';
import type { ChatRequest } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import { given, optionalObject } from '../_shared/check.ts';
import { decodeRequest } from './decode-request.ts';

/** Everything that the spec and the official format forbid, and the type of every field that the gateway reads. Throws 400 with the path. */
export function validate(body: JsonObject): ChatRequest {
  const request = decodeRequest(body);
  if (given(body.top_logprobs) && body.logprobs !== true) {
    throw new GatewayError('invalid_value', 'top_logprobs requires logprobs to be true.', {
      param: 'top_logprobs',
    });
  }
  checkMetadata(body);
  return request;
}

function checkMetadata(body: JsonObject): void {
  const metadata = optionalObject(body.metadata, 'metadata');
  if (metadata === undefined) return;
  const entries = Object.entries(metadata);
  if (entries.length > 16) throw wrongValue('metadata', 'at most 16 pairs');
  for (const [key, value] of entries) {
    const path = `metadata.${key.slice(0, 64)}`;
    if (key.length > 64) throw wrongValue(path, 'a key of at most 64 characters');
    if (typeof value !== 'string') throw wrongType(path, 'a string');
    if (value.length > 512) throw wrongValue(path, 'at most 512 characters long');
  }
}

/** `temperature` and `top_p` exclude each other, unless one of them is at 1, where it changes nothing. Throws 400. */
export function checkSampling(body: JsonObject): void {
  const { temperature, top_p: topP } = body;
  if (!given(temperature) || !given(topP) || temperature === 1 || topP === 1) return;
  throw new GatewayError(
    'invalid_value',
    'temperature and top_p are mutually exclusive: leave one of them out, or at 1.',
    {
      param: 'top_p',
    },
  );
}

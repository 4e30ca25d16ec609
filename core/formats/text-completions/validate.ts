import { GatewayError } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';
import { given } from '../_shared/check.ts';
import { readPrompts } from './parts.ts';

/** Why only a channel of this format can answer a request; undefined for those that a chat model answers as well. */
export function onlyNative(body: JsonObject): GatewayError | undefined {
  const { prompts } = readPrompts(body.prompt);
  if (prompts.some((prompt) => typeof prompt !== 'string')) return refusal('prompt', 'a prompt of tokens');
  if (prompts.length > 1) return refusal('prompt', 'more than one prompt');
  const { suffix, best_of: best, logprobs } = body;
  if (given(suffix) && suffix !== '') return refusal('suffix', 'a suffix');
  if (typeof best === 'number' && best > 1) return refusal('best_of', 'a best_of above 1');
  if (given(logprobs)) return refusal('logprobs', 'log probabilities');
  return undefined;
}

function refusal(param: string, what: string): GatewayError {
  return new GatewayError(
    'unsupported_parameter',
    `${param}: the model of this request chats, and completes no bare text, so that ${what} cannot be sent to it.`,
    { param },
  );
}

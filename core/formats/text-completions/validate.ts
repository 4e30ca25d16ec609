/** Rejects text completions requests that the official API forbids, and requests that a chat model cannot serve. */
import { GatewayError, wrongValue } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';
import { given, optionalBoolean, optionalNumber, optionalString } from '../_shared/check.ts';
import { readPrompts } from './parts.ts';
import { mostStops } from '../_openai/settings.ts';
import type { ChatRequest } from '../../model/chat.ts';
import { decodeRequest } from './request-in.ts';

/** Checks everything that the official API forbids, and the types of all fields that the gateway reads. Throws 400 with the path. */
export function validate(body: JsonObject): ChatRequest {
  const request = decodeRequest(body);
  optionalBoolean(body.echo, 'echo');
  optionalString(body.suffix, 'suffix');
  optionalNumber(body.logprobs, 'logprobs', { integer: true, min: 0, max: 5 });
  const { choices = 1, stop = [] } = request.settings;
  if (stop.length > mostStops) throw wrongValue('stop', `at most ${mostStops} sequences`);
  const best = optionalNumber(body.best_of, 'best_of', { integer: true, min: 1, max: 20 });
  if (best === undefined) return request;
  if (best < choices) throw wrongValue('best_of', 'at least n');
  if (best > 1 && request.stream) throw wrongValue('best_of', '1 in a stream');
  return request;
}

/** Returns the error for a request that only a channel of this format can answer; undefined for those that a chat model can answer. */
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
    `${param}: the model of this request is a chat model, which does not support ${what}.`,
    { param },
  );
}

import { isObject, type JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { noUsage, tapping, tokenCount } from '../_shared/usage.ts';
import { formatName } from './wire.ts';

/** Token counts in the neutral meaning. */
export function readUsage(raw: JsonObject): Usage {
  const prompt = isObject(raw.prompt_tokens_details) ? raw.prompt_tokens_details : {};
  const completion = isObject(raw.completion_tokens_details) ? raw.completion_tokens_details : {};
  return {
    input: tokenCount(raw.prompt_tokens),
    output: tokenCount(raw.completion_tokens),
    cacheRead: tokenCount(prompt.cached_tokens),
    cacheWrite: tokenCount(prompt.cache_write_tokens),
    reasoning: tokenCount(completion.reasoning_tokens),
    format: formatName,
    raw,
  };
}

/** The usage object for a client: the provider's own where it spoke this format, else computed, with the details that say something. */
export function writeUsage(usage: Usage | undefined): JsonObject {
  if (usage?.format === formatName && usage.raw !== undefined) return usage.raw;
  const { input, output, cacheRead, cacheWrite, reasoning } = usage ?? noUsage;
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    ...(cacheRead + cacheWrite > 0
      ? {
          prompt_tokens_details: {
            cached_tokens: cacheRead,
            ...(cacheWrite > 0 ? { cache_write_tokens: cacheWrite } : {}),
          },
        }
      : {}),
    ...(reasoning > 0 ? { completion_tokens_details: { reasoning_tokens: reasoning } } : {}),
  };
}

/** Every figure of this format is cumulative, so nothing has to be remembered. */
export const usageTap = tapping('"usage"', ({ usage }) => (isObject(usage) ? readUsage(usage) : undefined));

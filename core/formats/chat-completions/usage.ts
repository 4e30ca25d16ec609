import { isObject, type JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { noUsage, tapping, tokenCount } from '../_shared/usage.ts';
import { formatName } from './wire.ts';

/** The usage object of a chunk or a whole reply; some providers hang it one level down. */
export function usageOf(body: JsonObject): JsonObject | undefined {
  if (isObject(body.usage)) return body.usage;
  return isObject(body.x_groq) && isObject(body.x_groq.usage) ? body.x_groq.usage : undefined;
}

/** Token counts in the neutral meaning. Takes providers' spellings of the cache, and counts that leave the reasoning or the cache out. */
export function readUsage(raw: JsonObject): Usage {
  const prompt = isObject(raw.prompt_tokens_details) ? raw.prompt_tokens_details : {};
  const completion = isObject(raw.completion_tokens_details) ? raw.completion_tokens_details : {};
  const cacheRead =
    tokenCount(prompt.cached_tokens) ||
    tokenCount(raw.prompt_cache_hit_tokens) ||
    tokenCount(raw.cached_tokens) ||
    tokenCount(raw.cache_read_input_tokens);
  const cacheWrite = tokenCount(prompt.cache_write_tokens) || tokenCount(raw.cache_creation_input_tokens);
  const reasoning = tokenCount(completion.reasoning_tokens) || tokenCount(raw.reasoning_tokens);
  let input = tokenCount(raw.prompt_tokens);
  let output = tokenCount(raw.completion_tokens);
  // The total is trusted: what it holds beyond the sum was left out of one of the two.
  const beyond = tokenCount(raw.total_tokens) - input - output;
  if (beyond > 0 && beyond === cacheRead && beyond !== reasoning) input += beyond;
  else if (beyond > 0) output += beyond;
  return { input, output, cacheRead, cacheWrite, reasoning, format: formatName, raw };
}

/** The usage object for a client: the provider's own where it spoke this format, else computed, with both detail objects. */
export function writeUsage(usage: Usage | undefined): JsonObject {
  if (usage?.format === formatName && usage.raw !== undefined) return usage.raw;
  const { input, output, cacheRead, cacheWrite, reasoning } = usage ?? noUsage;
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details:
      cacheWrite > 0
        ? { cached_tokens: cacheRead, cache_write_tokens: cacheWrite }
        : { cached_tokens: cacheRead },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}

/** Every figure of this format is cumulative, so nothing has to be remembered. */
export const usageTap = tapping('"usage"', (body) => {
  const raw = usageOf(body);
  return raw && readUsage(raw);
});

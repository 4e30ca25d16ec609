import { isObject, type JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { noUsage, tokenCount } from '../_shared/usage.ts';

/** Reads token counts: `input` and `output` are the members that hold them, and begin the names of those that hold their details. */
export function usageReader(format: string, input: string, output: string): (raw: JsonObject) => Usage {
  return (raw) => {
    const inputDetails = detailsIn(raw, input);
    return {
      input: tokenCount(raw[input]),
      output: tokenCount(raw[output]),
      cacheRead: tokenCount(inputDetails.cached_tokens),
      cacheWrite: tokenCount(inputDetails.cache_write_tokens),
      reasoning: tokenCount(detailsIn(raw, output).reasoning_tokens),
      format,
      raw,
    };
  };
}

function detailsIn(raw: JsonObject, member: string): JsonObject {
  const details = raw[`${member}_details`];
  return isObject(details) ? details : {};
}

/**
 * A writer of the usage object of completions: the provider's own where it spoke the format, else computed. `details`: both detail objects
 * are there, also where they say nothing.
 */
export function completionUsage(format: string, details: boolean): (usage: Usage | undefined) => JsonObject {
  return (usage) => {
    if (usage?.format === format && usage.raw !== undefined) return usage.raw;
    const { input, output, cacheRead, cacheWrite, reasoning } = usage ?? noUsage;
    const written = cacheWrite > 0 ? { cache_write_tokens: cacheWrite } : {};
    return {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      ...(details || cacheRead + cacheWrite > 0
        ? { prompt_tokens_details: { cached_tokens: cacheRead, ...written } }
        : {}),
      ...(details || reasoning > 0 ? { completion_tokens_details: { reasoning_tokens: reasoning } } : {}),
    };
  };
}

import { isObject, type JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { noUsage, tapping, tokenCount } from '../_shared/usage.ts';
import { formatName } from './wire.ts';

/** Token counts in the neutral meaning; `raw` keeps every detail for clients of this format. */
export function readUsage(raw: JsonObject): Usage {
  const input = isObject(raw.input_tokens_details) ? raw.input_tokens_details : {};
  const output = isObject(raw.output_tokens_details) ? raw.output_tokens_details : {};
  return {
    input: tokenCount(raw.input_tokens),
    output: tokenCount(raw.output_tokens),
    cacheRead: tokenCount(input.cached_tokens),
    cacheWrite: tokenCount(input.cache_write_tokens),
    reasoning: tokenCount(output.reasoning_tokens),
    format: formatName,
    raw,
  };
}

/** The usage object for a client, with both detail objects: typed clients read them without asking. */
export function writeUsage(usage: Usage | undefined): JsonObject {
  if (usage?.format === formatName && usage.raw !== undefined) return usage.raw;
  const { input, output, cacheRead, cacheWrite, reasoning } = usage ?? noUsage;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}

/** It stands once, in the last snapshot. */
export const usageTap = tapping('"usage"', ({ response, usage }) => {
  const raw = isObject(response) ? response.usage : usage;
  return isObject(raw) ? readUsage(raw) : undefined;
});

import { isObject, type JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { noUsage, tapping } from '../_shared/usage.ts';
import { usageReader } from '../_openai/usage.ts';
import { formatName } from './wire.ts';

/** Token counts in the neutral meaning. */
export const readUsage = usageReader(formatName, 'prompt_tokens', 'completion_tokens');

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

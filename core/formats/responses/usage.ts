/** Usage of Responses, in both directions. */
import { isObject, type JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { noUsage, tapping } from '../_shared/usage.ts';
import { usageReader } from '../_openai/usage.ts';
import { servicesIn } from './services.ts';
import { formatName } from './wire.ts';

const readTokens = usageReader(formatName, 'input_tokens', 'output_tokens');

/** Returns the usage in the neutral meaning; `raw` keeps every detail for clients of this format. `response` is the one that has it. */
export function readUsage(raw: JsonObject, response: JsonObject = {}): Usage {
  const units = servicesIn(response);
  const usage = readTokens(raw, response);
  return units === undefined ? usage : { ...usage, units };
}

/** Returns the usage object for a client, with both detail objects: typed clients read them without asking. */
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

/** The usage occurs once, in the last snapshot. */
export const usageTap = tapping('"usage"', (body) => {
  const response = isObject(body.response) ? body.response : body;
  return isObject(response.usage) ? readUsage(response.usage, response) : undefined;
});

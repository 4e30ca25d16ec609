/** Decodes and encodes token counts of Converse, and reads them from pass-through bytes. */
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { serviceTierIn, tapping, tokenCount } from '../_shared/usage.ts';
import { formatName } from './wire.ts';

/**
 * Decodes the usage in `metadata`. Converse counts cache reads and writes beside `inputTokens`; the neutral `input` includes all three. `raw` is
 * the whole `metadata`, so that clients of this format receive metrics and traces unchanged.
 */
export function decodeUsage(metadata: JsonObject): Usage {
  const usage = isObject(metadata.usage) ? metadata.usage : {};
  const cacheRead = tokenCount(usage.cacheReadInputTokens);
  const long = longLived(usage.cacheDetails);
  const cacheWrite = Math.max(tokenCount(usage.cacheWriteInputTokens), long);
  return {
    input: tokenCount(usage.inputTokens) + cacheRead + cacheWrite,
    output: tokenCount(usage.outputTokens),
    cacheRead,
    cacheWrite,
    reasoning: 0,
    ...(long > 0 ? { cacheWriteLong: long } : {}),
    ...serviceTierIn(isObject(metadata.serviceTier) ? metadata.serviceTier.type : undefined),
    format: formatName,
    raw: metadata,
  };
}

/** Returns the tokens that were written to the cache for one hour. */
function longLived(details: JsonValue | undefined): number {
  if (!Array.isArray(details)) return 0;
  let sum = 0;
  for (const detail of details as readonly JsonValue[])
    if (isObject(detail) && detail.ttl === '1h') sum += tokenCount(detail.inputTokens);
  return sum;
}

/** Returns the neutral usage as the members of `metadata`: as they were when this format wrote them, else computed. */
export function encodeUsage(usage: Usage): JsonObject {
  if (usage.format === formatName && usage.raw !== undefined) return usage.raw;
  const { input, output, cacheRead, cacheWrite, cacheWriteLong = 0 } = usage;
  return {
    usage: {
      inputTokens: Math.max(0, input - cacheRead - cacheWrite),
      outputTokens: output,
      totalTokens: input + output,
      ...(cacheRead > 0 ? { cacheReadInputTokens: cacheRead } : {}),
      ...(cacheWrite > 0 ? { cacheWriteInputTokens: cacheWrite } : {}),
      ...(cacheWriteLong > 0
        ? {
            cacheDetails: [
              ...(cacheWrite > cacheWriteLong
                ? [{ ttl: '5m', inputTokens: cacheWrite - cacheWriteLong }]
                : []),
              { ttl: '1h', inputTokens: cacheWriteLong },
            ],
          }
        : {}),
    },
  };
}

/** Reads usage from frames and whole bodies that pass through. */
export const usageTap = tapping('"usage"', (body) => (isObject(body.usage) ? decodeUsage(body) : undefined));

import type { JsonObject, Usage } from '#sluice';

/** What two calls cost together. A provider's own figures are left out: they are those of one call. */
export function sum(one: Usage, other: Usage): Usage {
  const long = (one.cacheWriteLong ?? 0) + (other.cacheWriteLong ?? 0);
  return {
    input: one.input + other.input,
    output: one.output + other.output,
    cacheRead: one.cacheRead + other.cacheRead,
    cacheWrite: one.cacheWrite + other.cacheWrite,
    reasoning: one.reasoning + other.reasoning,
    ...(long > 0 ? { cacheWriteLong: long } : {}),
    ...(one.estimated === true || other.estimated === true ? { estimated: true } : {}),
  };
}

/** Usage as the object of a compaction shows it. */
export function written({ input, output, cacheRead, cacheWrite, reasoning }: Usage): JsonObject {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}

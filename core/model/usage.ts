import type { JsonObject } from './json.ts';

/**
 * Token counts with one meaning everywhere: `input` includes cache reads and writes, `output` includes reasoning;
 * the other numbers are parts of those two. Formats that count otherwise convert at the edge.
 */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
  /** The part of `cacheWrite` with a lifetime of one hour. */
  readonly cacheWriteLong?: number;
  /** True when the gateway counted by itself because the upstream gave no figures. */
  readonly estimated?: boolean;
  /** The format in which `raw` is written, so that the same format can give every detail back. */
  readonly format?: string;
  readonly raw?: JsonObject;
}

/** What two calls used together. A provider's own figures are left out: they are those of one call. */
export function sumUsage(one: Usage, other: Usage): Usage {
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

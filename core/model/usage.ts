import type { JsonObject } from './json.ts';

/**
 * What is charged for besides tokens.
 *
 * @example
 * const seconds = usage.units?.seconds ?? 0;
 */
export interface Units {
  readonly images?: number;
  readonly seconds?: number;
  readonly characters?: number;
}

/**
 * Token counts with one meaning everywhere: `input` includes cache reads and writes, `output` includes reasoning;
 * the other numbers are parts of those two. Formats that count otherwise convert at the edge.
 *
 * @example
 * const total = usage.input + usage.output;
 */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
  /** The part of `cacheWrite` with a lifetime of one hour. */
  readonly cacheWriteLong?: number;
  /** What was used besides tokens. */
  readonly units?: Units;
  /** True when the gateway counted by itself because the upstream gave no figures. */
  readonly estimated?: boolean;
  /** The format in which `raw` is written, so that the same format can give every detail back. */
  readonly format?: string;
  readonly raw?: JsonObject;
}

/** What two calls used together. A provider's own figures are left out: they are those of one call. */
export function sumUsage(one: Usage, other: Usage): Usage {
  const long = (one.cacheWriteLong ?? 0) + (other.cacheWriteLong ?? 0);
  const units = sumUnits(one.units, other.units);
  return {
    input: one.input + other.input,
    output: one.output + other.output,
    cacheRead: one.cacheRead + other.cacheRead,
    cacheWrite: one.cacheWrite + other.cacheWrite,
    reasoning: one.reasoning + other.reasoning,
    ...(long > 0 ? { cacheWriteLong: long } : {}),
    ...(units === undefined ? {} : { units }),
    ...(one.estimated === true || other.estimated === true ? { estimated: true } : {}),
  };
}

/** The units of two calls together; undefined where neither has any. */
export function sumUnits(one: Units | undefined, other: Units | undefined): Units | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const sum: { -readonly [Unit in keyof Units]: Units[Unit] } = { ...one };
  for (const unit of ['images', 'seconds', 'characters'] as const) {
    const more = other[unit];
    if (more !== undefined) sum[unit] = (sum[unit] ?? 0) + more;
  }
  return sum;
}

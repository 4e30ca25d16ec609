/** Usage of a call in tokens and other units, and sums of it. */
import type { JsonObject } from './json.ts';

/**
 * Billed units other than tokens.
 *
 * @example
 * const seconds = usage.units?.seconds ?? 0;
 */
export interface Units {
  readonly images?: number;
  readonly seconds?: number;
  readonly characters?: number;
  /** Pages of documents that were read, and those of them that were annotated by a schema. */
  readonly pages?: number;
  readonly annotatedPages?: number;
  /** The parts of `images` with a quality, a size or both, by these words: `high/1024x1536`. */
  readonly imagesAt?: Readonly<Record<string, number>>;
  /** The parts of `seconds` with a resolution, by its name: `720p`. */
  readonly secondsAt?: Readonly<Record<string, number>>;
  /** Requests to providers that the call took, where there were several: each has its own fee. */
  readonly calls?: number;
  /** The size of the search context of a call: `{ high: 1 }`. */
  readonly callsAt?: Readonly<Record<string, number>>;
  /** Uses of services that a provider runs for the model, by their names: `web-search`. */
  readonly services?: Readonly<Record<string, number>>;
}

/** Modalities of tokens. */
export const modalities = ['text', 'audio', 'image', 'video'] as const;

/**
 * One kind of content that tokens stand for.
 *
 * @example
 * const modality: Modality = 'audio';
 */
export type Modality = (typeof modalities)[number];

/**
 * Numbers of tokens by what they stand for.
 *
 * @example
 * const parts: TokensByModality = { text: 10, audio: 1_000 };
 */
export type TokensByModality = { readonly [M in Modality]?: number };

/**
 * Tokens of a call by modality, as far as the provider reports them.
 *
 * @example
 * const sound = usage.byModality?.output?.audio ?? 0;
 */
export interface UsageByModality {
  readonly input?: TokensByModality;
  /** The parts of the cached input. Absent: text first. */
  readonly cacheRead?: TokensByModality;
  readonly output?: TokensByModality;
}

/**
 * Tokens that another model than that of the call has used, with the provider's name of that model.
 *
 * @example
 * const models = (usage.otherModels ?? []).map(({ model }) => model);
 */
export interface ModelUsage {
  readonly model: string;
  readonly usage: TokenCounts;
}

/**
 * Token counts with one meaning everywhere: `input` includes cache reads and writes, `output` includes reasoning;
 * the other numbers are parts of those two. Formats that count otherwise convert at the edge.
 *
 * @example
 * const total = (tokens: TokenCounts): number => tokens.input + tokens.output;
 */
export interface TokenCounts {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
  /** The part of `cacheWrite` with a lifetime of one hour. */
  readonly cacheWriteLong?: number;
}

/**
 * Usage of a call.
 *
 * @example
 * const total = usage.input + usage.output;
 */
export interface Usage extends TokenCounts {
  /** Usage that is not counted in tokens. */
  readonly units?: Units;
  /** The parts of these numbers that other models have used, each model once: they have prices of their own. */
  readonly otherModels?: readonly ModelUsage[];
  /** The parts of the tokens that have prices of their own. */
  readonly byModality?: UsageByModality;
  /** Service tier that the provider reports, in lower case: `priority`, `flex`, `fast`. Absent if it reports none. */
  readonly serviceTier?: string;
  /** True when the gateway estimated the usage because the provider reported none. */
  readonly estimated?: boolean;
  /** The format in which `raw` is written, so that the same format can give every detail back. */
  readonly format?: string;
  readonly raw?: JsonObject;
}

/**
 * Returns what two calls used together. A provider's own figures are left out, because they are those of one call.
 *
 * @example
 * const total = events.reduce<Usage | undefined>(
 *   (sum, event) => (event.type === 'usage' ? (sum === undefined ? event.usage : sumUsage(sum, event.usage)) : sum),
 *   undefined,
 * );
 */
export function sumUsage(one: Usage, other: Usage): Usage {
  const units = sumUnits(one.units, other.units);
  const models = sumByModel([...(one.otherModels ?? []), ...(other.otherModels ?? [])]);
  const byModality = sumModalities(one.byModality, other.byModality);
  const serviceTier = one.serviceTier ?? other.serviceTier;
  return {
    ...sumTokens(one, other),
    ...(units === undefined ? {} : { units }),
    ...(models.length === 0 ? {} : { otherModels: models }),
    ...(byModality === undefined ? {} : { byModality }),
    ...(serviceTier === undefined ? {} : { serviceTier }),
    ...(one.estimated === true || other.estimated === true ? { estimated: true } : {}),
  };
}

function sumModalities(
  one: UsageByModality | undefined,
  other: UsageByModality | undefined,
): UsageByModality | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const sum: { -readonly [Part in keyof UsageByModality]: UsageByModality[Part] } = {};
  for (const part of ['input', 'cacheRead', 'output'] as const) {
    const parts = sumNames(one[part], other[part]);
    if (parts !== undefined) sum[part] = parts;
  }
  return sum;
}

/** Adds numbers up by their names; undefined where neither has any. */
function sumNames<Name extends string>(
  one: Readonly<Partial<Record<Name, number>>> | undefined,
  other: Readonly<Partial<Record<Name, number>>> | undefined,
): Readonly<Partial<Record<Name, number>>> | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const sums = new Map(Object.entries<number | undefined>(one));
  for (const [name, more] of Object.entries<number | undefined>(other))
    sums.set(name, (sums.get(name) ?? 0) + (more ?? 0));
  return Object.fromEntries(sums) as Readonly<Partial<Record<Name, number>>>;
}

/** Adds token counts up. */
export function sumTokens(one: TokenCounts, other: TokenCounts): TokenCounts {
  const long = (one.cacheWriteLong ?? 0) + (other.cacheWriteLong ?? 0);
  return {
    input: one.input + other.input,
    output: one.output + other.output,
    cacheRead: one.cacheRead + other.cacheRead,
    cacheWrite: one.cacheWrite + other.cacheWrite,
    reasoning: one.reasoning + other.reasoning,
    ...(long > 0 ? { cacheWriteLong: long } : {}),
  };
}

/** Adds token counts up by model. */
export function sumByModel(parts: readonly ModelUsage[]): readonly ModelUsage[] {
  const sums = new Map<string, TokenCounts>();
  for (const { model, usage } of parts) {
    const before = sums.get(model);
    sums.set(model, before === undefined ? usage : sumTokens(before, usage));
  }
  return [...sums].map(([model, usage]) => ({ model, usage }));
}

/** Returns the tokens that the model of the call has used itself. */
export function ownTokens(usage: Usage): TokenCounts {
  const { otherModels = [] } = usage;
  const rest = (member: Exclude<keyof TokenCounts, 'cacheWriteLong'>): number =>
    otherModels.reduce((left, { usage: part }) => Math.max(0, left - part[member]), usage[member]);
  const long = otherModels.reduce(
    (left, { usage: part }) => Math.max(0, left - (part.cacheWriteLong ?? 0)),
    usage.cacheWriteLong ?? 0,
  );
  return {
    input: rest('input'),
    output: rest('output'),
    cacheRead: rest('cacheRead'),
    cacheWrite: rest('cacheWrite'),
    reasoning: rest('reasoning'),
    ...(long > 0 ? { cacheWriteLong: long } : {}),
  };
}

/**
 * Returns the units of two calls together; undefined where neither has any.
 *
 * @example
 * const units = sumUnits(first.units, second.units);
 */
export function sumUnits(one: Units | undefined, other: Units | undefined): Units | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const sum: { -readonly [Unit in keyof Units]: Units[Unit] } = { ...one };
  for (const part of ['services', 'imagesAt', 'secondsAt', 'callsAt'] as const) {
    const parts = sumNames(one[part], other[part]);
    if (parts !== undefined) sum[part] = parts as Readonly<Record<string, number>>;
  }
  for (const unit of ['images', 'seconds', 'characters', 'calls', 'pages', 'annotatedPages'] as const) {
    const more = other[unit];
    if (more !== undefined) sum[unit] = (sum[unit] ?? 0) + more;
  }
  return sum;
}

/** Parses token counts, modalities and service tiers in usage objects of providers, and requests usage in streamed completions. */
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Modality, TokensByModality, Usage, UsageByModality } from '../../model/usage.ts';
import type { UsageTap } from '../../sdk/format.ts';

/** Returns a number of tokens. Some providers write it as text; anything else counts as none. */
export function tokenCount(value: JsonValue | undefined): number {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : 0;
}

/** Members of details that hold the tokens of each modality in most formats. */
const detailNames = [
  ['text', 'text_tokens'],
  ['audio', 'audio_tokens'],
  ['image', 'image_tokens'],
  ['video', 'video_tokens'],
] as const;

/** Splits a number of tokens by the modalities that an object of details lists. The remainder is text. */
function partsIn(details: JsonValue | undefined, total: number): TokensByModality | undefined {
  if (!isObject(details)) return undefined;
  let parts: { [M in Modality]?: number } | undefined;
  let others = 0;
  for (const [modality, name] of detailNames) {
    const value = details[name];
    if (value === undefined || value === null) continue;
    parts ??= {};
    if (modality === 'text') continue;
    const tokens = tokenCount(value);
    others += tokens;
    if (tokens > 0) parts[modality] = tokens;
  }
  if (parts !== undefined) parts.text = Math.max(0, total - others);
  return parts;
}

/** Details of the input, of what of it was cached, and of the output. */
export interface UsageDetails {
  readonly input?: JsonValue | undefined;
  readonly cached?: JsonValue | undefined;
  readonly output?: JsonValue | undefined;
}

/** Reads the tokens of each modality, as a member to be added to usage; empty where there are no details. */
export function byModalityIn(
  { input, cached, output }: UsageDetails,
  counts: Pick<Usage, 'input' | 'cacheRead' | 'output'>,
): { readonly byModality?: UsageByModality } {
  const parts = {
    input: partsIn(input, counts.input),
    cacheRead: counts.cacheRead > 0 ? partsIn(cached, counts.cacheRead) : undefined,
    output: partsIn(output, counts.output),
  };
  if (parts.input === undefined && parts.output === undefined) return {};
  return {
    byModality: {
      ...(parts.input === undefined ? {} : { input: parts.input }),
      ...(parts.cacheRead === undefined ? {} : { cacheRead: parts.cacheRead }),
      ...(parts.output === undefined ? {} : { output: parts.output }),
    },
  };
}

/** Reads the service tier that a provider reports, as a member to add to usage. */
export function serviceTierIn(value: JsonValue | undefined): { readonly serviceTier?: string } {
  if (typeof value !== 'string' || value === '' || value.length > longestTier) return {};
  return { serviceTier: value.toLowerCase().replace(/^service_tier_/, '') };
}

const longestTier = 100;

/**
 * Reads the token counts of most operations besides chat: `input_tokens` and `output_tokens`, or `prompt_tokens` and
 * `completion_tokens`, with their details. Emit no usage event when the provider does not report usage: the gateway then estimates it.
 *
 * @example
 * ...(isObject(body.usage) ? [{ type: 'usage' as const, usage: readTokenUsage(body.usage, 'acme') }] : []),
 */
export function readTokenUsage(raw: JsonObject, format: string): Usage {
  const input = tokenCount(raw.input_tokens) || tokenCount(raw.prompt_tokens);
  const output = tokenCount(raw.output_tokens) || tokenCount(raw.completion_tokens);
  const total = tokenCount(raw.total_tokens);
  const details = raw.input_tokens_details ?? raw.input_token_details ?? raw.prompt_tokens_details;
  const cached = isObject(details) ? details.cached_tokens_details : undefined;
  const counts = {
    input: input === 0 && output === 0 ? total : input,
    output,
    cacheRead: isObject(details) ? tokenCount(details.cached_tokens) : 0,
  };
  return {
    ...counts,
    cacheWrite: 0,
    reasoning: 0,
    ...byModalityIn(
      {
        input: details,
        cached,
        output: raw.output_tokens_details ?? raw.output_token_details ?? raw.completion_tokens_details,
      },
      counts,
    ),
    format,
    raw,
  };
}

/**
 * Usage of 0 tokens, for operations that are not billed by tokens. Emit no usage event when the provider does not report usage: the
 * gateway then estimates it.
 *
 * @example
 * return [{ type: 'result', value }, { type: 'usage', usage: { ...noUsage, units: { images: 1 } } }];
 */
export const noUsage: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** Returns true for a chunk of a completion that carries usage and nothing else. */
export function isUsageOnly(data: string): boolean {
  if (!data.includes('"usage"')) return false;
  const body = parseObject(data);
  return (
    body !== undefined && isObject(body.usage) && Array.isArray(body.choices) && body.choices.length === 0
  );
}

/** Returns the member that requests usage in a streamed completion; undefined when the request is not streamed, or already has it. */
export function requestUsage(body: JsonObject): JsonObject | undefined {
  if (body.stream !== true) return undefined;
  const options = isObject(body.stream_options) ? body.stream_options : {};
  return options.include_usage === true ? undefined : { stream_options: { ...options, include_usage: true } };
}

/** Reads usage from the frames and bodies of a pass-through, each separately. Does not parse those without `mark`. */
export function tapping(mark: string, usageIn: (body: JsonObject) => Usage | undefined): () => UsageTap {
  return () => ({
    read(data) {
      const body = data.includes(mark) ? parseObject(data) : undefined;
      return body === undefined ? undefined : usageIn(body);
    },
  });
}

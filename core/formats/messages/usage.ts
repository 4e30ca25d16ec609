/** Decodes and encodes `usage` of Messages, merges it over the events of a stream, and reads it from pass-through bytes. */
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import { sumByModel, sumTokens, type ModelUsage, type TokenCounts, type Usage } from '../../model/usage.ts';
import type { UsageTap } from '../../sdk/format.ts';
import { serviceTierIn } from '../_shared/usage.ts';
import { formatName } from './wire.ts';

/** Reads a token count; 0 for any other value. */
function count(value: JsonValue | undefined): number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value) ? value : 0;
}

/**
 * Decodes usage. Messages counts cache reads and writes beside `input_tokens`; the neutral `input` includes all three. Where `iterations` lists
 * several runs of models, their sum is charged, because the figures at the top exclude runs of advisors and of compaction, and count the input
 * of later runs once.
 */
export function decodeUsage(raw: JsonObject): Usage {
  const top = decodeTokens(raw);
  const { iterations } = raw;
  const units = { ...decodeServices(raw), ...decodeTier(raw) };
  if (!Array.isArray(iterations) || iterations.length === 0)
    return { ...top, ...units, format: formatName, raw };
  const { all, otherModels } = decodeIterations(iterations as readonly JsonValue[], top);
  return { ...all, ...units, ...(otherModels.length === 0 ? {} : { otherModels }), format: formatName, raw };
}

/** Reads the mode that changes the price. The service tier `standard` does not change it; `priority` is capacity that was bought before. */
function decodeTier({ speed, service_tier: tier }: JsonObject): Pick<Usage, 'serviceTier'> {
  return serviceTierIn(speed ?? (tier === 'standard' ? undefined : tier));
}

/** Reads the number of web searches. Containers are not counted here: a call that may run code is charged for one. */
function decodeServices({ server_tool_use: used }: JsonObject): Pick<Usage, 'units'> {
  const searches = isObject(used) ? used.web_search_requests : undefined;
  return count(searches) > 0 ? { units: { services: { 'web-search': count(searches) } } } : {};
}

/** Maximum number of other models whose tokens are listed. Tokens of further models count as those of the call's own model. */
const maxModels = 20;

function decodeIterations(
  iterations: readonly JsonValue[],
  top: TokenCounts,
): { readonly all: TokenCounts; readonly otherModels: readonly ModelUsage[] } {
  let all = noTokens;
  let atTop = noTokens;
  const others: ModelUsage[] = [];
  for (const one of iterations) {
    if (!isObject(one)) continue;
    const { type, model } = one;
    const usage = decodeTokens(one);
    all = sumTokens(all, usage);
    if (type === 'message' || type === 'fallback_message') atTop = sumTokens(atTop, usage);
    if (type !== 'message' && type !== 'compaction' && typeof model === 'string' && model !== '')
      others.push({ model: model.slice(0, longestName), usage });
  }
  // Tokens in the figures at the top that no iteration lists were used too.
  return { all: sumTokens(all, beyond(top, atTop)), otherModels: sumByModel(others).slice(0, maxModels) };
}

/** Maximum length of the name of a model. */
const longestName = 200;

const noTokens: TokenCounts = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** Returns by how much the counts of one are higher than those of the other. */
function beyond(one: TokenCounts, other: TokenCounts): TokenCounts {
  return {
    input: Math.max(0, one.input - other.input),
    output: Math.max(0, one.output - other.output),
    cacheRead: Math.max(0, one.cacheRead - other.cacheRead),
    cacheWrite: Math.max(0, one.cacheWrite - other.cacheWrite),
    reasoning: Math.max(0, one.reasoning - other.reasoning),
    cacheWriteLong: Math.max(0, (one.cacheWriteLong ?? 0) - (other.cacheWriteLong ?? 0)),
  };
}

function decodeTokens(raw: JsonObject): TokenCounts {
  const creation = isObject(raw.cache_creation) ? raw.cache_creation : {};
  const long = count(creation.ephemeral_1h_input_tokens);
  const cacheRead = count(raw.cache_read_input_tokens);
  const cacheWrite =
    count(raw.cache_creation_input_tokens) || long + count(creation.ephemeral_5m_input_tokens);
  const details = isObject(raw.output_tokens_details) ? raw.output_tokens_details : {};
  return {
    input: count(raw.input_tokens) + cacheRead + cacheWrite,
    output: count(raw.output_tokens),
    cacheRead,
    cacheWrite,
    reasoning: count(details.thinking_tokens),
    ...(long > 0 ? { cacheWriteLong: long } : {}),
  };
}

/** Encodes usage: unchanged when it came in this format, else computed. */
export function encodeUsage(usage: Usage): JsonObject {
  if (usage.format === formatName && usage.raw !== undefined) return usage.raw;
  const { input, output, cacheRead, cacheWrite, cacheWriteLong, reasoning } = usage;
  return {
    input_tokens: Math.max(0, input - cacheRead - cacheWrite),
    cache_creation_input_tokens: cacheWrite,
    cache_read_input_tokens: cacheRead,
    ...(cacheWriteLong === undefined
      ? {}
      : {
          cache_creation: {
            ephemeral_5m_input_tokens: Math.max(0, cacheWrite - cacheWriteLong),
            ephemeral_1h_input_tokens: cacheWriteLong,
          },
        }),
    output_tokens: output,
    ...(reasoning > 0 ? { output_tokens_details: { thinking_tokens: reasoning } } : {}),
  };
}

/** Merges the usage of `message_delta` into that of `message_start`. Counts in deltas are cumulative; null is ignored. */
export function mergeUsage(before: JsonObject | undefined, after: JsonObject): JsonObject {
  const merged: MutableObject = { ...before };
  for (const key in after) {
    const value = after[key];
    if (value !== null || merged[key] === undefined) merged[key] = value;
  }
  return merged;
}

/** Reads usage from frames and whole bodies that pass through. */
export function usageTap(): UsageTap {
  let raw: JsonObject | undefined;
  return {
    read(data) {
      const body = data.includes('"usage"') ? parseObject(data) : undefined;
      const message = isObject(body?.message) ? body.message : body;
      if (!isObject(message?.usage)) return undefined;
      raw = mergeUsage(raw, message.usage);
      return decodeUsage(raw);
    },
  };
}

import {
  isObject,
  parseObject,
  type JsonObject,
  type JsonValue,
  type MutableObject,
} from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import type { UsageTap } from '../../sdk/format.ts';
import { formatName } from './wire.ts';

/** A count of the wire; 0 for whatever is no count. */
function count(value: JsonValue | undefined): number {
  return typeof value === 'number' && value > 0 && Number.isFinite(value) ? value : 0;
}

/** Wire usage as neutral usage. The wire counts cache reads and writes beside `input_tokens`, the neutral `input` holds all three. */
export function decodeUsage(raw: JsonObject): Usage {
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
    format: formatName,
    raw,
  };
}

/** Neutral usage as wire usage: as it was when this format wrote it, else computed. */
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

/** What `message_delta` says over what `message_start` said: its numbers are totals, a null says nothing. */
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

import { isObject, parseObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import type { UsageTap } from '../format.ts';
import { formatName } from './wire.ts';

/** The usage object of a chunk or a whole reply; some providers hang it one level down. */
export function usageOf(body: JsonObject): JsonObject | undefined {
  if (isObject(body.usage)) return body.usage;
  return isObject(body.x_groq) && isObject(body.x_groq.usage) ? body.x_groq.usage : undefined;
}

/** Token counts in the neutral meaning. Takes providers' spellings of the cache, and counts that leave the reasoning or the cache out. */
export function readUsage(raw: JsonObject): Usage {
  const prompt = isObject(raw.prompt_tokens_details) ? raw.prompt_tokens_details : {};
  const completion = isObject(raw.completion_tokens_details) ? raw.completion_tokens_details : {};
  const cacheRead =
    count(prompt.cached_tokens) ||
    count(raw.prompt_cache_hit_tokens) ||
    count(raw.cached_tokens) ||
    count(raw.cache_read_input_tokens);
  const cacheWrite = count(prompt.cache_write_tokens) || count(raw.cache_creation_input_tokens);
  const reasoning = count(completion.reasoning_tokens) || count(raw.reasoning_tokens);
  let input = count(raw.prompt_tokens);
  let output = count(raw.completion_tokens);
  // The total is trusted: what it holds beyond the sum was left out of one of the two.
  const beyond = count(raw.total_tokens) - input - output;
  if (beyond > 0 && beyond === cacheRead && beyond !== reasoning) input += beyond;
  else if (beyond > 0) output += beyond;
  return { input, output, cacheRead, cacheWrite, reasoning, format: formatName, raw };
}

/** Some providers write numbers as text; anything else counts as none. */
function count(value: JsonValue | undefined): number {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : 0;
}

/** The usage object for a client: the provider's own where it spoke this format, else computed, with both detail objects. */
export function writeUsage(usage: Usage | undefined): JsonObject {
  if (usage?.format === formatName && usage.raw !== undefined) return usage.raw;
  const { input, output, cacheRead, cacheWrite, reasoning } = usage ?? none;
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details:
      cacheWrite > 0
        ? { cached_tokens: cacheRead, cache_write_tokens: cacheWrite }
        : { cached_tokens: cacheRead },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}

const none: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** Reads usage from the frames of a pass-through. Every figure of this format is cumulative, so nothing has to be remembered. */
export function usageTap(): UsageTap {
  return {
    read(data) {
      const body = parseObject(data);
      const raw = body === undefined ? undefined : usageOf(body);
      return raw === undefined ? undefined : readUsage(raw);
    },
  };
}

/** True for a chunk that carries usage and nothing else. */
export function isUsageOnly(data: string): boolean {
  if (!data.includes('"usage"')) return false;
  const body = parseObject(data);
  return (
    body !== undefined && isObject(body.usage) && Array.isArray(body.choices) && body.choices.length === 0
  );
}

/** A streamed request that asks for usage; the same object where nothing is to be added. */
export function askUsage(body: JsonObject): JsonObject {
  if (body.stream !== true) return body;
  const options = isObject(body.stream_options) ? body.stream_options : {};
  return options.include_usage === true
    ? body
    : { ...body, stream_options: { ...options, include_usage: true } };
}

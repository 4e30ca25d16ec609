import { isObject, parseObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import type { UsageTap } from '../format.ts';
import { formatName } from './wire.ts';

/** Token counts in the neutral meaning. */
export function readUsage(raw: JsonObject): Usage {
  const prompt = isObject(raw.prompt_tokens_details) ? raw.prompt_tokens_details : {};
  const completion = isObject(raw.completion_tokens_details) ? raw.completion_tokens_details : {};
  return {
    input: count(raw.prompt_tokens),
    output: count(raw.completion_tokens),
    cacheRead: count(prompt.cached_tokens),
    cacheWrite: count(prompt.cache_write_tokens),
    reasoning: count(completion.reasoning_tokens),
    format: formatName,
    raw,
  };
}

/** Some providers write numbers as text; anything else counts as none. */
function count(value: JsonValue | undefined): number {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : 0;
}

/** The usage object for a client: the provider's own where it spoke this format, else computed, with the details that say something. */
export function writeUsage(usage: Usage | undefined): JsonObject {
  if (usage?.format === formatName && usage.raw !== undefined) return usage.raw;
  const { input, output, cacheRead, cacheWrite, reasoning } = usage ?? none;
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    ...(cacheRead + cacheWrite > 0
      ? {
          prompt_tokens_details: {
            cached_tokens: cacheRead,
            ...(cacheWrite > 0 ? { cache_write_tokens: cacheWrite } : {}),
          },
        }
      : {}),
    ...(reasoning > 0 ? { completion_tokens_details: { reasoning_tokens: reasoning } } : {}),
  };
}

const none: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** Reads usage from the frames of a pass-through. Every figure of this format is cumulative, so nothing has to be remembered. */
export function usageTap(): UsageTap {
  return {
    read(data) {
      const raw = parseObject(data)?.usage;
      return isObject(raw) ? readUsage(raw) : undefined;
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

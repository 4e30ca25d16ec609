import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { completionUsage, usageReader } from '../_openai/usage.ts';
import { tapping, tokenCount } from '../_shared/usage.ts';
import { formatName } from './wire.ts';

/** The usage object of a chunk or a whole reply; some providers hang it one level down. */
export function usageOf(body: JsonObject): JsonObject | undefined {
  if (isObject(body.usage)) return body.usage;
  return isObject(body.x_groq) && isObject(body.x_groq.usage) ? body.x_groq.usage : undefined;
}

const readCounts = usageReader(formatName, 'prompt_tokens', 'completion_tokens');

/** Token counts in the neutral meaning. Takes providers' spellings of the cache, and counts that leave the reasoning or the cache out. */
export function readUsage(raw: JsonObject, reply?: JsonObject): Usage {
  const counts = readCounts(raw, reply);
  const cacheRead =
    counts.cacheRead ||
    tokenCount(raw.prompt_cache_hit_tokens) ||
    tokenCount(raw.cached_tokens) ||
    tokenCount(raw.cache_read_input_tokens);
  const cacheWrite = counts.cacheWrite || tokenCount(raw.cache_creation_input_tokens);
  const reasoning = counts.reasoning || tokenCount(raw.reasoning_tokens);
  let { input, output } = counts;
  // The total is trusted: what it holds beyond the sum was left out of one of the two.
  const beyond = tokenCount(raw.total_tokens) - input - output;
  if (beyond > 0 && beyond === cacheRead && beyond !== reasoning) input += beyond;
  else if (beyond > 0) output += beyond;
  return {
    ...counts,
    input,
    output,
    cacheRead,
    cacheWrite,
    reasoning,
    ...searchContextIn(raw.search_context_size),
  };
}

/** Perplexity charges a call by the size of its search context. https://docs.perplexity.ai/api-reference/chat-completions-post */
function searchContextIn(size: JsonValue | undefined): Pick<Usage, 'units'> {
  return typeof size === 'string' && size.length < 20 ? { units: { callsAt: { [size]: 1 } } } : {};
}

/** The usage object for a client, with both detail objects: typed clients read them without asking. */
export const writeUsage = completionUsage(formatName, true);

/** Every figure of this format is cumulative, so nothing has to be remembered. */
export const usageTap = tapping('"usage"', (body) => {
  const raw = usageOf(body);
  return raw && readUsage(raw, body);
});

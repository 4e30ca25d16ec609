/** Decodes and encodes the `usage` object of chat completions, with the spellings of cached and reasoning tokens that providers use. */
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { completionUsage, usageReader } from '../_openai/usage.ts';
import { tapping, tokenCount } from '../_shared/usage.ts';
import { formatName } from './wire.ts';

/** Returns the usage object of a chunk or a whole reply; some providers nest it one level deeper. */
export function usageOf(body: JsonObject): JsonObject | undefined {
  if (isObject(body.usage)) return body.usage;
  return isObject(body.x_groq) && isObject(body.x_groq.usage) ? body.x_groq.usage : undefined;
}

const readCounts = usageReader(formatName, 'prompt_tokens', 'completion_tokens');

/** Decodes token counts. Accepts several spellings of cached tokens, and corrects counts that exclude reasoning or cached tokens by the total. */
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

/** Returns the priced unit of a call to Perplexity, which charges by the size of the search context. https://docs.perplexity.ai/api-reference/chat-completions-post */
function searchContextIn(size: JsonValue | undefined): Pick<Usage, 'units'> {
  return typeof size === 'string' && size.length < 20 ? { units: { callsAt: { [size]: 1 } } } : {};
}

/** Encodes the usage object for a client, with both detail objects, because typed clients read them without a check. */
export const writeUsage = completionUsage(formatName, true);

/** Every figure of this format is cumulative, so nothing has to be remembered. */
export const usageTap = tapping('"usage"', (body) => {
  const raw = usageOf(body);
  return raw && readUsage(raw, body);
});

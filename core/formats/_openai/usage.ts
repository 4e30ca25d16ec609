/** Decodes token counts of OpenAI's formats, with details by modality and cache, and encodes the `usage` object of completions. */
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { byModalityIn, noUsage, serviceTierIn, tokenCount } from '../_shared/usage.ts';

/**
 * Reads token counts. `input` and `output` name the members that hold them; with `_details` appended, the members that hold their details.
 * `reply` is the chunk or reply around the usage object; its `service_tier` is read.
 */
export function usageReader(
  format: string,
  input: string,
  output: string,
): (raw: JsonObject, reply?: JsonObject) => Usage {
  // Made once: a name that is put together for each look-up has to be found among all names first.
  const [detailsOfInput, detailsOfOutput] = [`${input}_details`, `${output}_details`];
  return (raw, reply) => {
    const inputDetails = objectIn(raw, detailsOfInput);
    const outputDetails = objectIn(raw, detailsOfOutput);
    const counts = {
      input: tokenCount(raw[input]),
      output: tokenCount(raw[output]),
      // Perplexity's Agent API has names of its own: perplexityai 0.46.1, `ResponsesUsageInputTokensDetails`.
      cacheRead: tokenCount(inputDetails.cached_tokens ?? inputDetails.cache_read_input_tokens),
    };
    return {
      ...counts,
      cacheWrite: tokenCount(inputDetails.cache_write_tokens ?? inputDetails.cache_creation_input_tokens),
      reasoning: tokenCount(outputDetails.reasoning_tokens),
      ...writtenLong(inputDetails.cache_write_tokens_details),
      ...byModalityIn(
        { input: inputDetails, cached: inputDetails.cached_tokens_details, output: outputDetails },
        counts,
      ),
      ...serviceTierIn(reply?.service_tier),
      format,
      raw,
    };
  };
}

/** Writes that last twelve hours have a price of their own, as those of an hour have elsewhere. */
function writtenLong(details: JsonValue | undefined): Pick<Usage, 'cacheWriteLong'> {
  const long = isObject(details) ? tokenCount(details.ttl_12h_tokens) : 0;
  return long > 0 ? { cacheWriteLong: long } : {};
}

const nothing: JsonObject = {};

function objectIn(raw: JsonObject, member: string): JsonObject {
  const value = raw[member];
  return isObject(value) ? value : nothing;
}

/**
 * Returns an encoder for the usage object of completions: the provider's own object if the provider used the format, otherwise a computed
 * one. `details`: true to include both detail objects even if they are empty.
 */
export function completionUsage(format: string, details: boolean): (usage: Usage | undefined) => JsonObject {
  return (usage) => {
    if (usage?.format === format && usage.raw !== undefined) return usage.raw;
    const { input, output, cacheRead, cacheWrite, reasoning } = usage ?? noUsage;
    const written = cacheWrite > 0 ? { cache_write_tokens: cacheWrite } : {};
    return {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      ...(details || cacheRead + cacheWrite > 0
        ? { prompt_tokens_details: { cached_tokens: cacheRead, ...written } }
        : {}),
      ...(details || reasoning > 0 ? { completion_tokens_details: { reasoning_tokens: reasoning } } : {}),
    };
  };
}

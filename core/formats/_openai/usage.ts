import { isObject, type JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { tokenCount } from '../_shared/usage.ts';

/** Reads token counts: `input` and `output` are the members that hold them, and begin the names of those that hold their details. */
export function usageReader(format: string, input: string, output: string): (raw: JsonObject) => Usage {
  return (raw) => {
    const inputDetails = detailsIn(raw, input);
    return {
      input: tokenCount(raw[input]),
      output: tokenCount(raw[output]),
      cacheRead: tokenCount(inputDetails.cached_tokens),
      cacheWrite: tokenCount(inputDetails.cache_write_tokens),
      reasoning: tokenCount(detailsIn(raw, output).reasoning_tokens),
      format,
      raw,
    };
  };
}

function detailsIn(raw: JsonObject, member: string): JsonObject {
  const details = raw[`${member}_details`];
  return isObject(details) ? details : {};
}

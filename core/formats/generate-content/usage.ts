import {
  isObject,
  parseObject,
  type JsonObject,
  type JsonValue,
  type MutableObject,
} from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import type { UsageTap } from '../../sdk/format.ts';
import { SearchCounter } from './services.ts';
import { formatName } from './wire.ts';

/** A count; int64 may be written as a string. */
function count(value: JsonValue | undefined): number {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? Math.trunc(number) : 0;
}

/** `usageMetadata` as neutral usage: prompts count with what tools added, candidates with the thoughts. */
export function readUsage(raw: JsonObject): Usage {
  const input = count(raw.promptTokenCount) + count(raw.toolUsePromptTokenCount);
  const reasoning = count(raw.thoughtsTokenCount);
  const visible = raw.candidatesTokenCount ?? raw.responseTokenCount;
  const output =
    typeof visible === 'number' || typeof visible === 'string'
      ? count(visible) + reasoning
      : count(raw.totalTokenCount) - input;
  return {
    input,
    output: Math.max(output, reasoning),
    cacheRead: count(raw.cachedContentTokenCount),
    cacheWrite: 0,
    reasoning,
    format: formatName,
    raw,
  };
}

/** Neutral usage as `usageMetadata`; what came in this format goes back as it was. */
export function writeUsage(usage: Usage): JsonObject {
  if (usage.format === formatName && usage.raw !== undefined) return usage.raw;
  const written: MutableObject = { promptTokenCount: usage.input };
  if (usage.cacheRead > 0) written.cachedContentTokenCount = usage.cacheRead;
  written.candidatesTokenCount = Math.max(0, usage.output - usage.reasoning);
  if (usage.reasoning > 0) written.thoughtsTokenCount = usage.reasoning;
  written.totalTokenCount = usage.input + usage.output;
  return written;
}

/** Counts of tokens are cumulative. Before the last frame they may all be missing. Searches are counted over all frames. */
export function usageTap(): UsageTap {
  const searches = new SearchCounter();
  return {
    read(data) {
      if (!data.includes('"usageMetadata"') && !data.includes('"webSearchQueries"')) return undefined;
      const body = parseObject(data);
      if (body === undefined) return undefined;
      searches.read(body);
      const usage = isObject(body.usageMetadata) ? readUsage(body.usageMetadata) : undefined;
      return usage !== undefined && usage.input + usage.output > 0 ? searches.counted(usage) : undefined;
    },
  };
}

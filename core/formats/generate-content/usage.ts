/** Decodes and encodes `usageMetadata` of generateContent, and reads it from pass-through bytes. */
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import type { Modality, TokensByModality, Usage } from '../../model/usage.ts';
import { lookupTable } from '../../model/lookup-table.ts';
import type { UsageTap } from '../../sdk/format.ts';
import { serviceTierIn } from '../_shared/usage.ts';
import { SearchCounter } from './services.ts';
import { formatName } from './wire.ts';

/** Returns a count; int64 may be written as a string. */
function count(value: JsonValue | undefined): number {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? Math.trunc(number) : 0;
}

/** Decodes `usageMetadata`: input includes the prompt tokens of tools, output includes thoughts. */
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
    ...decodeModalities(raw),
    ...decodeTier(raw),
    format: formatName,
    raw,
  };
}

/** Modalities that have prices of their own. Documents are charged as text and images, which cost the same. */
const modalities = lookupTable<Modality>({
  TEXT: 'text',
  DOCUMENT: 'text',
  AUDIO: 'audio',
  IMAGE: 'image',
  VIDEO: 'video',
});

function decodeModalities(raw: JsonObject): Pick<Usage, 'byModality'> {
  const input = partsIn(raw.promptTokensDetails, raw.toolUsePromptTokensDetails);
  const cacheRead = partsIn(raw.cacheTokensDetails);
  const output = partsIn(raw.candidatesTokensDetails ?? raw.responseTokensDetails);
  if (input === undefined && output === undefined) return {};
  return {
    byModality: {
      ...(input === undefined ? {} : { input }),
      ...(cacheRead === undefined ? {} : { cacheRead }),
      ...(output === undefined ? {} : { output }),
    },
  };
}

/** Adds up lists of `{modality, tokenCount}`. */
function partsIn(...lists: readonly (JsonValue | undefined)[]): TokensByModality | undefined {
  let parts: { [M in Modality]?: number } | undefined;
  for (const list of lists)
    for (const one of Array.isArray(list) ? (list as readonly JsonValue[]).slice(0, maxDetails) : []) {
      const modality = isObject(one) ? modalities[String(one.modality)] : undefined;
      if (modality === undefined || !isObject(one)) continue;
      parts ??= {};
      parts[modality] = (parts[modality] ?? 0) + count(one.tokenCount);
    }
  return parts;
}

/** Maximum number of details that are read: there is one for each modality. */
const maxDetails = 20;

/** Service tiers by the `trafficType` of Vertex AI. */
const traffic = lookupTable<string>({
  ON_DEMAND: 'standard',
  ON_DEMAND_PRIORITY: 'priority',
  ON_DEMAND_FLEX: 'flex',
  PROVISIONED_THROUGHPUT: 'standard',
});

function decodeTier({ serviceTier, trafficType }: JsonObject): Pick<Usage, 'serviceTier'> {
  return serviceTierIn(serviceTier ?? traffic[String(trafficType)]);
}

/** Encodes `usageMetadata`; usage that came in this format is sent unchanged. */
export function writeUsage(usage: Usage): JsonObject {
  if (usage.format === formatName && usage.raw !== undefined) return usage.raw;
  const written: MutableObject = { promptTokenCount: usage.input };
  if (usage.cacheRead > 0) written.cachedContentTokenCount = usage.cacheRead;
  written.candidatesTokenCount = Math.max(0, usage.output - usage.reasoning);
  if (usage.reasoning > 0) written.thoughtsTokenCount = usage.reasoning;
  written.totalTokenCount = usage.input + usage.output;
  return written;
}

/** Reads usage from pass-through frames. Token counts are cumulative and may be missing before the last one; searches are summed. */
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

/** Decodes and encodes replies of `/v1/embeddings`, with vectors as floats or base64. */
import type { EmbedResult, EmbedVector } from '../../model/embed.ts';
import type { GatewayEvent } from '../../model/event.ts';
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { throwIfError, unusableResponse } from '../_shared/upstream-error/index.ts';
import { extraOf } from '../_shared/spelling.ts';
import { readTokenUsage } from '../_shared/usage.ts';
import { asBase64, asNumbers, checkCount, readVector } from '../_shared/vectors.ts';
import type { ReplyContext, UsageTap, WholeEncoder } from '../../sdk/format.ts';
import { countInputs } from './request.ts';
import { formatName } from './wire.ts';

/** Decodes a provider's reply, with the vectors in the order of their inputs. */
export function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { data, usage, model, object: _, ...rest } = body;
  const vectors = inOrder(Array.isArray(data) ? (data as readonly JsonValue[]) : []);
  if (vectors === undefined) {
    throw unusableResponse('sent JSON that is not a list of embeddings');
  }
  const extra = extraOf(formatName, rest);
  const result: EmbedResult = { vectors, ...extra };
  const events: GatewayEvent[] = [
    { type: 'head', id: '', model: typeof model === 'string' ? model : '' },
    { type: 'result', value: result },
  ];
  if (isObject(usage)) events.push({ type: 'usage', usage: readTokenUsage(usage, formatName) });
  return events;
}

/** Sorts the vectors by their `index`; undefined unless there is one for each index. */
function inOrder(entries: readonly JsonValue[]): readonly EmbedVector[] | undefined {
  const vectors = new Map<number, EmbedVector>();
  for (const [position, entry] of entries.entries()) {
    if (!isObject(entry)) return undefined;
    const index = typeof entry.index === 'number' ? entry.index : position;
    const vector = readVector(entry.embedding);
    if (vector !== undefined) vectors.set(index, vector);
  }
  const ordered = entries.map((_, index) => vectors.get(index)).filter((vector) => vector !== undefined);
  return ordered.length > 0 && ordered.length === entries.length ? ordered : undefined;
}

/** Encodes the response in the encoding that the client requested. */
export function encodeWhole(context: ReplyContext): WholeEncoder {
  let result: EmbedResult | undefined;
  let usage: Usage | undefined;
  const write: (vector: EmbedVector) => string | readonly number[] =
    context.body.encoding_format === 'base64' ? asBase64 : asNumbers;
  return {
    event(event) {
      if (event.type === 'result') result = event.value as EmbedResult;
      if (event.type === 'usage') usage = event.usage;
    },
    end() {
      if (result === undefined) {
        throw unusableResponse('gave no embeddings');
      }
      checkCount(result, countInputs(context.body));
      const tokens = usage?.input ?? context.inputEstimate;
      const own = usage?.format === formatName && usage.raw !== undefined ? usage.raw : {};
      return {
        object: 'list',
        data: result.vectors.map((vector, index) => ({
          object: 'embedding',
          index,
          embedding: write(vector),
        })),
        model: context.model,
        usage: { ...own, prompt_tokens: tokens, total_tokens: tokens },
        ...result.extra?.[formatName],
      };
    },
  };
}

/** Reads the usage of a reply that passes through. */
export function usageTap(): UsageTap {
  return {
    read(data) {
      const usage = parseObject(data)?.usage;
      return isObject(usage) ? readTokenUsage(usage, formatName) : undefined;
    },
  };
}

import type { JsonObject, JsonValue } from '../../model/json.ts';
import type { RerankResult } from '../../model/rerank.ts';
import type { Usage } from '../../model/usage.ts';
import type { ReplyContext, WholeEncoder } from '../../sdk/format.ts';
import { formatName } from './wire.ts';
import { rankedScores } from '../_shared/rerank.ts';
import { unusableResponse } from '../_shared/upstream-error/index.ts';

/**
 * Writes a reply that the clients of both families can read: best documents first, as many as were asked for, each with its document where
 * that was asked for.
 */
export function encodeWhole(context: ReplyContext): WholeEncoder {
  let result: RerankResult | undefined;
  let usage: Usage | undefined;
  return {
    event(event) {
      if (event.type === 'result') result = event.value as RerankResult;
      if (event.type === 'usage') usage = event.usage;
    },
    end() {
      if (result === undefined) throw unusableResponse('gave no scores');
      const { body, model } = context;
      const documents = Array.isArray(body.documents) ? (body.documents as readonly JsonValue[]) : [];
      const most = wantedOf(body) ?? documents.length;
      const results = rankedScores(result.scores, documents.length)
        .slice(0, most)
        .map(({ index, score }) => ({
          index,
          relevance_score: score,
          ...(body.return_documents === true ? { document: shown(documents[index]) } : {}),
        }));
      const { input = 0, output = 0, raw = {}, format } = usage ?? {};
      return {
        id: result.id ?? `rerank-${context.requestId}`,
        object: 'list',
        model,
        results,
        usage: { ...(format === formatName ? raw : {}), prompt_tokens: input, total_tokens: input + output },
        meta: {
          api_version: { version: '2' },
          billed_units: { search_units: result.searchUnits ?? 1 },
          ...(input === 0 ? {} : { tokens: { input_tokens: input } }),
        },
        ...result.extra?.[formatName],
      };
    },
  };
}

function wantedOf(body: JsonObject): number | undefined {
  const wanted = body.top_n ?? body.top_k;
  return typeof wanted === 'number' ? wanted : undefined;
}

function shown(document: JsonValue | undefined): JsonValue {
  return typeof document === 'string' ? { text: document } : (document ?? {});
}

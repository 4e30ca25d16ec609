import { isObject, type GatewayEvent, type JsonObject, type JsonValue } from 'sluice';
import {
  estimateEmbed,
  joinEmbed,
  reportForeign,
  defineCodec,
  requireText,
  readTokenUsage,
  readVectors,
  splitEmbed,
  throwIfError,
  type Codec,
  type EmbedPurpose,
  type EmbedRequest,
} from 'sluice/channel-kit';

/** Maximum number of texts of one request; the newest models take one. */
const mostTexts = 250;

const tasks: { readonly [Purpose in EmbedPurpose]?: string } = {
  query: 'RETRIEVAL_QUERY',
  document: 'RETRIEVAL_DOCUMENT',
  similarity: 'SEMANTIC_SIMILARITY',
  classification: 'CLASSIFICATION',
  clustering: 'CLUSTERING',
  question: 'QUESTION_ANSWERING',
  fact: 'FACT_VERIFICATION',
  'code-query': 'CODE_RETRIEVAL_QUERY',
};

/** Embeddings as Vertex AI predicts them: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api */
export const vertexEmbed: Codec<EmbedRequest> = defineCodec<EmbedRequest>({
  format: 'vertex-embed',
  operation: 'embed',
  path: '/models',
  encodeRequest({ inputs, purpose, dimensions, title, user, extra }, { model, drop }) {
    reportForeign(extra, 'vertex-embed', undefined, drop);
    if (user !== undefined) drop('user');
    const task = purpose === undefined ? undefined : tasks[purpose];
    return {
      path: `/models/${encodeURIComponent(model)}:predict`,
      body: {
        instances: inputs.map((input, index) => ({
          content: requireText(input, index),
          ...(task === undefined ? {} : { task_type: task }),
          ...(title === undefined ? {} : { title }),
        })),
        ...(dimensions === undefined ? {} : { parameters: { outputDimensionality: dimensions } }),
      },
    };
  },
  decodeWhole,
  estimate: estimateEmbed,
  split: (request) => splitEmbed(request, request.model.startsWith('gemini-') ? 1 : mostTexts),
  join: joinEmbed,
});

function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const list: readonly JsonValue[] = Array.isArray(body.predictions) ? body.predictions : [];
  let input: number | undefined;
  const values = list.map((one) => {
    const embeddings = isObject(one) && isObject(one.embeddings) ? one.embeddings : {};
    const counted = isObject(embeddings.statistics) ? embeddings.statistics.token_count : undefined;
    if (typeof counted === 'number') input = (input ?? 0) + counted;
    return embeddings.values;
  });
  return [
    { type: 'head', id: '', model: '' },
    { type: 'result', value: { vectors: readVectors(values) } },
    ...(input === undefined
      ? []
      : [{ type: 'usage', usage: readTokenUsage({ total_tokens: input }, 'vertex-embed') } as const]),
  ];
}

import { type GatewayEvent, type JsonObject, type JsonValue } from 'sluice';
import {
  expectedOfInputs,
  isObject,
  joinVectors,
  loseForeign,
  oneShot,
  onlyText,
  readPlainUsage,
  readVectors,
  splitInputs,
  throwIfError,
  type Codec,
  type EmbedPurpose,
  type EmbedRequest,
} from 'sluice/internal';
import { noClient } from '../_kit/dialect/provider-words.ts';

/** Most texts of one request; the newest models take one. */
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
export const vertexEmbed: Codec<EmbedRequest> = oneShot<EmbedRequest>({
  format: 'vertex-embed',
  operation: 'embed',
  path: '/models',
  decodeRequest: noClient,
  encodeRequest({ inputs, purpose, dimensions, title, user, extra }, { model, lose }) {
    loseForeign(extra, 'vertex-embed', undefined, lose);
    if (user !== undefined) lose('user');
    const task = purpose === undefined ? undefined : tasks[purpose];
    return {
      path: `/models/${encodeURIComponent(model)}:predict`,
      body: {
        instances: inputs.map((input, index) => ({
          content: onlyText(input, index),
          ...(task === undefined ? {} : { task_type: task }),
          ...(title === undefined ? {} : { title }),
        })),
        ...(dimensions === undefined ? {} : { parameters: { outputDimensionality: dimensions } }),
      },
    };
  },
  decodeWhole,
  encodeWhole: noClient,
  estimate: expectedOfInputs,
  split: (request) => splitInputs(request, request.model.startsWith('gemini-') ? 1 : mostTexts),
  join: joinVectors,
});

function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const list: readonly JsonValue[] = Array.isArray(body.predictions) ? body.predictions : [];
  let input = 0;
  const values = list.map((one) => {
    const embeddings = isObject(one) && isObject(one.embeddings) ? one.embeddings : {};
    const counted = isObject(embeddings.statistics) ? embeddings.statistics.token_count : undefined;
    if (typeof counted === 'number') input += counted;
    return embeddings.values;
  });
  return [
    { type: 'head', id: '', model: '' },
    { type: 'result', value: { vectors: readVectors(values) } },
    { type: 'usage', usage: readPlainUsage({ total_tokens: input }, 'vertex-embed') },
  ];
}

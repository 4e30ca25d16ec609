import {
  defineChannel,
  isObject,
  type GatewayEvent,
  type JsonObject,
  type JsonValue,
  type ModelTraits,
  type ChannelParts,
  type ChannelTools,
} from 'sluice';
import {
  decodeRerank,
  estimateRerank,
  estimateEmbed,
  joinEmbed,
  reportForeign,
  defineCodec,
  requireText,
  readTokenUsage,
  readVectors,
  splitEmbed,
  documentText,
  throwIfError,
  type Codec,
  type EmbedRequest,
  type RerankRequest,
} from 'sluice/channel-kit';
import { chat, chatFormat } from './chat.ts';
import { bearer, overHttp, plainKind } from '../_kit/http/http-channel.ts';
import { cohereInputType, dropOfEmbed } from '../_kit/dialect/provider-words.ts';

/** https://docs.cohere.com/v2/docs/structured-outputs#unsupported-schema-features */
const schemaSubset: NonNullable<ModelTraits['schemaSubset']> = {
  requiresOne: true,
  refuses: [
    'allOf',
    'oneOf',
    'not',
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
    'maxItems',
    'uniqueItems',
    'minLength',
    'maxLength',
  ],
  formats: ['date-time', 'uuid', 'date', 'time'],
  highestMinItems: 0,
  refusedInPatterns: ['^', '$', '?=', '?!'],
};

/** Maximum number of texts of one embeddings request. */
const mostTexts = 96;

const embed: Codec<EmbedRequest> = defineCodec<EmbedRequest>({
  format: 'cohere-embed',
  operation: 'embed',
  path: '/v2/embed',
  encodeRequest({ inputs, purpose, dimensions, title, user, extra }, { model, drop }) {
    dropOfEmbed({ title, user, extra }, 'cohere-embed', drop);
    return {
      path: '/v2/embed',
      body: {
        model,
        texts: inputs.map(requireText),
        input_type: cohereInputType(purpose),
        embedding_types: ['float'],
        ...(dimensions === undefined ? {} : { output_dimension: dimensions }),
      },
    };
  },
  decodeWhole: decodeEmbeddings,
  estimate: estimateEmbed,
  split: (request) => splitEmbed(request, mostTexts),
  join: joinEmbed,
});

function decodeEmbeddings(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { id, embeddings, meta } = body;
  const list: readonly JsonValue[] =
    isObject(embeddings) && Array.isArray(embeddings.float) ? embeddings.float : [];
  const vectors = readVectors(list);
  const billed = isObject(meta) && isObject(meta.billed_units) ? meta.billed_units : undefined;
  return [
    { type: 'head', id: typeof id === 'string' ? id : '', model: '' },
    { type: 'result', value: { vectors } },
    ...(billed?.input_tokens === undefined
      ? []
      : [{ type: 'usage', usage: readTokenUsage(billed, 'cohere-embed') } as const]),
  ];
}

const rerank: Codec<RerankRequest> = defineCodec<RerankRequest>({
  format: 'cohere-rerank',
  operation: 'rerank',
  path: '/v2/rerank',
  encodeRequest(request, { model, drop }) {
    const { query, documents, topN, rankFields, maxTokensPerDocument, extra } = request;
    reportForeign(extra, 'cohere-rerank', undefined, drop);
    if (request.maxChunksPerDocument !== undefined) drop('max_chunks_per_doc');
    if (request.overlapTokens !== undefined) drop('overlap_tokens');
    return {
      path: '/v2/rerank',
      body: {
        model,
        query,
        documents: documents.map((document) => documentText(document, rankFields)),
        ...(topN === undefined ? {} : { top_n: Math.min(topN, documents.length) }),
        ...(maxTokensPerDocument === undefined ? {} : { max_tokens_per_doc: maxTokensPerDocument }),
      },
    };
  },
  decodeWhole: (body) => decodeRerank(body, 'cohere-rerank'),
  estimate: estimateRerank,
});

/** https://docs.cohere.com/docs/reasoning: the budget that leaves room for an answer. */
const thinks: ModelTraits = {
  reasoning: 'thinking',
  thinkingBudget: { min: 1, max: 31_000 },
  thinksByDefault: true,
};

/** cohere-ai 8.1.0, api/resources/v2/client/requests/V2ChatRequest.d.ts; temperature: github:SillyTavern/SillyTavern#2916. */
const ranges: NonNullable<ModelTraits['ranges']> = {
  temperature: { min: 0, max: 1 },
  topP: { min: 0.01, max: 0.99 },
  topK: { min: 0, max: 500 },
  frequencyPenalty: { min: 0, max: 1 },
  presencePenalty: { min: 0, max: 1 },
};

/** Cohere, in its own words. https://docs.cohere.com/reference/about */
export default plainKind(
  defineChannel({
    name: 'cohere',
    catalogue: ['cohere', 'cohere_chat'],
    models: ['command-*', 'c4ai-*', 'embed-*', 'rerank-*'],
    setup: (options, tools: ChannelTools): ChannelParts => ({
      ...overHttp(options, tools, {
        baseUrl: 'https://api.cohere.com',
        headers: bearer,
        modelList: '/v1/models?page_size=1000',
        speaks: { chat: [chatFormat], embed: ['cohere-embed'], rerank: ['cohere-rerank'] },
        thinking: thinks,
        traits: (model) => ({
          ...(model.includes('reasoning') ? thinks : { reasoning: 'none' }),
          namedTools: false,
          schemaSubset,
          ranges,
          outputLimitField: 'max_tokens',
          replaysReasoning: true,
          refuses: [
            'choices',
            'user',
            'metadata',
            'serviceTier',
            'parallelTools',
            'customTools',
            'logprobs',
            'topLogprobs',
            'verbosity',
            'promptCacheKey',
            'modalities',
            'cache',
          ],
        }),
      }),
      codecs: { chat, embed, rerank },
    }),
  }),
);

/** Voyage AI: embeddings and reranking. */
import { defineChannel, type ChannelParts, type ChannelTools } from 'sluice';
import {
  decodeRerank,
  embedCodec,
  estimateRerank,
  reportRerankLimits,
  defineCodec,
  splitEmbed,
  documentText,
  type Codec,
  type EmbedPurpose,
  type EmbedRequest,
  type RerankRequest,
} from 'sluice/channel-kit';
import { bearer, overHttp, plainKind } from '../_kit/http/http-channel.ts';
import { voyageBatches } from './batches.ts';

const rerank: Codec<RerankRequest> = defineCodec<RerankRequest>({
  format: 'voyage-rerank',
  operation: 'rerank',
  path: '/rerank',
  encodeRequest(request, { model, drop }) {
    const { query, documents, topN, rankFields, extra } = request;
    const { truncation, ...others } = extra?.rerank ?? {};
    for (const field of Object.keys(others)) if (!field.startsWith('$')) drop(field);
    reportRerankLimits(request, drop);
    return {
      path: '/rerank',
      body: {
        model,
        query,
        documents: documents.map((document) => documentText(document, rankFields)),
        ...(topN === undefined ? {} : { top_k: Math.min(topN, documents.length) }),
        ...(truncation === undefined ? {} : { truncation }),
      },
    };
  },
  decodeWhole: (body) => decodeRerank(body, 'voyage-rerank'),
  estimate: estimateRerank,
});

const inputTypes: { readonly [Purpose in EmbedPurpose]?: string } = {
  query: 'query',
  question: 'query',
  'code-query': 'query',
  document: 'document',
};

/** The official format with other names: `output_dimension`, `input_type`. The default encoding is floats. */
const embed: Codec<EmbedRequest> = {
  ...embedCodec,
  format: 'voyage-embeddings',
  encodeRequest({ purpose, dimensions, ...request }, target) {
    const { body, ...encoded } = embedCodec.encodeRequest(request, target);
    const { encoding_format: _, user, task: _task, input_type: own, ...rest } = body;
    if (user !== undefined) target.drop('user');
    const type = purpose === undefined ? undefined : inputTypes[purpose];
    if (purpose !== undefined && type === undefined) target.drop('taskType');
    // A word of the vendor's own that nobody else knows stays what it is.
    const value = purpose === undefined ? own : type;
    return {
      ...encoded,
      body: {
        ...rest,
        ...(value === undefined ? {} : { input_type: value }),
        ...(dimensions === undefined ? {} : { output_dimension: dimensions }),
      },
    };
  },
  split: (request) => splitEmbed(request, 1000),
};

/** Voyage AI: embeddings, and rerank, whose results stand in `data`. */
export default plainKind(
  defineChannel({
    name: 'voyage',
    catalogue: ['voyage'],
    models: ['voyage-*', 'rerank-*'],
    setup: (options, tools: ChannelTools): ChannelParts => ({
      ...overHttp(options, tools, {
        baseUrl: 'https://api.voyageai.com/v1',
        headers: bearer,
        speaks: { embed: ['voyage-embeddings'], rerank: ['voyage-rerank'] },
        keeps: { 'chat-completions': ['files', 'batches'] },
        // A third less: https://docs.voyageai.com/docs/batch-inference
        batchShare: 0.67,
        batches: voyageBatches,
      }),
      codecs: { embed, rerank },
      batchModel: 'request_params.model',
    }),
  }),
);

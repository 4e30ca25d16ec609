/** Jina AI: embeddings and reranking. */
import { defineChannel, type ChannelParts, type ChannelTools } from 'sluice';
import { embedCodec, type Codec, type EmbedPurpose, type EmbedRequest } from 'sluice/channel-kit';
import { bearer, overHttp, plainKind } from './_kit/http/http-channel.ts';

const tasks: { readonly [Purpose in EmbedPurpose]?: string } = {
  query: 'retrieval.query',
  question: 'retrieval.query',
  document: 'retrieval.passage',
  similarity: 'text-matching',
  classification: 'classification',
  clustering: 'separation',
  'code-query': 'code.query',
};

/** The official format with a parameter for the purpose of the vectors. Requests floats, because older models support nothing else. */
const embed: Codec<EmbedRequest> = {
  ...embedCodec,
  format: 'jina-embeddings',
  encodeRequest({ purpose, ...request }, target) {
    const { body, ...encoded } = embedCodec.encodeRequest(request, target);
    const { encoding_format: _, user, input_type: _type, task: own, ...rest } = body;
    if (user !== undefined) target.drop('user');
    const task = purpose === undefined ? undefined : tasks[purpose];
    if (purpose !== undefined && task === undefined) target.drop('taskType');
    // A word of the vendor's own that nobody else knows stays what it is.
    const value = purpose === undefined ? own : task;
    return { ...encoded, body: { ...(value === undefined ? {} : { task: value }), ...rest } };
  },
};

/** Jina AI: embeddings and rerank. */
export default plainKind(
  defineChannel({
    name: 'jina',
    catalogue: ['jina_ai'],
    models: ['jina-*'],
    setup: (options, tools: ChannelTools): ChannelParts => ({
      ...overHttp(options, tools, {
        baseUrl: 'https://api.jina.ai/v1',
        headers: bearer,
        speaks: { embed: ['jina-embeddings'], rerank: ['rerank'] },
      }),
      codecs: { embed },
    }),
  }),
);

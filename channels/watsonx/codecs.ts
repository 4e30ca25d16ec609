/** Codecs for chat, embeddings and rerank by watsonx.ai. */
import type { GatewayEvent, JsonObject } from 'sluice';
import {
  decodeRerank,
  estimateRerank,
  estimateEmbed,
  joinEmbed,
  reportForeign,
  reportRerankLimits,
  defineCodec,
  requireText,
  readTokenUsage,
  readVectors,
  splitEmbed,
  documentText,
  throwIfError,
  upstreamError,
  type Codec,
  type EmbedRequest,
  type RerankRequest,
} from 'sluice/channel-kit';
import { chatDialect, knownMembers, objectsOf } from '../_kit/dialect/chat-dialect.ts';
import { dropOfEmbed } from '../_kit/dialect/provider-words.ts';

/** Names of the formats. */
export const chatFormat = 'watsonx-chat';
export const embedFormat = 'watsonx-embeddings';
export const rerankFormat = 'watsonx-rerank';

/** Maximum number of texts of one request: https://www.ibm.com/docs/en/watsonx/saas?topic=code-embedding-generation says 1000. */
const mostTexts = 1000;

/** The members of a chat. https://ibm.github.io/watsonx-ai-node-sdk/interfaces/1_7_x.WatsonXAI.DeploymentsTextChatStreamParams.html */
const members: ReadonlySet<string> = new Set([
  'messages',
  'tools',
  'tool_choice',
  'tool_choice_option',
  'frequency_penalty',
  'presence_penalty',
  'logit_bias',
  'logprobs',
  'top_logprobs',
  'max_tokens',
  'n',
  'response_format',
  'seed',
  'stop',
  'temperature',
  'top_p',
  'time_limit',
  'max_completion_tokens',
  'length_penalty',
  'repetition_penalty',
  'include_reasoning',
  'reasoning_effort',
]);

/** Chat completions with other names for the model and the tool choice, and with two paths in place of the member `stream`. */
export const chat = chatDialect({
  format: chatFormat,
  path: (stream) => (stream ? '/ml/v1/text/chat_stream' : '/ml/v1/text/chat'),
  request({ model, stream: _stream, stream_options: _options, ...body }, { drop }) {
    const { tool_choice: choice, ...known } = knownMembers(body, members, drop);
    return {
      model_id: model,
      ...known,
      ...(choice === undefined
        ? {}
        : typeof choice === 'string'
          ? { tool_choice_option: choice }
          : { tool_choice: choice }),
    };
  },
  reply: () => ({ chunks: (piece) => [named(refusedIn(piece))] }),
  whole: (body) => named(refusedIn(body)),
});

/** Returns the body. Throws when it has a list of errors in place of choices, which comes with a status of success. */
function refusedIn(body: JsonObject): JsonObject {
  if (Array.isArray(body['errors'])) throw upstreamError(200, JSON.stringify(body));
  return body;
}

/** Returns the body without its time, version and warnings. */
function named({
  model_id: id,
  model = id,
  created_at: _at,
  model_version: _version,
  system: _system,
  ...rest
}: JsonObject): JsonObject {
  return model === undefined ? rest : { ...rest, model };
}

/** https://www.ibm.com/watsonx/developer/capabilities/embeddings */
export const embed: Codec<EmbedRequest> = defineCodec<EmbedRequest>({
  format: embedFormat,
  operation: 'embed',
  path: '/ml/v1/text/embeddings',
  encodeRequest({ inputs, purpose, dimensions, title, user, extra }, { model, drop }) {
    dropOfEmbed({ title, user, extra }, embedFormat, drop);
    if (purpose !== undefined) drop('taskType');
    if (dimensions !== undefined) drop('dimensions');
    return { path: '/ml/v1/text/embeddings', body: { model_id: model, inputs: inputs.map(requireText) } };
  },
  decodeWhole: decodeEmbeddings,
  estimate: estimateEmbed,
  split: (request) => splitEmbed(request, mostTexts),
  join: joinEmbed,
});

function decodeEmbeddings(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const list = objectsOf(body['results']);
  const vectors = readVectors(list.map(({ embedding }) => embedding));
  return [
    { type: 'head', id: '', model: '' },
    { type: 'result', value: { vectors } },
    ...usageIn(body, embedFormat),
  ];
}

/** Returns the usage event of a reply; none where the reply states no usage, so that the gateway estimates it. */
function usageIn({ input_token_count: count }: JsonObject, format: string): readonly GatewayEvent[] {
  if (typeof count !== 'number') return [];
  return [{ type: 'usage', usage: readTokenUsage({ prompt_tokens: count }, format) }];
}

/** https://ibm.github.io/watsonx-ai-node-sdk/interfaces/1_4_x.WatsonXAI.RerankResponse.html */
export const rerank: Codec<RerankRequest> = defineCodec<RerankRequest>({
  format: rerankFormat,
  operation: 'rerank',
  path: '/ml/v1/text/rerank',
  encodeRequest(request, { model, drop }) {
    const { query, documents, topN, rankFields, extra } = request;
    reportForeign(extra, rerankFormat, undefined, drop);
    reportRerankLimits(request, drop);
    return {
      path: '/ml/v1/text/rerank',
      body: {
        model_id: model,
        query,
        inputs: documents.map((document) => ({ text: documentText(document, rankFields) })),
        ...(topN === undefined
          ? {}
          : { parameters: { return_options: { top_n: Math.min(topN, documents.length) } } }),
      },
    };
  },
  decodeWhole({ results = null, ...body }) {
    throwIfError(body);
    return [...decodeRerank({ results }, rerankFormat), ...usageIn(body, rerankFormat)];
  },
  estimate: estimateRerank,
});

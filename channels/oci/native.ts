/** Codecs for chat, embeddings and rerank by the native API of OCI Generative AI. */
import { isObject, type ChatRequest, type JsonObject } from 'sluice';
import {
  decodeRerank,
  estimateRerank,
  estimateEmbed,
  joinEmbed,
  reportForeign,
  reportRerankLimits,
  defineCodec,
  requireText,
  splitEmbed,
  documentText,
  throwIfError,
  lookupTable,
  type Codec,
  type EmbedRequest,
  type RerankRequest,
} from 'sluice/channel-kit';
import { chatDialect, objectsOf, type DialectReply } from '../_kit/dialect/chat-dialect.ts';
import { cohereReply, cohereRequest, cohereWhole } from './cohere-chat.ts';
import { commandAFormat, commandAReply, commandARequest, commandAWhole } from './command-a.ts';
import { genericReply, genericRequest, genericWhole } from './generic-chat.ts';
import { cohereInputType, embedded, dropOfEmbed } from '../_kit/dialect/provider-words.ts';

/** Name of the format. */
export const nativeFormat = 'oci-native';

/** Maximum number of texts of one request, as for Cohere's models at other providers. */
const mostTexts = 96;

/** Chat formats of the native API. */
export type EndpointWords = 'generic' | 'cohere' | 'cohere-v2';

const wholes = lookupTable<(response: JsonObject) => JsonObject>({
  COHERE: cohereWhole,
  [commandAFormat]: commandAWhole,
});
const requests = { generic: genericRequest, cohere: cohereRequest, 'cohere-v2': commandARequest };

/** Codecs by operation. */
export interface OciNative {
  readonly chat: Codec<ChatRequest>;
  readonly embed: Codec<EmbedRequest>;
  readonly rerank: Codec<RerankRequest>;
}

/**
 * Returns the codecs for the compartment that pays. `ofEndpoints` is the chat format of the models behind endpoints of the account, which
 * their names do not state.
 * https://docs.oracle.com/en-us/iaas/api/#/en/generative-ai-inference/20231130/ChatResult/Chat
 * https://docs.oracle.com/en-us/iaas/api/#/en/generative-ai-inference/20231130/EmbedTextResult/EmbedText
 * https://docs.oracle.com/en-us/iaas/api/#/en/generative-ai-inference/20231130/RerankTextResult/RerankText
 */
export function ociNative(compartmentId: string, ofEndpoints: EndpointWords): OciNative {
  const servingOf = (model: string): JsonObject => ({
    compartmentId,
    servingMode: isEndpoint(model)
      ? { servingType: 'DEDICATED', endpointId: model }
      : { servingType: 'ON_DEMAND', modelId: model },
  });
  return {
    chat: chatCodec(servingOf, ofEndpoints),
    embed: embedCodec(servingOf),
    rerank: rerankCodec(servingOf),
  };
}

/** Function that returns the members of a request that select the model. */
type ServingMode = (model: string) => JsonObject;

function chatCodec(servingOf: ServingMode, ofEndpoints: EndpointWords): Codec<ChatRequest> {
  const wordsOf = (model: string): EndpointWords => {
    if (isEndpoint(model)) return ofEndpoints;
    if (model.startsWith('cohere.command-a')) return 'cohere-v2';
    return model.startsWith('cohere.') ? 'cohere' : 'generic';
  };
  return chatDialect({
    format: nativeFormat,
    path: () => '/20231130/actions/chat',
    request: (body, target) => ({
      ...servingOf(target.model),
      chatRequest: requests[wordsOf(target.model)](body, target),
    }),
    reply() {
      const generic = genericReply();
      const others: Readonly<Record<string, DialectReply>> = {
        COHERE: cohereReply(),
        [commandAFormat]: commandAReply(),
      };
      return {
        chunks: (piece, event) => (others[String(piece['apiFormat'])] ?? generic).chunks(piece, event),
      };
    },
    whole({ modelId, chatResponse }) {
      const reply = isObject(chatResponse) ? chatResponse : {};
      return {
        model: modelId ?? '',
        ...(wholes[String(reply['apiFormat'])] ?? genericWhole)(reply),
      };
    },
  });
}

function embedCodec(servingOf: ServingMode): Codec<EmbedRequest> {
  return defineCodec<EmbedRequest>({
    format: nativeFormat,
    operation: 'embed',
    path: '/20231130/actions/embedText',
    encodeRequest(request, { model, drop }) {
      const { inputs, purpose, dimensions } = request;
      dropOfEmbed(request, nativeFormat, drop);
      return {
        path: '/20231130/actions/embedText',
        body: {
          ...servingOf(model),
          inputs: inputs.map(requireText),
          inputType: cohereInputType(purpose).toUpperCase(),
          ...(dimensions === undefined ? {} : { outputDimensions: dimensions }),
        },
      };
    },
    decodeWhole(body) {
      throwIfError(body);
      const { id, embeddings, usage } = body;
      return embedded(
        Array.isArray(embeddings) ? embeddings : [],
        isObject(usage) ? usage['promptTokens'] : undefined,
        typeof id === 'string' ? id : '',
      );
    },
    estimate: estimateEmbed,
    split: (request) => splitEmbed(request, mostTexts),
    join: joinEmbed,
  });
}

function rerankCodec(servingOf: ServingMode): Codec<RerankRequest> {
  return defineCodec<RerankRequest>({
    format: nativeFormat,
    operation: 'rerank',
    path: '/20231130/actions/rerankText',
    encodeRequest(request, { model, drop }) {
      const { query, documents, topN, rankFields, extra } = request;
      reportForeign(extra, nativeFormat, undefined, drop);
      reportRerankLimits(request, drop);
      return {
        path: '/20231130/actions/rerankText',
        body: {
          ...servingOf(model),
          input: query,
          documents: documents.map((document) => documentText(document, rankFields)),
          ...(topN === undefined ? {} : { topN: Math.min(topN, documents.length) }),
        },
      };
    },
    decodeWhole: ({ documentRanks: ranks, ...body }) =>
      decodeRerank(
        Array.isArray(ranks)
          ? {
              ...body,
              results: objectsOf(ranks).map(({ index, relevanceScore }) => ({
                index: index ?? null,
                relevance_score: relevanceScore ?? null,
              })),
            }
          : body,
        nativeFormat,
      ),
    estimate: estimateRerank,
  });
}

/** Models of the account's own machines are named by the address of their endpoint. */
function isEndpoint(model: string): boolean {
  return model.startsWith('ocid1.generativeaiendpoint.');
}

/** Codecs for embeddings, rerank and images by Bedrock's InvokeModel, whose bodies differ by model maker. */
import { isObject, type GatewayEvent, type JsonObject, type JsonValue } from 'sluice';
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
  type Codec,
  type EmbedPurpose,
  type EmbedRequest,
  type EncodedRequest,
  type RerankRequest,
} from 'sluice/channel-kit';
import { imageCodecs } from './images.ts';
import { cohereInputType, embedded, dropOfEmbed } from '../_kit/dialect/provider-words.ts';

/** Name of the format. */
export const formatName = 'bedrock-invoke';

/** Maximum number of texts of one request, where the model takes more than one. */
const mostTexts = 96;

function invoke(model: string, body: JsonObject): EncodedRequest {
  return { path: `/model/${encodeURIComponent(model)}/invoke`, body };
}

/**
 * Purposes of Nova's embeddings; the rest is embedded as what a search looks through. `TEXT_RETRIEVAL` searches texts alone, and this channel
 * embeds nothing else. https://docs.aws.amazon.com/nova/latest/userguide/embeddings-schema.html
 */
const novaPurposes: { readonly [Purpose in EmbedPurpose]?: string } = {
  query: 'TEXT_RETRIEVAL',
  question: 'TEXT_RETRIEVAL',
  'code-query': 'TEXT_RETRIEVAL',
  classification: 'CLASSIFICATION',
  clustering: 'CLUSTERING',
};

/** Returns the body of a request for an embedding of Nova, which takes one text. The source is that of {@link novaPurposes}. */
function novaBody(text: string, { purpose, dimensions }: EmbedRequest): JsonObject {
  return {
    taskType: 'SINGLE_EMBEDDING',
    singleEmbeddingParams: {
      embeddingPurpose: (purpose === undefined ? undefined : novaPurposes[purpose]) ?? 'GENERIC_INDEX',
      ...(dimensions === undefined ? {} : { embeddingDimension: dimensions }),
      // Text that is too long is an error, as with the other models: the client would not see that a part is missing.
      text: { truncationMode: 'NONE', value: text },
    },
  };
}

/** Returns the body of a request for an embedding of Titan, which takes one text. */
function titanBody(model: string, text: string, { dimensions }: EmbedRequest): JsonObject {
  if (dimensions === undefined) return { inputText: text };
  // https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-mm.html
  if (/amazon\.titan-embed-image/.test(model))
    return { inputText: text, embeddingConfig: { outputEmbeddingLength: dimensions } };
  return { inputText: text, dimensions };
}

/** Embeddings of Titan and Nova (one text a request) and of Cohere. */
const embed: Codec<EmbedRequest> = defineCodec<EmbedRequest>({
  format: formatName,
  operation: 'embed',
  path: '',
  encodeRequest(request, { model, drop }) {
    const { inputs, purpose, dimensions } = request;
    dropOfEmbed(request, formatName, drop);
    if (/cohere\./.test(model)) {
      return invoke(model, {
        texts: inputs.map(requireText),
        input_type: cohereInputType(purpose),
        embedding_types: ['float'],
        ...(dimensions === undefined ? {} : { output_dimension: dimensions }),
      });
    }
    const [input] = inputs;
    if (input === undefined) throw new Error('There is nothing to embed.');
    const text = requireText(input, 0);
    return invoke(
      model,
      /amazon\.nova-/.test(model) ? novaBody(text, request) : titanBody(model, text, request),
    );
  },
  decodeWhole: decodeEmbeddings,
  estimate: estimateEmbed,
  split: (request, { mostInputs = mostTexts }) => splitEmbed(request, mostInputs),
  join: joinEmbed,
});

function decodeEmbeddings(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { embedding, embeddings, inputTextTokenCount } = body;
  const several = isObject(embeddings) ? embeddings.float : embeddings;
  const list: readonly JsonValue[] = Array.isArray(several) ? several : [embedding ?? null];
  return embedded(
    // Nova returns the type of the input with each vector.
    list.map((one) => (isObject(one) ? (one.embedding ?? null) : one)),
    inputTextTokenCount,
  );
}

/** Rerank of Cohere and of Amazon. */
const rerank: Codec<RerankRequest> = defineCodec<RerankRequest>({
  format: formatName,
  operation: 'rerank',
  path: '',
  encodeRequest(request, { model, drop }) {
    const { query, documents, topN, rankFields, extra } = request;
    reportForeign(extra, formatName, undefined, drop);
    reportRerankLimits(request, drop);
    return invoke(model, {
      query,
      documents: documents.map((document) => documentText(document, rankFields)),
      ...(topN === undefined ? {} : { top_n: Math.min(topN, documents.length) }),
      ...(/cohere\./.test(model) ? { api_version: 2 } : {}),
    });
  },
  decodeWhole: (body) => decodeRerank(body, formatName),
  estimate: estimateRerank,
});

/** The codecs for what is no chat. */
export const invokeCodecs = { embed, rerank, ...imageCodecs(formatName) };

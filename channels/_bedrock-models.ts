import { type GatewayEvent, type JsonObject, type JsonValue } from 'sluice';
import {
  decodeScores,
  expectedOfDocuments,
  expectedOfInputs,
  isObject,
  joinVectors,
  loseForeign,
  loseRerankLimits,
  oneShot,
  onlyText,
  splitInputs,
  textOfDocument,
  throwIfError,
  type Codec,
  type EmbedRequest,
  type EncodedRequest,
  type RerankRequest,
} from 'sluice/internal';
import { imageCodecs } from './_bedrock-images.ts';
import { cohereInputType, embedded, loseOfEmbed, noClient } from './_provider-words.ts';

/** What InvokeModel is asked in: the words of each maker's models. */
export const formatName = 'bedrock-invoke';

/** Most texts of one request, where the model takes more than one. */
const mostTexts = 96;

function invoke(model: string, body: JsonObject): EncodedRequest {
  return { path: `/model/${encodeURIComponent(model)}/invoke`, body };
}

/** Embeddings of Titan (one text a request) and of Cohere. */
const embed: Codec<EmbedRequest> = oneShot<EmbedRequest>({
  format: formatName,
  operation: 'embed',
  path: '',
  decodeRequest: noClient,
  encodeRequest(request, { model, lose }) {
    const { inputs, purpose, dimensions } = request;
    loseOfEmbed(request, formatName, lose);
    if (/cohere\./.test(model)) {
      return invoke(model, {
        texts: inputs.map(onlyText),
        input_type: cohereInputType(purpose),
        embedding_types: ['float'],
        ...(dimensions === undefined ? {} : { output_dimension: dimensions }),
      });
    }
    const [input] = inputs;
    if (input === undefined) throw new Error('There is nothing to embed.');
    return invoke(model, {
      inputText: onlyText(input, 0),
      ...(dimensions === undefined ? {} : { dimensions }),
    });
  },
  decodeWhole: decodeEmbeddings,
  encodeWhole: noClient,
  estimate: expectedOfInputs,
  split: (request, { mostInputs = mostTexts }) => splitInputs(request, mostInputs),
  join: joinVectors,
});

function decodeEmbeddings(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { embedding, embeddings, inputTextTokenCount } = body;
  const several = isObject(embeddings) ? embeddings.float : embeddings;
  return embedded(
    Array.isArray(several) ? (several as readonly JsonValue[]) : [embedding ?? null],
    inputTextTokenCount,
  );
}

/** Rerank of Cohere and of Amazon. */
const rerank: Codec<RerankRequest> = oneShot<RerankRequest>({
  format: formatName,
  operation: 'rerank',
  path: '',
  decodeRequest: noClient,
  encodeRequest(request, { model, lose }) {
    const { query, documents, topN, rankFields, extra } = request;
    loseForeign(extra, formatName, undefined, lose);
    loseRerankLimits(request, lose);
    return invoke(model, {
      query,
      documents: documents.map((document) => textOfDocument(document, rankFields)),
      ...(topN === undefined ? {} : { top_n: Math.min(topN, documents.length) }),
      ...(/cohere\./.test(model) ? { api_version: 2 } : {}),
    });
  },
  decodeWhole: (body) => decodeScores(body, formatName),
  encodeWhole: noClient,
  estimate: expectedOfDocuments,
});

/** The codecs for what is no chat. */
export const invokeCodecs = { embed, rerank, ...imageCodecs(formatName) };

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
  readVectors,
  splitInputs,
  textOfDocument,
  throwIfError,
  type Codec,
  type EmbedRequest,
  type EncodedRequest,
  type RerankRequest,
} from 'sluice/internal';
import { imageCodecs } from './_bedrock-images.ts';
import { cohereInputType, noClient } from './_provider-words.ts';

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
  encodeRequest({ inputs, purpose, dimensions, title, user, extra }, { model, lose }) {
    loseForeign(extra, formatName, undefined, lose);
    if (title !== undefined) lose('title');
    if (user !== undefined) lose('user');
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
  const list = Array.isArray(several) ? (several as readonly JsonValue[]) : [embedding];
  const vectors = readVectors(list);
  const input = typeof inputTextTokenCount === 'number' ? inputTextTokenCount : undefined;
  const usage = { input: input ?? 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  return [
    { type: 'head', id: '', model: '' },
    { type: 'result', value: { vectors } },
    ...(input === undefined ? [] : [{ type: 'usage' as const, usage }]),
  ];
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

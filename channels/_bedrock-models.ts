import { GatewayError, type GatewayEvent, type JsonObject, type JsonValue } from 'sluice';
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
  type ImageRequest,
  type RerankRequest,
} from 'sluice/internal';
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

/** Images of Nova Canvas and Titan, which take sizes and counts, and of Stability, which takes ratios. */
const generate: Codec<ImageRequest> = oneShot<ImageRequest>({
  format: formatName,
  operation: 'generate-image',
  path: '',
  decodeRequest: noClient,
  encodeRequest(request, { model, lose }) {
    const { prompt, extra } = request;
    loseForeign(extra, formatName, undefined, lose);
    for (const name of unknown) if (request[name] !== undefined) lose(names[name] ?? name);
    return invoke(
      model,
      /stability\./.test(model) ? ofStability(request, lose) : ofAmazon(request, prompt, lose),
    );
  },
  decodeWhole: decodeImages,
  encodeWhole: noClient,
  estimate: ({ count = 1 }) => ({ input: 0, output: 0, units: { images: count } }),
});

type Lose = (path: string) => void;

/** What neither takes; bytes in base64 are what comes anyway. */
const unknown = ['background', 'compression', 'style', 'partials', 'user'] as const;
const names: Readonly<Record<string, string>> = {
  compression: 'output_compression',
  partials: 'partial_images',
  fileFormat: 'output_format',
};

function ofAmazon({ size, quality, count, fileFormat }: ImageRequest, text: string, lose: Lose): JsonObject {
  const [, width, height] = /^(\d{1,5})x(\d{1,5})$/.exec(size ?? '') ?? [];
  if (size !== undefined && size !== 'auto' && width === undefined) lose('size');
  if (fileFormat !== undefined && fileFormat !== 'png') lose('output_format');
  return {
    taskType: 'TEXT_IMAGE',
    textToImageParams: { text },
    imageGenerationConfig: {
      numberOfImages: count ?? 1,
      ...(width === undefined ? {} : { width: Number(width), height: Number(height) }),
      ...(quality === undefined || quality === 'auto'
        ? {}
        : { quality: quality === 'high' || quality === 'hd' ? 'premium' : 'standard' }),
    },
  };
}

/** Width divided by height, in the ratios that the models have. */
const ratios: readonly (readonly [ratio: string, value: number])[] = (
  ['16:9', '1:1', '21:9', '2:3', '3:2', '4:5', '5:4', '9:16', '9:21'] as const
).map((ratio) => {
  const [width = 1, height = 1] = ratio.split(':').map(Number);
  return [ratio, width / height];
});

function ofStability({ prompt, size, quality, count = 1, fileFormat }: ImageRequest, lose: Lose): JsonObject {
  if (count > 1) {
    throw new GatewayError('unsupported_value', 'n must be 1: this model makes one image a request.', {
      param: 'n',
    });
  }
  if (quality !== undefined && quality !== 'auto') lose('quality');
  const [, width, height] = /^(\d{1,5})x(\d{1,5})$/.exec(size ?? '') ?? [];
  const wanted = Number(width) / Number(height);
  const [ratio] = ratios.find(([, value]) => Math.abs(value - wanted) < 0.01) ?? [size];
  const known = ratios.some(([one]) => one === ratio);
  if (size !== undefined && size !== 'auto' && !known) lose('size');
  return {
    prompt,
    ...(known && ratio !== undefined ? { aspect_ratio: ratio } : {}),
    ...(fileFormat === undefined ? {} : { output_format: fileFormat }),
  };
}

function decodeImages(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { images, finish_reasons: reasons } = body;
  const made = (Array.isArray(images) ? (images as readonly JsonValue[]) : []).filter(
    (image) => typeof image === 'string',
  );
  const [refused] = Array.isArray(reasons) ? reasons.filter((reason) => typeof reason === 'string') : [];
  if (refused?.startsWith('Filter reason') === true) {
    throw new GatewayError('content_policy_violation', `The upstream refused the request: ${refused}.`, {
      origin: 'upstream',
    });
  }
  if (made.length === 0)
    throw new GatewayError('upstream_error', 'The upstream gave no image.', { origin: 'upstream' });
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  return [
    { type: 'usage', usage: { ...usage, units: { images: made.length } } },
    { type: 'result', value: { images: made.map((base64) => ({ base64 })) } },
  ];
}

/** The codecs for what is no chat. */
export const invokeCodecs = { embed, rerank, 'generate-image': generate };

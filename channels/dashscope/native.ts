import { isObject, type ChannelOptions, type ChannelTools, type JsonObject, type ChannelParts } from 'sluice';
import {
  limitImages,
  decodeRerank,
  estimateRerank,
  videoError,
  imageText,
  reportRerankLimits,
  reportVideoSettings,
  defineCodec,
  videoStateReader,
  documentText,
  throwIfError,
  defaultSeconds,
  requestedRatio,
  type Codec,
  type EncodedRequest,
  type EncodeTarget,
  type RerankRequest,
  type VideoReport,
  type VideoRequest,
  defineVideoCodecs,
} from 'sluice/channel-kit';
import { awaitingImages, dashscopeImages } from './images.ts';
import { dashscopeSpeech } from './speech.ts';
import { bearer, overHttp } from '../_kit/http/http-channel.ts';
import { ownWords } from '../_kit/dialect/own-words.ts';
import { offeredResolution } from '../_kit/media/videos.ts';

/** The name of DashScope's own words, which no client sends. */
const format = 'dashscope';

/** dashscope 2.0.2, rerank/text_rerank.py; https://www.alibabacloud.com/help/en/model-studio/text-rerank-api */
const rerank: Codec<RerankRequest> = defineCodec<RerankRequest>({
  format,
  operation: 'rerank',
  path: '',
  encodeRequest(request, { model, drop }) {
    const { query, documents, topN, rankFields, extra } = request;
    const { instruct } = ownWords(extra, ['instruct'], drop);
    reportRerankLimits(request, drop);
    return {
      path: '/services/rerank/text-rerank/text-rerank',
      body: {
        model,
        input: { query, documents: documents.map((document) => documentText(document, rankFields)) },
        parameters: {
          return_documents: false,
          ...(topN === undefined ? {} : { top_n: Math.min(topN, documents.length) }),
          ...(instruct === undefined ? {} : { instruct }),
        },
      },
    };
  },
  decodeWhole(body) {
    throwIfError(body);
    const { output, usage, request_id: id } = body;
    const results = isObject(output) ? output.results : undefined;
    const tokens = isObject(usage) ? usage.total_tokens : undefined;
    return decodeRerank(
      {
        ...(id === undefined ? {} : { id }),
        ...(results === undefined ? {} : { results }),
        ...(typeof tokens === 'number' ? { usage: { prompt_tokens: tokens, total_tokens: tokens } } : {}),
      },
      format,
    );
  },
  estimate: estimateRerank,
});

const ratios = '16:9 9:16 1:1 4:3 3:4'.split(' ');
const resolutions: ReadonlySet<string> = new Set(['480p', '720p', '1080p']);

/** Native members that clients may set. None of them changes the price. */
const freeWords: ReadonlySet<string> = new Set(['prompt_extend', 'watermark']);

/**
 * Encodes a request in the protocol of Wan 2.7 and later, and of HappyHorse. dashscope 2.0.2, aigc/video_synthesis.py;
 * https://www.alibabacloud.com/help/model-studio/image-to-video-general-api-reference
 */
function encodeVideo(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  reportVideoSettings(
    request,
    ['seconds', 'size', 'aspectRatio', 'resolution', 'seed', 'negativePrompt'],
    target,
  );
  const { prompt, imageRole, seed, negativePrompt, metadata = {} } = request;
  const isReference = imageRole === 'reference' || /r2v/.test(target.model);
  const images = limitImages(request.images, isReference ? 5 : 2, format, target);
  const media = images.map((image, index) => ({
    type: isReference ? 'reference_image' : index === 0 ? 'first_frame' : 'last_frame',
    url: imageText(image, 'data-url', format),
  }));
  const ratio = requestedRatio(request, ratios, target);
  const resolution = offeredResolution(request, (one) => resolutions.has(one), target);
  const own: JsonObject = Object.fromEntries(
    Object.entries(metadata).filter(([name]) => {
      if (!freeWords.has(name)) target.drop(`metadata.${name}`);
      return freeWords.has(name);
    }),
  );
  return {
    path: '/services/aigc/video-generation/video-synthesis',
    headers: { 'x-dashscope-async': 'enable' },
    body: {
      model: target.model,
      input: {
        prompt,
        ...(negativePrompt === undefined ? {} : { negative_prompt: negativePrompt }),
        ...(media.length === 0 ? {} : { media }),
      },
      parameters: {
        ...own,
        // Always sends a duration, so that the cost of a video without one is known.
        duration: Math.ceil(request.seconds ?? defaultSeconds(request)),
        ...(resolution === undefined ? {} : { resolution: resolution.toUpperCase() }),
        // A video that begins with an image has its ratio.
        ...(ratio === undefined || (media.length > 0 && !isReference) ? {} : { ratio }),
        ...(seed === undefined ? {} : { seed }),
      },
    },
  };
}

/** dashscope 2.0.2, common/constants.py (TaskStatus). A task that is not known any more has failed. */
const readState = videoStateReader({
  pending: 'queued',
  suspended: 'queued',
  running: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  unknown: 'failed',
  canceled: 'cancelled',
});

function readReport(body: JsonObject): VideoReport {
  const { output } = body;
  if (!isObject(output)) throwIfError(body);
  const { task_id: id, task_status: status, video_url: url, code, message } = isObject(output) ? output : {};
  const state = readState(status);
  return {
    id: typeof id === 'string' ? id : '',
    state,
    ...(typeof url === 'string' ? { url } : {}),
    ...(state === 'failed' ? { error: videoError(code, message) } : {}),
  };
}

const videos = defineVideoCodecs({
  format,
  encode: encodeVideo,
  readReport,
  ask: ({ id }) => ({ path: `/tasks/${encodeURIComponent(id)}`, method: 'GET', body: {} }),
  cancel: ({ id }) => ({ path: `/tasks/${encodeURIComponent(id)}/cancel`, method: 'POST', body: {} }),
});

/** Adds what the provider has at its own API, beside the one that is compatible with others: rerank, images, speech and videos. */
export function withNative(
  parts: ChannelParts,
  options: ChannelOptions,
  tools: ChannelTools,
  home: string,
): ChannelParts {
  const [compatible, native] = ['/compatible-mode/v1', '/api/v1'];
  const base = (options.baseUrl ?? home).replace(/\/+$/, '');
  if (!base.endsWith(compatible)) return parts;
  const baseUrl = base.slice(0, base.length - compatible.length) + native;
  const there = overHttp({ ...options, baseUrl }, tools, { baseUrl, headers: bearer, speaks: {} });
  const open = awaitingImages(there.open);
  return {
    ...parts,
    speaks: {
      ...parts.speaks,
      rerank: [format],
      'generate-image': [format],
      speak: [format],
      'create-video': [format],
      'get-video': [format],
      'delete-video': [format],
    },
    codecs: {
      ...parts.codecs,
      ...videos,
      ...dashscopeImages(format),
      rerank,
      speak: dashscopeSpeech(format),
    },
    open: (call, request) => (request.format === format ? open(call, request) : parts.open(call, request)),
  };
}

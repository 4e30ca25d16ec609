/** Codecs for image edits, videos and speech by xAI's API. */
import { of } from 'rxjs';
import { isObject, type JsonObject, type ChannelParts } from 'sluice';
import {
  speechCodec,
  limitImages,
  contentRefused,
  videoError,
  imageText,
  reportVideoSettings,
  videoStateReader,
  throwIfError,
  defaultSeconds,
  requestedRatio,
  type Codec,
  type EncodedRequest,
  type EncodeTarget,
  type ImageRequest,
  type GeneratedImage,
  type SpeakRequest,
  type VideoReport,
  type VideoRequest,
  defineVideoCodecs,
} from 'sluice/channel-kit';
import { ownWords } from '../_kit/dialect/own-words.ts';
import { asDataUrls, pictureAt, pictureCodecs, ratioFor } from '../_kit/media/pictures.ts';
import { soundFor, voiceName } from '../_kit/media/speech.ts';
import { offeredResolution } from '../_kit/media/videos.ts';

/** Name of the format, which no client sends. */
export const mediaFormat = 'xai';

/** @ai-sdk/xai 3.0.138, src/xai-image-model.ts and xai-image-options.ts */
const imageRatios = '1:1 16:9 9:16 4:3 3:4 3:2 2:3 2:1 1:2 19.5:9 9:19.5 20:9 9:20'.split(' ');

/** Maximum number of images that one request edits: https://docs.x.ai/developers/model-capabilities/images/multi-image-editing */
const mostImages = 3;

function encodeImages(request: ImageRequest, { model, drop }: EncodeTarget, own: JsonObject): EncodedRequest {
  const { prompt, images, count, quality, fileFormat } = request;
  const [first, ...others] = asDataUrls(images).map((url) => ({ url, type: 'image_url' }));
  const ratio = ratioFor(request, imageRatios, drop);
  return {
    path: first === undefined ? '/images/generations' : '/images/edits',
    body: {
      ...own,
      model,
      prompt,
      ...(first === undefined ? {} : others.length === 0 ? { image: first } : { images: [first, ...others] }),
      ...(count === undefined ? {} : { n: count }),
      ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
      ...(quality === undefined || quality === 'auto' ? {} : { quality }),
      ...(fileFormat === undefined ? {} : { output_format: fileFormat }),
      // Addresses end after a while.
      response_format: 'b64_json',
    },
  };
}

function decodeImages(body: JsonObject): readonly GeneratedImage[] {
  throwIfError(body);
  const list = Array.isArray(body.data) ? body.data.filter(isObject) : [];
  if (list.some(({ respect_moderation: isFit }) => isFit === false)) throw contentRefused('');
  return list.flatMap(({ b64_json: base64, url, revised_prompt: revised }) => {
    const prompt = typeof revised === 'string' && revised !== '' ? { revisedPrompt: revised } : {};
    if (typeof base64 === 'string') return [{ base64, ...prompt }];
    return typeof url === 'string' ? [{ ...pictureAt(url), ...prompt }] : [];
  });
}

const { 'edit-image': editing } = pictureCodecs({
  format: mediaFormat,
  changes: mostImages,
  carries: ['quality', 'fileFormat'],
  own: ['aspect_ratio', 'resolution'],
  atOnce: 10,
  encode: encodeImages,
  decode: decodeImages,
});

/** Images made from others. What they cost is stated beside them. */
export const edits: Codec<ImageRequest> | undefined = editing && {
  ...editing,
  decodeWhole: (body, traits) =>
    editing
      .decodeWhole(body, traits)
      .map((event) =>
        event.type === 'usage' && isObject(body.usage)
          ? { ...event, usage: { ...event.usage, format: mediaFormat, raw: body.usage } }
          : event,
      ),
};

/** @ai-sdk/xai 3.0.138, src/xai-video-model.ts and xai-video-options.ts */
const videoRatios = '1:1 16:9 9:16 4:3 3:4 3:2 2:3'.split(' ');
const resolutions: ReadonlySet<string> = new Set(['480p', '720p', '1080p']);
const mostReferences = 7;

function encodeVideo(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  reportVideoSettings(request, ['seconds', 'size', 'aspectRatio', 'resolution', 'user'], target);
  const { prompt, imageRole, user, metadata = {} } = request;
  // Members of its own may name another video or more images, which cost more than is reserved.
  for (const name of Object.keys(metadata)) if (name !== 'generate_audio') target.drop(`metadata.${name}`);
  const isReference = imageRole === 'reference' || (imageRole === undefined && request.images.length > 1);
  const images = limitImages(request.images, isReference ? mostReferences : 1, mediaFormat, target).map(
    (image) => ({
      url: imageText(image, 'data-url', mediaFormat),
    }),
  );
  const [first] = images;
  const ratio = requestedRatio(request, videoRatios, target);
  const resolution = offeredResolution(request, (one) => resolutions.has(one), target);
  return {
    path: '/videos/generations',
    body: {
      model: target.model,
      prompt,
      // Always sends a duration, so that the cost of a video without one is known.
      duration: Math.ceil(request.seconds ?? defaultSeconds(request)),
      ...(first === undefined ? {} : isReference ? { reference_images: images } : { image: first }),
      ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
      ...(resolution === undefined ? {} : { resolution }),
      ...(typeof metadata.generate_audio === 'boolean' ? { generate_audio: metadata.generate_audio } : {}),
      ...(user === undefined ? {} : { user }),
    },
  };
}

const readState = videoStateReader({
  pending: 'in_progress',
  done: 'completed',
  failed: 'failed',
  expired: 'failed',
});

/** Decodes a response about a task: its id when it is created, later its state, which is missing while the task runs. */
function readReport(body: JsonObject): VideoReport {
  const { request_id: id, status, video, progress, error } = body;
  // A failed task has its error in the same member as an error response.
  if (status === undefined) throwIfError(body);
  const { url, duration, respect_moderation: isFit } = isObject(video) ? video : {};
  const isUnfit = isFit === false;
  const state = isUnfit
    ? 'failed'
    : (readState(status) ?? (typeof url === 'string' ? 'completed' : undefined));
  const { code, message } = isObject(error) ? error : {};
  return {
    id: typeof id === 'string' ? id : '',
    state,
    ...(typeof progress === 'number' ? { progress } : {}),
    ...(typeof url === 'string' && !isUnfit ? { url } : {}),
    ...(typeof duration === 'number' && duration > 0 ? { seconds: duration } : {}),
    ...(state === 'failed'
      ? {
          error: isUnfit
            ? videoError('content_policy_violation', 'The video was refused.')
            : videoError(code ?? status, message),
        }
      : {}),
  };
}

/** Codecs for videos. Tasks cannot be cancelled. */
export const videoCodecs = defineVideoCodecs({
  format: mediaFormat,
  encode: encodeVideo,
  readReport,
  ask: ({ id }) => ({ path: `/videos/${encodeURIComponent(id)}`, method: 'GET', body: {} }),
});

/** https://docs.x.ai/developers/model-capabilities/audio/text-to-speech */
const sounds = { mp3: 'mp3', wav: 'wav', pcm: 'pcm' } as const;

function encodeSpeech(request: SpeakRequest, { drop }: EncodeTarget): EncodedRequest {
  const { text, speed, instructions, extra } = request;
  const { language = 'auto', ...own } = ownWords(extra, ['language'], drop);
  if (speed !== undefined && speed !== 1) drop('speed');
  if (instructions !== undefined) drop('instructions');
  return {
    path: '/tts',
    body: {
      ...own,
      text,
      voice_id: voiceName(request),
      language,
      output_format: { codec: soundFor(request, sounds), sample_rate: 24_000 },
    },
  };
}

/** Speech. */
export const speech = speechCodec(mediaFormat, encodeSpeech);

/** Handles the 202 for a running task, which can have an empty body: @ai-sdk/xai 3.0.138, src/xai-video-model.ts */
export function withWaiting(parts: ChannelParts): ChannelParts {
  return {
    ...parts,
    async open(call, request) {
      const answer = await parts.open(call, request);
      if (request.operation !== 'get-video' || answer.status !== 202) return answer;
      return { ...answer, status: 200, bytes: of(Buffer.from('{"status":"pending"}')) };
    },
  };
}

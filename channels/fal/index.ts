import { z } from 'zod';
import {
  defineChannel,
  isObject,
  type JsonObject,
  type JsonValue,
  type ChannelParts,
  type ChannelTools,
} from 'sluice';
import {
  contentRefused,
  type EncodedRequest,
  type EncodeTarget,
  type ImageRequest,
  type GeneratedImage,
} from 'sluice/channel-kit';
import { applicationOf, falVideos, openVideos, videoFormat } from './videos.ts';
import { overHttp } from '../_kit/http/http-channel.ts';
import {
  answerOf,
  requestWhole,
  requestFree,
  pollUntilDone,
  stepOf,
  hasSucceeded,
} from '../_kit/jobs/jobs.ts';
import {
  asDataUrls,
  leaveOut,
  modelPath,
  pictureAt,
  pictureCodecs,
  ratioFor,
  sidesFor,
} from '../_kit/media/pictures.ts';

/**
 * Ratios, by the models that are told one; the others are told width and height. Each model has fields of its own, of which these and the
 * patterns below are taken: https://github.com/fal-ai/fal-js (libs/client/src/types/endpoints.ts, 1.10.1)
 */
const ratios: readonly (readonly [model: RegExp, ratios: string])[] = [
  [/vidu\/|wan-alpha/, '16:9 1:1 9:16'],
  [/imagen\d|phota/, '16:9 4:3 1:1 3:4 9:16'],
  [/luma-photon/, '21:9 16:9 4:3 1:1 3:4 9:16 9:21'],
  [/ideogram\/v2/, '16:9 3:2 4:3 1:1 3:4 2:3 9:16'],
  [/bria\/(expand|text-to-image\/)/, '16:9 3:2 4:3 5:4 1:1 4:5 3:4 2:3 9:16'],
  [/kling-image|minimax\/image/, '21:9 16:9 3:2 4:3 1:1 3:4 2:3 9:16'],
  [/flux-kontext\/dev|gemini-flash-edit/, ''],
  [/nano-banana|gemini/, '21:9 16:9 3:2 4:3 5:4 1:1 4:5 3:4 2:3 9:16'],
  [/-ultra|pro\/kontext|emu-3|image-editing\//, '21:9 16:9 3:2 4:3 1:1 3:4 2:3 9:16 9:21'],
];

/** Models that take several given images, and those that take one though their names end like the former’s. */
const bySeveral =
  /\/edit(-image)?(\/|$)|\/multi$|nano-banana|qwen-image-edit-(2509|2511|plus)|firered|hy-wu|kling-image|flux-2-lora-gallery|(glm-image|wan-25-preview)\/image-to-image/;
const byOne = /^fal-ai\/(bagel|emu-3|gemini-flash-edit|ideogram|longcat)/;

/** Models that call a mask so; others call it `mask_url`. */
const byMaskImage = /fooocus|gpt-image|iclight|z-image/;

/** Models that know of quality and background, and of sizes by their names. */
const finely = /gpt-image/;

/** Encodes a request. The page of each model lists its fields: https://fal.ai/models/fal-ai/flux-2-pro/edit/api */
function encode(request: ImageRequest, target: EncodeTarget, own: JsonObject): EncodedRequest {
  const { model, drop } = target;
  const { prompt, images, mask, count, fileFormat, quality, background } = request;
  const isFine = finely.test(model);
  const [, known] = ratios.find(([pattern]) => pattern.test(model)) ?? [];
  const ratio = known === undefined ? undefined : ratioFor(request, known.match(/\S+/g) ?? [], drop);
  const sides = known === undefined ? sidesFor(request, drop) : undefined;
  const size = sides !== undefined && isFine ? `${sides.width}x${sides.height}` : sides && { ...sides };
  for (const [name, value] of Object.entries({ quality, background }))
    if (value !== undefined && value !== 'auto' && !isFine) drop(name);
  const urls = asDataUrls(images);
  const takesSeveral = bySeveral.test(model) && !byOne.test(model);
  if (urls.length > 1 && !takesSeveral) leaveOut('image', 'fal', target);
  return {
    path: modelPath(model),
    body: {
      ...own,
      prompt,
      ...(count === undefined ? {} : { num_images: count }),
      ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
      ...(size === undefined ? {} : { image_size: size }),
      ...(fileFormat === undefined ? {} : { output_format: fileFormat }),
      ...(quality !== undefined && isFine ? { quality } : {}),
      ...(background !== undefined && isFine ? { background } : {}),
      ...(urls.length === 0 ? {} : takesSeveral ? { image_urls: urls } : { image_url: urls[0] ?? '' }),
      ...(mask === undefined
        ? {}
        : { [byMaskImage.test(model) ? 'mask_image_url' : 'mask_url']: asDataUrls([mask])[0] ?? '' }),
    },
  };
}

/** Drops images that fal's safety checker flagged, because fal returns them blacked out. Throws if all are flagged. */
function decode(body: JsonObject): readonly GeneratedImage[] {
  const { images, image, has_nsfw_concepts: found } = body;
  const list: readonly JsonValue[] = Array.isArray(images) ? images : [image ?? null];
  const unfit: readonly JsonValue[] = Array.isArray(found) ? found : [];
  const fit = list.filter((_, index) => unfit[index] !== true);
  if (fit.length === 0 && list.length > 0) throw contentRefused('');
  return fit.flatMap((one) =>
    isObject(one) && typeof one.url === 'string' ? [pictureAt(one.url, one.content_type)] : [],
  );
}

/** https://docs.fal.ai/model-apis/model-endpoints/queue */
const isRunning = ({ status }: JsonObject): boolean => status === 'IN_QUEUE' || status === 'IN_PROGRESS';

/** fal: by its queue, or at once. https://docs.fal.ai/model-apis */
export default defineChannel({
  name: 'fal',
  catalogue: ['fal_ai'],
  models: ['fal-ai/*'],
  options: z.object({
    /** `queue`: creates a job and polls it, as fal recommends. `sync`: one request that stays open until the image is complete. */
    mode: z.enum(['queue', 'sync'], 'must be "queue" or "sync"').default('queue'),
  }),
  setup({ mode, ...options }, tools: ChannelTools): ChannelParts {
    const at = (baseUrl: string): ChannelParts['open'] =>
      overHttp(options, tools, {
        baseUrl,
        headers: (key): Readonly<Record<string, string>> => ({ authorization: `Key ${key ?? ''}` }),
        speaks: {},
      }).open;
    const queue = at('https://queue.fal.run');
    const open = mode === 'sync' ? at('https://fal.run') : queue;
    return {
      speaks: {
        'generate-image': ['fal'],
        'edit-image': ['fal'],
        'create-video': [videoFormat],
        'get-video': [videoFormat],
        'delete-video': [videoFormat],
      },
      codecs: {
        ...falVideos,
        ...pictureCodecs({
          format: 'fal',
          changes: 10,
          carries: ['quality', 'background', 'fileFormat', 'mask'],
          own: ['seed', 'negative_prompt', 'guidance_scale', 'strength'],
          atOnce: 4,
          encode,
          decode,
        }),
      },
      async open(call, request) {
        if (request.format === videoFormat) return openVideos(call, queue, request);
        if (mode === 'sync') return open(call, request);
        const order = await requestWhole(call, open, request);
        if (!hasSucceeded(order)) return answerOf(order);
        const path = `${applicationOf(request.model)}/requests/${encodeURIComponent(String(order.body.request_id))}`;
        const state = await pollUntilDone(call, open, stepOf(request, { path: `${path}/status` }), isRunning);
        return answerOf(
          hasSucceeded(state) ? await requestFree(call, open, stepOf(request, { path })) : state,
        );
      },
    };
  },
});

import { z } from 'zod';
import { defineChannel, type JsonObject, type JsonValue } from 'sluice';
import {
  contentRefused,
  isObject,
  type ChannelParts,
  type ChannelTools,
  type EncodedRequest,
  type EncodeTarget,
  type ImageRequest,
  type MadeImage,
} from 'sluice/internal';
import { applicationOf, falVideos, openVideos, videoFormat } from './_fal-videos.ts';
import { overHttp } from './_http.ts';
import { answerOf, ask, askFree, settled, stepOf, went } from './_jobs.ts';
import {
  asDataUrls,
  leaveOut,
  modelPath,
  pictureAt,
  pictureCodecs,
  ratioFor,
  sidesFor,
} from './_pictures.ts';

const ratios = '21:9 16:9 3:2 4:3 5:4 1:1 4:5 3:4 2:3 9:16 9:21'.split(' ');

/** Models that are told a ratio, where the others are told width and height. */
const byRatio = /ultra|kontext|nano-banana|gemini|imagen/;

/** Models that take several given images. */
const bySeveral = /\/edit(\/|$)|\/multi$|nano-banana/;

/** Models that know of quality and background. */
const finely = /gpt-image/;

/** Each model has a page with its fields: https://fal.ai/models/fal-ai/flux-2-pro/edit/api */
function encode(request: ImageRequest, target: EncodeTarget, own: JsonObject): EncodedRequest {
  const { model, lose } = target;
  const { prompt, images, mask, count, fileFormat, quality, background } = request;
  const ratio = byRatio.test(model) ? ratioFor(request, ratios, lose) : undefined;
  const sides = byRatio.test(model) ? undefined : sidesFor(request, lose);
  const isFine = finely.test(model);
  for (const [name, value] of Object.entries({ quality, background }))
    if (value !== undefined && value !== 'auto' && !isFine) lose(name);
  const urls = asDataUrls(images);
  if (urls.length > 1 && !bySeveral.test(model)) leaveOut('image', 'fal', target);
  return {
    path: modelPath(model),
    body: {
      ...own,
      prompt,
      ...(count === undefined ? {} : { num_images: count }),
      ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
      ...(sides === undefined ? {} : { image_size: { ...sides } }),
      ...(fileFormat === undefined ? {} : { output_format: fileFormat }),
      ...(quality !== undefined && isFine ? { quality } : {}),
      ...(background !== undefined && isFine ? { background } : {}),
      ...(urls.length === 0
        ? {}
        : bySeveral.test(model)
          ? { image_urls: urls }
          : { image_url: urls[0] ?? '' }),
      ...(mask === undefined ? {} : { mask_url: asDataUrls([mask])[0] ?? '' }),
    },
  };
}

/** What its review holds for unfit comes all the same, blackened. */
function decode(body: JsonObject): readonly MadeImage[] {
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
    /** `queue`: an order that is asked about, as fal advises. `sync`: a request that is open until the image is there. */
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
        const order = await ask(call, open, request);
        if (!went(order)) return answerOf(order);
        const path = `${applicationOf(request.model)}/requests/${encodeURIComponent(String(order.body.request_id))}`;
        const state = await settled(call, open, stepOf(request, { path: `${path}/status` }), isRunning);
        return answerOf(went(state) ? await askFree(call, open, stepOf(request, { path })) : state);
      },
    };
  },
});

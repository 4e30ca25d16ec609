/** Replicate: images and videos. Each is a prediction, which is polled until it is done. */
import { defineChannel, type JsonObject, type JsonValue, type ChannelParts, type ChannelTools } from 'sluice';
import type { EncodedRequest, EncodeTarget, ImageRequest, GeneratedImage } from 'sluice/channel-kit';
import { bearer, overHttp, plainKind } from '../_kit/http/http-channel.ts';
import { answerOf, requestWhole, pollUntilDone, stepOf, hasSucceeded } from '../_kit/jobs/jobs.ts';
import { endpointOf, replicateVideos, videoFormat } from './videos.ts';
import {
  asDataUrls,
  leaveOut,
  pictureAt,
  pictureCodecs,
  ratioFor,
  sidesFor,
  throwReason,
} from '../_kit/media/pictures.ts';

const ratios = '21:9 16:9 3:2 4:3 5:4 1:1 4:5 3:4 2:3 9:16 9:21'.split(' ');

// Each model has its own fields, described on its page. There is no complete list. Those of FLUX.2 are in https://github.com/vercel/ai
// (packages/replicate/src/replicate-image-model.ts), as are `image` and `mask` of the others; the rest of these patterns has no source.

/** Older models, which take width and height. The others take an aspect ratio. */
const bySides = /sdxl|stable-diffusion(?!-3)/;

/** Patterns of models that take a list of images, and of models that take numbered members; others take one `image`. */
const listed = /nano-banana|seedream/;
const numbered = /flux-2|kontext/;

function encode(request: ImageRequest, target: EncodeTarget, own: JsonObject): EncodedRequest {
  const { model, drop } = target;
  const { prompt, images, mask, fileFormat } = request;
  const { path, version } = endpointOf(model);
  const ratio = bySides.test(model) ? undefined : ratioFor(request, ratios, drop);
  const takesSeveral = listed.test(model) || numbered.test(model);
  if (images.length > 1 && !takesSeveral) leaveOut('image', 'replicate', target);
  if (mask !== undefined && takesSeveral) leaveOut('mask', 'replicate', target);
  return {
    path,
    headers: { prefer: 'wait' },
    body: {
      ...(version === undefined ? {} : { version }),
      input: {
        ...own,
        prompt,
        ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
        ...(bySides.test(model) ? sidesFor(request, drop) : {}),
        ...(fileFormat === undefined ? {} : { output_format: fileFormat === 'jpeg' ? 'jpg' : fileFormat }),
        ...givenImages(model, asDataUrls(images)),
        ...(mask === undefined || takesSeveral ? {} : { mask: asDataUrls([mask])[0] ?? '' }),
      },
    },
  };
}

function givenImages(model: string, urls: readonly string[]): JsonObject {
  if (urls.length === 0) return {};
  if (listed.test(model)) return { image_input: urls };
  if (numbered.test(model))
    return Object.fromEntries(
      urls.map((url, index) => [index === 0 ? 'input_image' : `input_image_${index + 1}`, url]),
    );
  return { image: urls[0] ?? '' };
}

function decode({ status, output, error }: JsonObject): readonly GeneratedImage[] {
  if (status !== 'succeeded') throwReason(typeof error === 'string' ? error : '');
  const outputs: readonly JsonValue[] = Array.isArray(output) ? output : [output ?? null];
  return outputs.flatMap((one) => (typeof one === 'string' ? [pictureAt(one)] : []));
}

/** Returns true while it is being worked on: https://replicate.com/docs/topics/predictions/lifecycle */
const isRunning = ({ status }: JsonObject): boolean => status === 'starting' || status === 'processing';

/**
 * Dollars for an image of official models, which do not cost what their hardware does by the second: https://replicate.com/pricing (2026-10-07) and the
 * pages of the models, as github:vecna/daikina lists them. No list of another provider has them.
 */
const prices = {
  'black-forest-labs/flux-pro': { perImage: 0.055 },
  'black-forest-labs/flux-1.1-pro': { perImage: 0.04 },
  'black-forest-labs/flux-1.1-pro-ultra': { perImage: 0.06 },
  'black-forest-labs/flux-dev': { perImage: 0.025 },
  'black-forest-labs/flux-schnell': { perImage: 0.003 },
  'black-forest-labs/flux-kontext-pro': { perImage: 0.04 },
  'black-forest-labs/flux-kontext-max': { perImage: 0.08 },
  'google/imagen-4': { perImage: 0.04 },
  'google/imagen-4-fast': { perImage: 0.02 },
  'google/imagen-4-ultra': { perImage: 0.06 },
  'ideogram-ai/ideogram-v3-turbo': { perImage: 0.03 },
  'ideogram-ai/ideogram-v3-balanced': { perImage: 0.06 },
  'ideogram-ai/ideogram-v3-quality': { perImage: 0.09 },
  'recraft-ai/recraft-v3': { perImage: 0.04 },
  'recraft-ai/recraft-v3-svg': { perImage: 0.08 },
} as const;

/** Channel for Replicate: waits for a prediction, and then polls it. https://replicate.com/docs/reference/http */
export default plainKind(
  defineChannel({
    name: 'replicate',
    models: ['*/*'],
    prices,
    setup(options, tools: ChannelTools): ChannelParts {
      const { open } = overHttp(options, tools, {
        baseUrl: 'https://api.replicate.com/v1',
        headers: bearer,
        speaks: {},
      });
      return {
        speaks: {
          'generate-image': ['replicate'],
          'edit-image': ['replicate'],
          'create-video': [videoFormat],
          'get-video': [videoFormat],
          'delete-video': [videoFormat],
        },
        codecs: {
          ...replicateVideos,
          ...pictureCodecs({
            format: 'replicate',
            changes: 8,
            carries: ['fileFormat', 'mask'],
            own: ['seed', 'negative_prompt', 'guidance', 'guidance_scale', 'prompt_strength', 'go_fast'],
            encode,
            decode,
          }),
        },
        async open(call, request) {
          // The client polls a video, so the channel does not wait for it.
          if (request.format === videoFormat) return open(call, request);
          const made = await requestWhole(call, open, request);
          if (!hasSucceeded(made) || !isRunning(made.body)) return answerOf(made);
          const path = `/predictions/${encodeURIComponent(String(made.body.id))}`;
          return answerOf(await pollUntilDone(call, open, stepOf(request, { path }), isRunning));
        },
      };
    },
  }),
);

/** Black Forest Labs: FLUX images. Each image is a job, which is polled until it is done. */
import {
  defineChannel,
  isObject,
  type ChannelOptions,
  type JsonObject,
  type ChannelParts,
  type ChannelTools,
} from 'sluice';
import {
  contentRefused,
  unusableResponse,
  type EncodedRequest,
  type EncodeTarget,
  type ImageRequest,
  type GeneratedImage,
} from 'sluice/channel-kit';
import { overHttp, plainKind } from './_kit/http/http-channel.ts';
import { answerOf, requestWhole, pollUntilDone, stepOf, hasSucceeded } from './_kit/jobs/jobs.ts';
import {
  bytesOf,
  leaveOut,
  modelPath,
  pictureAt,
  pictureCodecs,
  ratioFor,
  sidesFor,
} from './_kit/media/pictures.ts';

const home = 'https://api.bfl.ai/v1';

const ratios = '21:9 16:9 3:2 4:3 5:4 1:1 4:5 3:4 2:3 9:16 9:21'.split(' ');

/** Models that take an aspect ratio. The others take width and height. */
const byRatio = /ultra|kontext/;

/** https://docs.bfl.ai/flux_2/flux2_image_editing, https://docs.bfl.ai/kontext/kontext_image_editing */
function encode(request: ImageRequest, target: EncodeTarget, own: JsonObject): EncodedRequest {
  const { model, drop } = target;
  const { prompt, images, mask, fileFormat } = request;
  const fills = model.includes('-fill');
  const ratio = byRatio.test(model) ? ratioFor(request, ratios, drop) : undefined;
  const sides = byRatio.test(model) || fills ? undefined : sidesFor(request, drop);
  if (fills && request.size !== undefined && request.size !== 'auto') drop('size');
  if (mask !== undefined && !fills) leaveOut('mask', 'black-forest-labs', target);
  if (images.length > 1 && fills) leaveOut('image', 'black-forest-labs', target);
  const isKnown = fileFormat === 'png' || fileFormat === 'jpeg';
  if (fileFormat !== undefined && !isKnown) drop('output_format');
  const pictures = images
    .slice(0, fills ? 1 : images.length)
    .map((image, index): readonly [string, string] => [
      fills ? 'image' : index === 0 ? 'input_image' : `input_image_${index + 1}`,
      bytesOf(image).data,
    ]);
  return {
    path: modelPath(model),
    body: {
      ...own,
      prompt,
      ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
      ...sides,
      ...(isKnown ? { output_format: fileFormat } : {}),
      ...Object.fromEntries(pictures),
      ...(mask !== undefined && fills ? { mask: bytesOf(mask).data } : {}),
    },
  };
}

/** https://docs.bfl.ai/api-reference/utility/get-result */
function decode({ status, result }: JsonObject): readonly GeneratedImage[] {
  if (typeof status === 'string' && /moderated/i.test(status)) throw contentRefused(`${status}.`);
  if (!isObject(result) || typeof result.sample !== 'string') throw unusableResponse('made no image');
  return [pictureAt(result.sample)];
}

const isRunning = ({ status }: JsonObject): boolean =>
  typeof status === 'string' && /^(pending|queued|processing)$/i.test(status);

/** Channel for Black Forest Labs: creates a job, and polls it at the address in the response. https://docs.bfl.ai/quick_start/generating_images */
export default plainKind(
  defineChannel({
    name: 'black-forest-labs',
    catalogue: ['black_forest_labs'],
    models: ['flux-*'],
    setup(options, tools: ChannelTools): ChannelParts {
      const base = options.baseUrl ?? home;
      const openAt = (baseUrl: string): ChannelParts['open'] =>
        overHttp({ ...options, baseUrl } satisfies ChannelOptions, tools, {
          baseUrl,
          headers: (key): Readonly<Record<string, string>> => ({ 'x-key': key ?? '' }),
          speaks: {},
        }).open;
      const open = openAt(base);
      return {
        speaks: { 'generate-image': ['black-forest-labs'], 'edit-image': ['black-forest-labs'] },
        codecs: pictureCodecs({
          format: 'black-forest-labs',
          changes: 8,
          carries: ['fileFormat', 'mask'],
          own: ['seed', 'prompt_upsampling', 'guidance', 'raw'],
          encode,
          decode,
        }),
        async open(call, request) {
          const order = await requestWhole(call, open, request);
          if (!hasSucceeded(order)) return answerOf(order);
          const { id, polling_url: pollingUrl } = order.body;
          const root = typeof pollingUrl === 'string' ? regionOf(pollingUrl, base) : undefined;
          const question = stepOf(request, { path: '/get_result', query: { id: String(id) } });
          return answerOf(
            await pollUntilDone(call, root === undefined ? open : openAt(root), question, isRunning),
          );
        },
      };
    },
  }),
);

/** Returns the region that works on an order, which alone knows of it. The key goes to addresses of the same owner and no others. */
function regionOf(pollingUrl: string, base: string): string | undefined {
  if (!URL.canParse(pollingUrl)) return undefined;
  const { protocol, hostname, origin } = new URL(pollingUrl);
  const own = new URL(base);
  const isOwn = hostname.endsWith(`.${own.hostname.split('.').slice(-2).join('.')}`);
  return isOwn && protocol === 'https:' ? `${origin}/v1` : undefined;
}

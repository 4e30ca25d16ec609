/** Stability AI: images made, edited and enlarged. */
import { defineChannel, GatewayError, type JsonObject, type ChannelParts, type ChannelTools } from 'sluice';
import {
  contentRefused,
  unusableResponse,
  type EncodedRequest,
  type EncodeTarget,
  type ImageRequest,
  type GeneratedImage,
  uploadOf,
} from 'sluice/channel-kit';
import { bearer, overHttp, plainKind } from './_kit/http/http-channel.ts';
import { bytesOf, pictureCodecs, ratioFor } from './_kit/media/pictures.ts';

const ratios = '21:9 16:9 3:2 5:4 1:1 4:5 2:3 9:16 9:21'.split(' ');

/** Paths by model or service. All other models are of Stable Diffusion 3, with the model in the form. */
const paths: Readonly<Record<string, string>> = {
  'stable-image-core': 'generate/core',
  'stable-image-ultra': 'generate/ultra',
  inpaint: 'edit/inpaint',
  outpaint: 'edit/outpaint',
  erase: 'edit/erase',
  'search-and-replace': 'edit/search-and-replace',
  'search-and-recolor': 'edit/search-and-recolor',
  'remove-background': 'edit/remove-background',
  sketch: 'control/sketch',
  structure: 'control/structure',
  style: 'control/style',
  fast: 'upscale/fast',
  conservative: 'upscale/conservative',
};

/** Members that describe an image besides its prompt. Each service takes some of them, and refuses the rest. */
const own = [
  'seed',
  'negative_prompt',
  'style_preset',
  'strength',
  'search_prompt',
  'select_prompt',
  'grow_mask',
  'control_strength',
  'fidelity',
  'creativity',
  'left',
  'right',
  'up',
  'down',
];

/** https://platform.stability.ai/docs/api-reference#tag/Generate */
function encode(request: ImageRequest, { model, drop }: EncodeTarget, members: JsonObject): EncodedRequest {
  const { operation, prompt, images, mask, fileFormat, delivery } = request;
  if (delivery === 'url') drop('response_format');
  const endpoint = Object.hasOwn(paths, model) ? paths[model] : undefined;
  const [image] = images;
  const makes = endpoint === undefined || endpoint.startsWith('generate/');
  if (operation === 'generate-image' && !makes)
    throw new GatewayError('unsupported_value', 'This model changes images: ask /v1/images/edits.', {
      param: 'model',
    });
  // An image that is changed keeps its sides.
  const ratio =
    image === undefined || endpoint === 'control/style' ? ratioFor(request, ratios, drop) : undefined;
  if (
    image !== undefined &&
    endpoint !== 'control/style' &&
    request.size !== undefined &&
    request.size !== 'auto'
  )
    drop('size');
  const texts: Readonly<Record<string, unknown>> = {
    ...(endpoint === undefined ? { model } : {}),
    ...(endpoint === undefined && image !== undefined ? { mode: 'image-to-image', strength: 0.7 } : {}),
    ...members,
    prompt,
    aspect_ratio: ratio,
    output_format: fileFormat,
  };
  return {
    path: `/${endpoint ?? 'generate/sd3'}`,
    body: {},
    form: [
      ...Object.entries(texts).flatMap(([name, value]) =>
        typeof value === 'string' || typeof value === 'number' ? [{ name, value: String(value) }] : [],
      ),
      ...(image === undefined ? [] : [{ name: 'image', file: uploadOf(bytesOf(image)) }]),
      ...(mask === undefined ? [] : [{ name: 'mask', file: uploadOf(bytesOf(mask)) }]),
    ],
  };
}

function decode({ image, finish_reason: reason }: JsonObject): readonly GeneratedImage[] {
  if (reason === 'CONTENT_FILTERED') throw contentRefused('');
  if (typeof image !== 'string') throw unusableResponse('made no image');
  return [{ base64: image }];
}

/** Stability AI: forms there and back, an image a request, as bytes. https://platform.stability.ai/docs/api-reference */
export default plainKind(
  defineChannel({
    name: 'stability',
    catalogue: ['stability'],
    models: ['sd3*', 'stable-image-*', ...Object.keys(paths).filter((name) => !name.startsWith('stable-'))],
    setup: (options, tools: ChannelTools): ChannelParts => ({
      ...overHttp(options, tools, {
        baseUrl: 'https://api.stability.ai/v2beta/stable-image',
        headers: bearer,
        speaks: { 'generate-image': ['stability'], 'edit-image': ['stability'] },
      }),
      codecs: pictureCodecs({
        format: 'stability',
        changes: 1,
        carries: ['fileFormat', 'mask', 'delivery'],
        own,
        encode,
        decode,
      }),
    }),
  }),
);

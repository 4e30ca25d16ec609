import { GatewayError, wrongValue, type GatewayEvent, type JsonObject, type JsonValue } from 'sluice';
import {
  unsupportedContent,
  defineCodec,
  throwIfError,
  noUsage,
  type Codec,
  type EncodeTarget,
  type ImageRequest,
} from 'sluice/channel-kit';
import { blackAndWhite } from './masks.ts';
import { ownWords } from '../_kit/dialect/own-words.ts';
import { bytesOf, leaveOut, ratioFor, sidesFor } from '../_kit/media/pictures.ts';

/** Returns the codecs for generating, editing and varying images, by the name of the InvokeModel format. */
export function imageCodecs(format: string): {
  readonly [O in ImageRequest['operation']]: Codec<ImageRequest>;
} {
  const codec = (operation: ImageRequest['operation']): Codec<ImageRequest> =>
    defineCodec<ImageRequest>({
      format,
      operation,
      path: '',
      inlinesImages: true,
      encodeRequest(request, target) {
        const { model, drop } = target;
        for (const name of unknown) if (request[name] !== undefined) drop(names[name] ?? name);
        const write = /stability\./.test(model) ? ofStability : ofAmazon;
        return { path: `/model/${encodeURIComponent(model)}/invoke`, body: write(request, target, format) };
      },
      decodeWhole: decodeImages,
      estimate: ({ count = 1 }) => ({ input: 0, output: 0, units: { images: count } }),
    });
  return {
    'generate-image': codec('generate-image'),
    'edit-image': codec('edit-image'),
    'vary-image': codec('vary-image'),
  };
}

/** Settings that no model takes. Images are always returned as base64. */
const unknown = ['background', 'compression', 'style', 'partials', 'user'] as const;
const names: Readonly<Record<string, string>> = {
  compression: 'output_compression',
  partials: 'partial_images',
};

/** Members of Amazon's own format that clients may set. */
const taskWords = ['maskPrompt', 'negativeText', 'similarityStrength', 'outPaintingMode'];
const amazonWords = [...taskWords, 'taskType', 'seed', 'cfgScale', 'negative_prompt'];

/** Parameters member of each task, the members that it takes, and its maximum number of images. */
const tasks: Readonly<
  Record<string, { readonly params: string; readonly takes: readonly string[]; readonly most: number }>
> = {
  TEXT_IMAGE: { params: 'textToImageParams', takes: ['negativeText'], most: 0 },
  IMAGE_VARIATION: {
    params: 'imageVariationParams',
    takes: ['negativeText', 'similarityStrength'],
    most: 5,
  },
  INPAINTING: { params: 'inPaintingParams', takes: ['maskPrompt', 'negativeText'], most: 1 },
  OUTPAINTING: {
    params: 'outPaintingParams',
    takes: ['maskPrompt', 'negativeText', 'outPaintingMode'],
    most: 1,
  },
  BACKGROUND_REMOVAL: { params: 'backgroundRemovalParams', takes: [], most: 1 },
};

/**
 * Nova Canvas and Titan: a mask, as bytes or as words, changes what is inside it (or outside, with `taskType: 'OUTPAINTING'`); without one
 * images are varied as the prompt says.
 * https://docs.aws.amazon.com/nova/latest/userguide/image-gen-req-resp-structure.html
 */
function ofAmazon(request: ImageRequest, target: EncodeTarget, format: string): JsonObject {
  const { drop } = target;
  const { negative_prompt: negative, ...members } = wordsOf(request, amazonWords, drop);
  const own: JsonObject = negative === undefined ? members : { negativeText: negative, ...members };
  const { prompt, images, mask, quality, count, fileFormat } = request;
  const taskType = taskOf(request, own);
  const task = Object.hasOwn(tasks, taskType) ? tasks[taskType] : undefined;
  if (task === undefined || images.length > 0 !== task.most > 0)
    throw wrongValue('taskType', Object.keys(tasks).slice(1).join(', '));
  const { params, takes, most } = task;
  if (images.length > most) fewer(most, format, target);
  const given = images.slice(0, most).map((image) => bytesOf(image).data);
  const masked = takes.includes('maskPrompt');
  if (mask !== undefined && !masked) leaveOut('mask', format, target);
  for (const name of taskWords) if (own[name] !== undefined && !takes.includes(name)) drop(name);
  if (fileFormat !== undefined && fileFormat !== 'png') drop('output_format');
  const taken: JsonObject = Object.fromEntries(
    takes.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]]])),
  );
  // White marks the area to change for outpainting, black for the other tasks.
  const colour = taskType === 'OUTPAINTING' ? 'white' : 'black';
  const text = taskType === 'BACKGROUND_REMOVAL' || prompt === '' ? {} : { text: prompt };
  const what = taskType === 'IMAGE_VARIATION' ? { images: given } : { ...(given[0] && { image: given[0] }) };
  if (taskType === 'BACKGROUND_REMOVAL') return { taskType, [params]: what };
  // An image that is edited in place keeps its size.
  const keeps = masked && request.size !== undefined && request.size !== 'auto';
  if (keeps) drop('size');
  const sides = masked ? undefined : sidesFor(request, drop);
  return {
    taskType,
    [params]: {
      ...text,
      ...what,
      ...taken,
      ...(mask === undefined || !masked ? {} : { maskImage: blackAndWhite(bytesOf(mask), colour) }),
    },
    imageGenerationConfig: {
      numberOfImages: count ?? 1,
      ...sides,
      ...(quality === undefined || quality === 'auto'
        ? {}
        : { quality: quality === 'high' || quality === 'hd' ? 'premium' : 'standard' }),
      ...(own['seed'] === undefined ? {} : { seed: own['seed'] }),
      ...(own['cfgScale'] === undefined ? {} : { cfgScale: own['cfgScale'] }),
    },
  };
}

function taskOf({ images, mask }: ImageRequest, { taskType, maskPrompt }: JsonObject): string {
  if (typeof taskType === 'string') return taskType;
  if (images.length === 0) return 'TEXT_IMAGE';
  return mask === undefined && maskPrompt === undefined ? 'IMAGE_VARIATION' : 'INPAINTING';
}

/** Width divided by height, in the ratios that the models have. */
const ratios = '16:9 1:1 21:9 2:3 3:2 4:5 5:4 9:16 9:21'.split(' ');

/** Parameters of a Stability service besides the image: its own members, and whether it takes a prompt or a mask. */
interface Service {
  readonly words: readonly string[];
  readonly prompt?: false;
  readonly mask?: true;
  /** The members of its images, where it does not call the one `image`. */
  readonly images?: readonly string[];
}

const painting = ['seed', 'negative_prompt', 'style_preset'];

/**
 * By a part of their names, as these carry the parts of the world that answer, and versions.
 * https://docs.aws.amazon.com/bedrock/latest/userguide/stable-image-services.html. Of that page the beginning alone was to be had, and Amazon’s
 * own client; `grow_mask` of what searches, `style_preset` but for `creative-upscale` and `creativity` of `conservative-upscale` are taken from
 * Stability’s words for the same services: https://platform.stability.ai/docs/api-reference
 */
const services: Readonly<Record<string, Service>> = {
  'image-inpaint': { words: [...painting, 'grow_mask'], mask: true },
  outpaint: { words: ['seed', 'style_preset', 'creativity', 'left', 'right', 'up', 'down'] },
  'search-replace': { words: [...painting, 'search_prompt', 'grow_mask'] },
  'search-recolor': { words: [...painting, 'select_prompt', 'grow_mask'] },
  'erase-object': { words: ['seed', 'grow_mask'], prompt: false, mask: true },
  'remove-background': { words: [], prompt: false },
  'control-sketch': { words: [...painting, 'control_strength'] },
  'control-structure': { words: [...painting, 'control_strength'] },
  'style-guide': { words: [...painting, 'fidelity'] },
  'style-transfer': {
    words: ['seed', 'negative_prompt', 'composition_fidelity', 'style_strength', 'change_strength'],
    images: ['init_image', 'style_image'],
  },
  'fast-upscale': { words: [], prompt: false },
  'conservative-upscale': { words: ['seed', 'negative_prompt', 'creativity'] },
  'creative-upscale': { words: [...painting, 'creativity'] },
};

function ofStability(request: ImageRequest, target: EncodeTarget, format: string): JsonObject {
  const { model, drop } = target;
  const { operation, prompt, images, mask, quality, count = 1, fileFormat } = request;
  if (count > 1) {
    throw new GatewayError('unsupported_value', 'n must be 1: this model makes one image a request.', {
      param: 'n',
    });
  }
  const service = Object.entries(services).find(([name]) => model.includes(name))?.[1];
  if (service !== undefined && operation === 'generate-image')
    throw new GatewayError('unsupported_value', 'This model changes images: ask /v1/images/edits.', {
      param: 'model',
    });
  const own = wordsOf(request, service?.words ?? [...painting, 'strength'], drop);
  if (quality !== undefined && quality !== 'auto') drop('quality');
  const places = service?.images ?? ['image'];
  if (images.length > places.length) fewer(places.length, format, target);
  const given = Object.fromEntries(
    places.flatMap((name, index) => {
      const image = images[index];
      return image === undefined ? [] : [[name, bytesOf(image).data]];
    }),
  );
  if (mask !== undefined && service?.mask !== true) leaveOut('mask', format, target);
  if (service?.prompt === false && prompt !== '') drop('prompt');
  // An image that is changed keeps its sides.
  const keeps = images.length > 0 && !model.includes('style-guide');
  if (keeps && request.size !== undefined && request.size !== 'auto') drop('size');
  const ratio = keeps ? undefined : ratioFor(request, ratios, drop);
  return {
    ...(service?.prompt === false || prompt === '' ? {} : { prompt }),
    // The models that make images take one to begin with.
    ...(service === undefined && images.length > 0 ? { mode: 'image-to-image', strength: 0.7 } : {}),
    ...given,
    ...(mask === undefined || service?.mask !== true ? {} : { mask: blackAndWhite(bytesOf(mask), 'white') }),
    ...own,
    ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
    ...(fileFormat === undefined ? {} : { output_format: fileFormat }),
  };
}

const texts = new Set(
  'taskType maskPrompt negativeText negative_prompt outPaintingMode style_preset search_prompt select_prompt'.split(
    ' ',
  ),
);

/** Returns the client's members for the model. In a form numbers are texts. */
function wordsOf(
  { extra }: ImageRequest,
  words: readonly string[],
  drop: (path: string) => void,
): JsonObject {
  const members = Object.entries(ownWords(extra, words, drop)).map(([name, value]) => {
    const isNumber = !texts.has(name) && typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value);
    return [name, isNumber ? Number(value) : value];
  });
  return Object.fromEntries(members) as JsonObject;
}

/** Handles more images than a model accepts. Throws, or reports them as dropped where the operator prefers that. */
function fewer(most: number, format: string, target: EncodeTarget): void {
  if (most === 1) return leaveOut('image', format, target);
  if (target.unsupported === 'refuse') throw unsupportedContent('image', `more than ${most} images`, format);
  target.drop('image', 'content');
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
    throw new GatewayError(
      'upstream_error',
      `The upstream returned no image: ${refused ?? 'no reason given'}.`,
      {
        origin: 'upstream',
      },
    );
  return [
    { type: 'usage', usage: { ...noUsage, units: { images: made.length } } },
    { type: 'result', value: { images: made.map((base64) => ({ base64 })) } },
  ];
}

/** Requests of the ark format for a video, in both directions. */
import { GatewayError, missingValue, wrongType, wrongValue } from '../../sdk/errors.ts';
import type { ImageInput } from '../../model/image.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { VideoRequest } from '../../model/video.ts';
import type { EncodedRequest, EncodeTarget } from '../../sdk/format.ts';
import { given, optionalArray, optionalString, requiredModel, requiredString } from '../_shared/check.ts';
import { listOf, defined } from '../_shared/fields.ts';
import { extraOf, spellingIn } from '../_shared/spelling.ts';
import {
  addMetadata,
  imageOf,
  imageText,
  limitImages,
  optionalInteger,
  optionalRatio,
  optionalSeconds,
  ownExtra,
  promptOf,
  unread,
  videoSettings,
} from '../_shared/video-fields.ts';
import { requestedRatio } from '../_shared/video-sizes.ts';
import { videoFields, wholeSeconds } from '../_shared/video-table.ts';

/** The format's name. */
export const name = 'ark';

/** Path below the version to create, read and cancel tasks. */
export const tasksPath = '/contents/generations/tasks';

/** Aspect ratios besides `adaptive`. */
const ratios = ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9'];

const fields = videoFields({
  seconds: { name: 'duration', decode: secondsIn, encode: wholeSeconds },
  aspectRatio: {
    name: 'ratio',
    decode: ({ ratio }) => (ratio === 'adaptive' ? undefined : optionalRatio(ratio, 'ratio')),
    encode: (request, target) => requestedRatio(request, ratios, target),
  },
  resolution: 'resolution',
  seed: 'seed',
  user: 'safety_identifier',
});

/** Names of the fields by neutral names. */
export const words = { ...fields.words, 'settings.images': 'content' };

const read = ['model', 'content', 'frames', ...fields.names];

/** Frames in a second. */
const frameRate = 24;

/** Content that no other format has. */
const nativeParts = new Set(['video_url', 'audio_url', 'draft_task']);

/** Decodes a client's request. Throws a 400 error that names the field. */
export function decode(body: JsonObject): VideoRequest {
  const { text, images, roles, native } = contentIn(body);
  const { prompt, options } = splitOptions(text);
  const settings = fields.decode(body);
  const isAdaptive = body.ratio === 'adaptive';
  const extra = unread(body, new Set(isAdaptive ? read.filter((field) => field !== 'ratio') : read));
  const spelling: JsonObject = {
    ...(text === prompt ? {} : { $text: text }),
    ...(native.length === 0 ? {} : { $content: native }),
    ...(roles.every((role) => role === undefined) ? {} : { $roles: roles.map((role) => role ?? null) }),
  };
  return {
    operation: 'create-video',
    format: name,
    model: requiredModel(body.model),
    prompt: promptOf(prompt, [...images, ...native]),
    images,
    ...videoSettings({
      ...settings,
      seconds: settings.seconds ?? optionalSeconds(options.dur ?? options.duration, 'content[0].text'),
      aspectRatio: settings.aspectRatio ?? (isAdaptive ? undefined : ratioIn(options)),
      resolution: settings.resolution ?? options.rs ?? options.resolution,
      imageRole: roleOf(roles),
    }),
    ...extraOf(name, extra, spelling),
  };
}

function secondsIn({ duration, frames }: JsonObject): number | undefined {
  const count = optionalInteger(frames, 'frames');
  if (count !== undefined && !(count > 0 && count <= 3600 * frameRate)) throw wrongValue('frames', 'above 0');
  // Minus one leaves it to the model.
  if (duration === -1) return undefined;
  return optionalSeconds(duration, 'duration') ?? (count === undefined ? undefined : count / frameRate);
}

interface Content {
  readonly text: string;
  readonly images: readonly ImageInput[];
  readonly roles: readonly (string | undefined)[];
  readonly native: readonly JsonObject[];
}

function contentIn(body: JsonObject): Content {
  if (!given(body.content)) throw missingValue('content');
  const texts: string[] = [];
  const images: ImageInput[] = [];
  const roles: (string | undefined)[] = [];
  const native: JsonObject[] = [];
  for (const [index, part] of (optionalArray(body.content, 'content') ?? []).entries()) {
    const path = `content[${index}]`;
    if (!isObject(part)) throw wrongType(path, 'an object');
    if (part.type === 'text') texts.push(requiredString(part.text, `${path}.text`));
    else if (part.type === 'image_url') {
      images.push(imageOf(urlIn(part.image_url, `${path}.image_url`), `${path}.image_url.url`));
      roles.push(optionalString(part.role, `${path}.role`));
    } else if (typeof part.type === 'string' && nativeParts.has(part.type)) native.push(part);
    else throw wrongValue(`${path}.type`, 'text, image_url, video_url, audio_url or draft_task');
  }
  return { text: texts.join('\n'), images, roles, native };
}

function urlIn(value: JsonValue | undefined, path: string): JsonValue | undefined {
  if (!isObject(value)) throw wrongType(path, 'an object with url');
  if (!given(value.url)) throw missingValue(`${path}.url`);
  return value.url;
}

type Options = { readonly [option: string]: string | undefined };

/** Options at the end of the text, as older clients write them: `--ratio 16:9 --dur 5`. */
function splitOptions(text: string): { readonly prompt: string; readonly options: Options } {
  const start = text.search(/(^|\s)--[a-z]+\s/i);
  if (start < 0) return { prompt: text, options: {} };
  const options: Record<string, string> = {};
  for (const [, option = '', value = ''] of text.slice(start).matchAll(/--([a-z]+)\s+(\S+)/gi))
    if (option !== '__proto__') options[option.toLowerCase()] = value;
  return { prompt: text.slice(0, start).trimEnd(), options };
}

function ratioIn({ ratio, rt }: Options): string | undefined {
  const value = ratio ?? rt;
  return value === undefined || value === 'adaptive' ? undefined : optionalRatio(value, 'content[0].text');
}

function roleOf(roles: readonly (string | undefined)[]): VideoRequest['imageRole'] {
  if (roles.length === 0) return undefined;
  if (roles.some((role) => role === 'reference_image')) return 'reference';
  return roles.length === 2 ? 'first-and-last' : 'first';
}

/** Returns the error for a body with content that no other format has. */
export function onlyNative(body: JsonObject): GatewayError | undefined {
  const index = listOf(body.content).findIndex(
    (part) => isObject(part) && typeof part.type === 'string' && nativeParts.has(part.type),
  );
  if (index < 0) return undefined;
  const param = `content[${index}]`;
  return new GatewayError(
    'unsupported_content',
    `${param}: only a channel of the ${name} format takes this.`,
    { param },
  );
}

/** Encodes a request for the provider. */
export function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  fields.report(request, target);
  const own = ownExtra(request, name, target);
  const { $text: text, $content: native, $roles: roles } = spellingIn(request.extra, name);
  const settings = fields.encode(request, target);
  const images = limitImages(request.images, 9, name, target).map((image, index) => ({
    type: 'image_url',
    image_url: { url: imageText(image, 'data-url', name) },
    ...defined({ role: roleFor(request, roles, index) }),
  }));
  const isSpelled = typeof text === 'string';
  const whole = isSpelled ? text : request.prompt;
  const body = {
    ...own,
    model: target.model,
    content: [...(whole === '' ? [] : [{ type: 'text', text: whole }]), ...images, ...listOf(native)],
    // The text names these already.
    ...defined({
      ...settings,
      ...(isSpelled ? { duration: undefined, ratio: undefined, resolution: undefined } : {}),
    }),
  };
  return { path: tasksPath, body: addMetadata(body, request.metadata, target) };
}

function roleFor(
  { images, imageRole, format }: VideoRequest,
  roles: JsonValue | undefined,
  index: number,
): string | undefined {
  if (format === name) {
    const role: unknown = Array.isArray(roles) ? roles[index] : undefined;
    return typeof role === 'string' ? role : undefined;
  }
  if (imageRole === 'reference' || images.length > 2) return 'reference_image';
  return index === 0 ? 'first_frame' : 'last_frame';
}

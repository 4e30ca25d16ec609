/** Requests of the ark format for a video, in both directions. */
import { GatewayError, missingValue, wrongType, wrongValue } from '../../sdk/errors.ts';
import type { ImageInput } from '../../model/image.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { VideoRequest } from '../../model/video.ts';
import type { EncodedRequest, EncodeTarget } from '../../sdk/format.ts';
import { given, optionalArray, optionalString, requiredModel, requiredString } from '../_shared/check.ts';
import {
  limitImages,
  imageOf,
  imageText,
  reportVideoSettings,
  optionalInteger,
  optionalRatio,
  optionalSeconds,
  ownExtra,
  promptOf,
  unread,
  videoSettings,
  addMetadata,
} from '../_shared/video-fields.ts';
import { requestedRatio, requestedResolution } from '../_shared/video-sizes.ts';
import { extraOf, spellingIn } from '../_shared/spelling.ts';
import { name, ratios, tasksPath } from './wire.ts';

const read = new Set('model content duration frames ratio resolution seed safety_identifier'.split(' '));

/** Frames in a second. */
const frameRate = 24;

/** Content that no other format has. */
const nativeParts = new Set(['video_url', 'audio_url', 'draft_task']);

/** A client's request. Throws 400 with the path. */
export function decode(body: JsonObject): VideoRequest {
  const content = contentIn(body);
  const { prompt, options } = splitOptions(content.text);
  const seconds = secondsIn(body) ?? optionalSeconds(options.dur ?? options.duration, 'content[0].text');
  const adaptive = body.ratio === 'adaptive';
  const extra = unread(body, adaptive ? without(read, 'ratio') : read);
  const spelling: JsonObject = {
    ...(content.text === prompt ? {} : { $text: content.text }),
    ...(content.native.length === 0 ? {} : { $content: content.native }),
    ...(content.roles.every((role) => role === undefined)
      ? {}
      : { $roles: content.roles.map((role) => role ?? null) }),
  };
  return {
    operation: 'create-video',
    format: name,
    model: requiredModel(body.model),
    prompt: promptOf(prompt, [...content.images, ...content.native]),
    images: content.images,
    ...videoSettings({
      seconds,
      aspectRatio: adaptive ? undefined : (optionalRatio(body.ratio, 'ratio') ?? ratioIn(options)),
      resolution: optionalString(body.resolution, 'resolution') ?? options.rs ?? options.resolution,
      seed: optionalInteger(body.seed, 'seed'),
      user: optionalString(body.safety_identifier, 'safety_identifier'),
      imageRole: roleOf(content.roles),
    }),
    ...extraOf(name, extra, spelling),
  };
}

function without(names: ReadonlySet<string>, left: string): ReadonlySet<string> {
  return new Set([...names].filter((one) => one !== left));
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

/** Why only a channel of this format can make the video: it begins with more than text and images. */
export function onlyNative(body: JsonObject): GatewayError | undefined {
  const parts: readonly JsonValue[] = Array.isArray(body.content)
    ? (body.content as readonly JsonValue[])
    : [];
  const index = parts.findIndex(
    (part) => isObject(part) && typeof part.type === 'string' && nativeParts.has(part.type),
  );
  if (index < 0) return undefined;
  return new GatewayError(
    'unsupported_content',
    `content[${index}]: only a channel of the ${name} format takes this.`,
    { param: `content[${index}]` },
  );
}

/** The request as the provider takes it. */
export function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  reportVideoSettings(request, ['seconds', 'size', 'aspectRatio', 'resolution', 'seed', 'user'], target);
  const own = ownExtra(request, name, target);
  const { $text: text, $content: native, $roles: roles } = spellingIn(request.extra, name);
  const { prompt, seconds, seed, user } = request;
  const ratio = requestedRatio(request, ratios, target);
  const resolution = requestedResolution(request);
  const whole = typeof text === 'string' ? text : prompt;
  const images = limitImages(request.images, 9, name, target).map((image, index): JsonObject => {
    const role = roleFor(request, roles, index);
    return {
      type: 'image_url',
      image_url: { url: imageText(image, 'data-url', name) },
      ...(role === undefined ? {} : { role }),
    };
  });
  const body: JsonObject = {
    ...own,
    model: target.model,
    content: [
      ...(whole === '' ? [] : [{ type: 'text', text: whole }]),
      ...images,
      ...(Array.isArray(native) ? (native as readonly JsonValue[]) : []),
    ],
    // What stands in the text is said there.
    ...(seconds === undefined || (typeof text === 'string' && request.format === name)
      ? {}
      : { duration: Math.ceil(seconds) }),
    ...(ratio === undefined || typeof text === 'string' ? {} : { ratio }),
    ...(resolution === undefined || typeof text === 'string' ? {} : { resolution }),
    ...(seed === undefined ? {} : { seed }),
    ...(user === undefined ? {} : { safety_identifier: user }),
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

/** Decodes and encodes whole replies of `/v1/images`. */
import { GatewayError } from '../../sdk/errors.ts';
import type { GatewayEvent } from '../../model/event.ts';
import type { ImageResult, GeneratedImage } from '../../model/image.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { defined, secondOf } from '../_shared/fields.ts';
import { Losses } from '../_shared/losses.ts';
import { throwIfError, unusableResponse } from '../_shared/upstream-error/index.ts';
import { extraOf } from '../_shared/spelling.ts';
import type { ReplyContext, WholeEncoder } from '../../sdk/format.ts';
import { readUsage, writeUsage } from './usage.ts';
import { formatName } from './wire.ts';

/** Decodes a provider's JSON as events. */
export function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  throwIfError(body);
  const { data, usage, ...rest } = body;
  const images = (Array.isArray(data) ? (data as readonly JsonValue[]) : []).map(readImage);
  const sound = images.filter((image) => image !== undefined);
  if (sound.length === 0 || sound.length !== images.length) throw noImages();
  const usageObject = isObject(usage) ? usage : undefined;
  return [
    { type: 'usage', usage: readUsage(usageObject, sound.length, rest) },
    { type: 'result', value: { images: sound, ...readFacts(rest, 'created') } },
  ];
}

/** Returns the error for a reply without images. */
export function noImages(): GatewayError {
  return unusableResponse('gave no image');
}

function readImage(value: JsonValue): GeneratedImage | undefined {
  if (!isObject(value)) return undefined;
  const { b64_json: base64, url, revised_prompt: revised, ...rest } = value;
  if (typeof base64 !== 'string' && typeof url !== 'string') return undefined;
  return {
    ...(typeof base64 === 'string' ? { base64 } : {}),
    ...(typeof url === 'string' ? { url } : {}),
    ...(typeof revised === 'string' ? { revisedPrompt: revised } : {}),
    ...extraOf(formatName, rest),
  };
}

/** Reads the members about all images of a reply, or about one in a stream; `time` names the member with the Unix time of creation. */
export function readFacts(
  body: JsonObject,
  time: 'created' | 'created_at',
): Omit<ImageResult, 'images' | 'tokens'> {
  const { [time]: created, size, quality, background, output_format: fileFormat, ...rest } = body;
  return {
    ...defined({ created: secondOf(created) }),
    ...(typeof size === 'string' ? { size } : {}),
    ...(typeof quality === 'string' ? { quality } : {}),
    ...(typeof background === 'string' ? { background } : {}),
    ...(typeof fileFormat === 'string' ? { fileFormat } : {}),
    ...extraOf(formatName, rest),
  };
}

/** Returns the inverse of {@link readFacts}. */
export function writeFacts(
  { created, size, quality, background, fileFormat, extra }: Omit<ImageResult, 'images'>,
  time: 'created' | 'created_at',
  now: number,
): JsonObject {
  const own = Object.entries(extra?.[formatName] ?? {}).filter(([name]) => !name.startsWith('$'));
  return {
    [time]: created ?? now,
    ...(size === undefined ? {} : { size }),
    ...(quality === undefined ? {} : { quality }),
    ...(background === undefined ? {} : { background }),
    ...(fileFormat === undefined ? {} : { output_format: fileFormat }),
    ...Object.fromEntries(own),
  };
}

/** Writes a whole reply. */
export function encodeWhole(context: ReplyContext): WholeEncoder {
  const { created } = context;
  const losses = new Losses(formatName, context);
  const images: GeneratedImage[] = [];
  let result: ImageResult | undefined;
  let usage: Usage | undefined;
  return {
    event(event) {
      if (event.type === 'usage') usage = event.usage;
      if (event.type !== 'result') return;
      result = event.value as ImageResult;
      for (const image of result.images) images.push(image);
      losses.dropForeign(result.extra);
    },
    end() {
      if (result === undefined || images.length === 0) throw noImages();
      const used = writeUsage(usage, result.tokens);
      return {
        ...writeFacts(result, 'created', created),
        data: images.map(writeImage),
        ...(used === undefined ? {} : { usage: used }),
      };
    },
  };
}

function writeImage({ base64, url, revisedPrompt, extra }: GeneratedImage): JsonObject {
  return {
    ...(base64 === undefined ? {} : { b64_json: base64 }),
    ...(url === undefined ? {} : { url }),
    ...(revisedPrompt === undefined ? {} : { revised_prompt: revisedPrompt }),
    ...extra?.[formatName],
  };
}

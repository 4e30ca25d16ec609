/** Requests for videos as tables of fields, which both directions read. */
import { missingValue, type GatewayError } from '../../sdk/errors.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import type { VideoRequest } from '../../model/video.ts';
import type { EncodeTarget, Format, RouteParams } from '../../sdk/format.ts';
import { given, optionalString } from './check.ts';
import { defined } from './fields.ts';
import { retryHeaders } from './retry-headers.ts';
import { extraOf } from './spelling.ts';
import type { VideoCodecSpec } from './video-codec.ts';
import {
  metadataOf,
  optionalInteger,
  optionalRatio,
  optionalSeconds,
  optionalSize,
  promptOf,
  reportVideoSettings,
  unread,
  videoSettings,
  type VideoSettings,
} from './video-fields.ts';
import { requestedResolution, requestedSize } from './video-sizes.ts';

/** Reads each setting from a field, in this order. Throws a 400 error that names the field. */
const decoders = {
  seconds: optionalSeconds,
  size: optionalSize,
  aspectRatio: optionalRatio,
  resolution: optionalString,
  seed: optionalInteger,
  negativePrompt: optionalString,
  metadata: metadataOf,
  user: optionalString,
};
type Setting = keyof typeof decoders;
const settings = Object.keys(decoders) as readonly Setting[];

type Encode = (request: VideoRequest, target: EncodeTarget) => JsonValue | undefined;

/** Values for the provider of settings that are not sent as they are. */
const encoders: { readonly [Name in Setting]?: Encode } = {
  size: requestedSize,
  resolution: requestedResolution,
  // Is merged into the body.
  metadata: () => undefined,
};

/** Field of a setting that is not read or written as in most formats. */
interface OddField {
  readonly name: string;
  /** Reads the setting from a client's body. Throws a 400 error that names the field. */
  readonly decode?: (body: JsonObject) => VideoSettings[Setting];
  /** Returns the value for the provider, and reports what the provider cannot do. Undefined: the field is not sent. */
  readonly encode?: Encode;
}

/** Fields on the wire, by the setting that each carries. A setting without a field is dropped and reported. */
type Table = { readonly [Name in Setting]?: string | OddField };

/** The settings of a format, in both directions. */
export interface VideoFields {
  readonly names: readonly string[];
  /** Names of the fields by neutral names, for reports of what was dropped. */
  readonly words: Readonly<Record<string, string>>;
  /** Returns the settings of a client's request. Throws a 400 error that names the field. */
  decode(body: JsonObject): VideoSettings;
  /** Reports the settings of a request that no field carries. */
  report(request: VideoRequest, target: EncodeTarget): void;
  /** Returns the fields for the provider. Reports what the provider cannot do. */
  encode(request: VideoRequest, target: EncodeTarget): JsonObject;
}

/**
 * Returns the settings of a format from a table of its fields. `place` is where the fields are in a request, for errors.
 *
 * @example
 * const fields = videoFields({ seconds: { name: 'duration', encode: wholeSeconds }, seed: 'seed' });
 */
export function videoFields(table: Table, path = ''): VideoFields {
  const columns = settings.flatMap((setting): readonly (OddField & { readonly setting: Setting })[] => {
    const field = table[setting];
    if (field === undefined) return [];
    return [{ setting, ...(typeof field === 'string' ? { name: field } : field) }];
  });
  const carried = columns.flatMap(({ setting }) => (setting === 'metadata' ? [] : [setting]));
  // A size may be sent as a ratio or as a resolution.
  if ('aspectRatio' in table || 'resolution' in table) carried.push('size');
  return {
    names: columns.map(({ name }) => name),
    words: Object.fromEntries(columns.map(({ setting, name }) => [`settings.${setting}`, path + name])),
    decode: (body) =>
      videoSettings(
        Object.fromEntries(
          columns.map(({ setting, name, decode }) => [
            setting,
            decode === undefined ? decoders[setting](body[name], path + name) : decode(body),
          ]),
        ),
      ),
    report: (request, target) => reportVideoSettings(request, carried, target),
    encode: (request, target) =>
      defined(
        Object.fromEntries(
          columns.map(({ setting, name, encode = encoders[setting] }) => [
            name,
            encode === undefined ? request[setting] : encode(request, target),
          ]),
        ),
      ),
  };
}

/** Returns the length of a video as a whole number, for providers that take no parts of seconds. */
export function wholeSeconds({ seconds }: VideoRequest): number | undefined {
  return seconds === undefined ? undefined : Math.ceil(seconds);
}

/** Decoding table for requests of a format's clients. Fields that a table cannot express are functions. */
export interface VideoDecoderSpec {
  readonly format: string;
  readonly fields: VideoFields;
  /** Fields that may hold the model's name; errors name the first. Default `model`. */
  readonly modelFields?: readonly [string, ...string[]];
  /** Fields that hold images; reports name the first. */
  readonly imageFields: readonly [string, ...string[]];
  /** Further fields that are read. Unknown fields go to providers of the same format. */
  readonly otherFields?: readonly string[];
  /** Reads the images of a request. Throws a 400 error that names the field. */
  decodeImages(
    body: JsonObject,
    params: RouteParams,
  ): Pick<VideoRequest, 'images'> & Pick<VideoSettings, 'imageRole'>;
  /** Checks what else the format forbids. Throws a 400 error that names the field. */
  check?(body: JsonObject): void;
}

/** Returns the members of a codec that read requests of clients. */
export function videoDecoder(
  spec: VideoDecoderSpec,
): Pick<Required<VideoCodecSpec>, 'format' | 'words' | 'model' | 'decode'> {
  const { format, fields, modelFields = ['model'], imageFields, otherFields = [] } = spec;
  const read = new Set([...modelFields, 'prompt', ...imageFields, ...otherFields, ...fields.names]);
  function model(body: JsonObject): string {
    const field = modelFields.find((one) => given(body[one])) ?? modelFields[0];
    const name = optionalString(body[field], field) ?? '';
    if (name === '') throw missingValue(modelFields[0]);
    return name;
  }
  return {
    format,
    words: { ...fields.words, 'settings.images': imageFields[0] },
    model,
    decode(body, params) {
      const name = model(body);
      const { images, imageRole } = spec.decodeImages(body, params);
      const prompt = promptOf(body.prompt, images);
      spec.check?.(body);
      return {
        operation: 'create-video',
        format,
        model: name,
        prompt,
        images,
        ...videoSettings({ ...fields.decode(body), imageRole }),
        ...extraOf(format, unread(body, read)),
      };
    },
  };
}

/** Returns the members of a format whose errors have a shape of their own. */
export function videoErrors(
  body: (error: GatewayError, requestId: string) => JsonObject,
): Pick<Format, 'errorReply' | 'replyHeaders'> {
  return {
    errorReply: (error, requestId) => ({
      status: error.status,
      headers: { 'x-request-id': requestId, ...retryHeaders(error) },
      body: body(error, requestId),
    }),
    replyHeaders: (requestId) => ({ 'x-request-id': requestId }),
  };
}

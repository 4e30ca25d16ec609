/** Builds image codecs for providers with an API of their own, and translates sizes, ratios and images for them. */
import { GatewayError, wrongValue, type GatewayEvent, type JsonObject } from 'sluice';
import {
  unsupportedContent,
  contentRefused,
  noUsage,
  defineCodec,
  parseDataUrl,
  toDataUrl,
  unusableResponse,
  ratioOfSize,
  type Codec,
  type EncodedRequest,
  type EncodeTarget,
  type ImageInput,
  type ImageRequest,
  type ImageResult,
  type GeneratedImage,
} from 'sluice/channel-kit';
import { ownWords } from '../dialect/own-words.ts';

/** A provider's own image API, which no client speaks. */
export interface Pictures {
  /** The name under which its channel speaks. */
  readonly format: string;
  /** Maximum number of input images that the model edits; 0 where it only generates images. */
  readonly changes: number;
  /** Settings that `encode` handles: encodes them or reports them as dropped. */
  readonly carries?: readonly Setting[];
  /** Fields of clients that are this provider's own words. */
  readonly own?: readonly string[];
  /** Maximum number of images of one request; more are made by several requests. Default 1. */
  readonly atOnce?: number;
  /** Writes a request. `own` are the client's fields in the provider's words; all images are bytes. */
  encode(request: ImageRequest, target: EncodeTarget, own: JsonObject): EncodedRequest;
  /** Decodes a response. Throws GatewayError when it reports that there is no image. */
  decode(body: JsonObject): readonly GeneratedImage[];
}

type Setting = 'quality' | 'background' | 'style' | 'compression' | 'fileFormat' | 'mask' | 'delivery';

/** The client's words for settings that a provider may have no word for. */
const words: readonly (readonly [Setting | 'partials' | 'user', string])[] = [
  ['quality', 'quality'],
  ['background', 'background'],
  ['style', 'style'],
  ['compression', 'output_compression'],
  ['fileFormat', 'output_format'],
  ['mask', 'mask'],
  ['partials', 'partial_images'],
  ['user', 'user'],
];

/** Returns the codecs for images made, and where the provider changes given ones, for those changed. */
export function pictureCodecs(pictures: Pictures): {
  readonly 'generate-image': Codec<ImageRequest>;
  readonly 'edit-image'?: Codec<ImageRequest>;
} {
  const made = codecFor('generate-image', pictures);
  return pictures.changes === 0
    ? { 'generate-image': made }
    : { 'generate-image': made, 'edit-image': codecFor('edit-image', pictures) };
}

function codecFor(operation: 'generate-image' | 'edit-image', pictures: Pictures): Codec<ImageRequest> {
  const { format, changes, carries = [], own = [], atOnce = 1, encode, decode } = pictures;
  return defineCodec<ImageRequest>({
    format,
    operation,
    path: '',
    inlinesImages: true,
    tellsErrors: true,
    encodeRequest(request, target) {
      const { drop } = target;
      const members = ownWords(request.extra, own, drop);
      for (const [name, word] of words) {
        const value = request[name];
        const isWished = value !== undefined && value !== 'auto' && value !== 0;
        if (isWished && !carries.some((one) => one === name)) drop(word);
      }
      if (request.images.length > changes) {
        throw unsupportedContent(
          'image',
          `more than ${changes === 1 ? 'one image' : `${changes} images`}`,
          format,
        );
      }
      const { headers, ...encoded } = encode(request, target, members);
      return { ...encoded, headers: { accept: 'application/json', ...headers } };
    },
    split: (request) => inParts(request, atOnce),
    join: (results) => ({ images: results.flatMap((result) => (result as ImageResult).images) }),
    decodeWhole: (body) => eventsOf(decode(body)),
  });
}

function inParts(request: ImageRequest, atOnce: number): readonly ImageRequest[] {
  const { count = 1 } = request;
  if (count <= atOnce) return [request];
  return Array.from({ length: Math.ceil(count / atOnce) }, (_, index) => ({
    ...request,
    count: Math.min(atOnce, count - index * atOnce),
  }));
}

function eventsOf(images: readonly GeneratedImage[]): readonly GatewayEvent[] {
  if (images.length === 0) throw unusableResponse('gave no image');
  const fileFormat = /^image\/(png|jpeg|webp)$/.exec(images[0]?.mimeType ?? '')?.[1];
  return [
    { type: 'usage', usage: { ...noUsage, units: { images: images.length } } },
    { type: 'result', value: { images, ...(fileFormat === undefined ? {} : { fileFormat }) } },
  ];
}

/** Refuses an image or a mask that a model does not take, or drops and reports it where the operator prefers that. */
export function leaveOut(
  path: 'image' | 'mask',
  format: string,
  { unsupported, drop }: Pick<EncodeTarget, 'unsupported' | 'drop'>,
): void {
  if (unsupported === 'refuse')
    throw unsupportedContent(path, path === 'mask' ? 'a mask' : 'more than one image', format);
  drop(path, 'content');
}

/** Returns an image as a provider names it: an address, or a data URL. */
export function pictureAt(url: string, mimeType?: unknown): GeneratedImage {
  const type = typeof mimeType === 'string' ? { mimeType } : {};
  const data = parseDataUrl(url);
  return data === undefined ? { url, ...type } : { base64: data.data, mimeType: data.mimeType };
}

/** Returns the input images as data URLs. */
export function asDataUrls(images: readonly ImageInput[]): readonly string[] {
  return images.map((image) => {
    const { mimeType, data } = bytesOf(image);
    return toDataUrl(mimeType, data);
  });
}

/** Returns the bytes of a given image. Throws 400 for one that another provider keeps. */
export function bytesOf(image: ImageInput): { readonly mimeType: string; readonly data: string } {
  if (image.kind === 'data') return image;
  if (image.kind === 'file') {
    throw new GatewayError(
      'unsupported_content',
      'image: a file that another provider stores cannot be sent.',
      {
        param: 'image',
      },
    );
  }
  throw new Error('An image was not read before its request was encoded.');
}

/** Returns a wished size as the ratio next to it, of those that the provider has; also a ratio may be wished. What cannot be had is reported. */
export function ratioFor(
  { size }: ImageRequest,
  known: readonly string[],
  drop: (path: string) => void,
): string | undefined {
  if (size === undefined || size === 'auto') return undefined;
  if (known.includes(size)) return size;
  const ratio = /^\d{1,5}x\d{1,5}$/.test(size) ? ratioOfSize(size, known) : undefined;
  if (ratio === undefined) drop('size');
  return ratio;
}

/** Parses the requested size in pixels. Reports an invalid one as dropped. */
export function sidesFor(
  { size }: ImageRequest,
  drop: (path: string) => void,
): { readonly width: number; readonly height: number } | undefined {
  if (size === undefined || size === 'auto') return undefined;
  const [, width = 0, height = 0] = (/^([1-9]\d{1,4})x([1-9]\d{1,4})$/.exec(size) ?? []).map(Number);
  if (width > 0 && height > 0) return { width, height };
  drop('size');
  return undefined;
}

/** Returns the path for a model whose name has slashes. Throws 400 for a name that would change the path, such as with `..`. */
export function modelPath(model: string): string {
  const steps = model.split('/');
  if (steps.some((step) => /^\.*$/.test(step))) throw wrongValue('model', 'the name of a model');
  return `/${steps.map(encodeURIComponent).join('/')}`;
}

/** Throws a content policy error if the message is about the provider's review, else an upstream failure. */
export function throwReason(sentence: string): never {
  if (/nsfw|safety|moderat|sensitive|flagged|policy/i.test(sentence)) throw contentRefused(sentence);
  throw unusableResponse('made no image');
}

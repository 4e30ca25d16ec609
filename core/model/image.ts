/** Requests for images and their results, in neutral form. */
import type { Source } from './chat.ts';
import type { Extra } from './extra.ts';
import type { Upload } from './form.ts';

/**
 * An image of a request: an uploaded file, bytes in base64, a URL, or the id of a file at a provider.
 *
 * @example
 * const [image] = request.images;
 * if (image?.kind === 'url') return image.url;
 */
export type ImageInput = { readonly kind: 'upload'; readonly upload: Upload } | Source;

/**
 * A request for images: new ones, or changed ones.
 *
 * @example
 * const encodeRequest = ({ prompt, count = 1 }: ImageRequest, { model }: EncodeTarget) => ({ path: '/images', body: { model, prompt, n: count } });
 */
export interface ImageRequest {
  readonly operation: 'generate-image' | 'edit-image' | 'vary-image';
  /** The format that the client wrote. */
  readonly format: string;
  readonly model: string;
  /** Empty for variations. */
  readonly prompt: string;
  readonly images: readonly ImageInput[];
  readonly mask?: ImageInput;
  readonly stream: boolean;
  /** Number of images. Default: 1. */
  readonly count?: number;
  /** `auto`, or width and height: `1024x1536`. */
  readonly size?: string;
  readonly quality?: string;
  readonly background?: string;
  /** `png`, `jpeg`, `webp`. */
  readonly fileFormat?: string;
  /** 0 to 100. */
  readonly compression?: number;
  readonly style?: string;
  /** Form of the images in the response: URLs, or bytes in base64. */
  readonly delivery?: 'url' | 'base64';
  /** Sketches that a stream shows before the image. */
  readonly partials?: number;
  /** The end user's identifier. */
  readonly user?: string;
  readonly extra?: Extra;
}

/**
 * One image of a reply: `base64` or `url`.
 *
 * @example
 * const image: GeneratedImage = { base64: String(body.image), mimeType: 'image/png' };
 */
export interface GeneratedImage {
  readonly base64?: string;
  readonly url?: string;
  readonly mimeType?: string;
  /** The prompt that the model made of the client's. */
  readonly revisedPrompt?: string;
  readonly extra?: Extra;
}

/** Parts of the tokens of images, by modality. */
export interface ImageTokens {
  readonly inputText: number;
  readonly inputImage: number;
  readonly outputText: number;
  readonly outputImage: number;
}

/**
 * Value of the `result` event of image operations. A stream has previews before it, as `partial-image` events, and one `result` per image,
 * which are summed.
 *
 * @example
 * const value: ImageResult = { images: [{ base64: String(body.image), mimeType: 'image/png' }] };
 */
export interface ImageResult {
  readonly images: readonly GeneratedImage[];
  /** Unix seconds. */
  readonly created?: number;
  readonly size?: string;
  readonly quality?: string;
  readonly background?: string;
  readonly fileFormat?: string;
  /** Parts of the usage's tokens, if the provider reports them and `usage.raw` is not in the client's format. */
  readonly tokens?: ImageTokens;
  readonly extra?: Extra;
}

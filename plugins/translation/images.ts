/** The images of a request: files and addresses, read so that a channel can be sent their bytes. */
import { concatMap, from, map, of, type Observable } from 'rxjs';
import {
  GatewayError,
  type GatewayEvent,
  type GatewayRequest,
  type Operation,
  type Usage,
  type Loss,
} from 'sluice';
import {
  type ImageInput,
  type ImageRequest,
  type ImageResult,
  type GeneratedImage,
  type Upload,
  mediaKind,
} from 'sluice/channel-kit';
import { type Call, type InternalTools, type Target } from 'sluice/internal';

const operations: ReadonlySet<Operation> = new Set<Operation>(['generate-image', 'edit-image', 'vary-image']);

/** Returns true for a request that makes, changes or varies images. */
export function isOfImages(request: GatewayRequest): request is ImageRequest {
  return 'operation' in request && operations.has(request.operation);
}

/**
 * Returns the request with the bytes of all images that it gives: files are read, and addresses fetched. Rejects with 400 naming the image, and
 * with 413 where all of them are more than the gateway holds for one call.
 */
export async function readImages(
  call: Call,
  request: ImageRequest,
  { fetchMedia, settings }: InternalTools,
): Promise<ImageRequest> {
  const { images, mask } = request;
  if ([...images, ...(mask === undefined ? [] : [mask])].every(isReady)) return request;
  let room = settings.fetch.total;
  const read = async (image: ImageInput, at: string): Promise<ImageInput> => {
    if (image.kind === 'url') {
      const { bytes, mimeType } = await fetchMedia(call, image.url, {
        kinds: ['image'],
        at: `${at}.image_url`,
      });
      take(bytes.length, at);
      return { kind: 'data', mimeType, data: bytes.toString('base64') };
    }
    if (image.kind !== 'upload') return image;
    take(image.upload.size, at);
    return bytesOf(image.upload);
  };
  const take = (length: number, param: string): void => {
    room -= length;
    if (room >= 0) return;
    throw new GatewayError(
      'request_too_large',
      `${param}: the images of this request are too large together.`,
      {
        param,
      },
    );
  };
  const ready: ImageInput[] = [];
  for (const [index, image] of images.entries()) {
    // oxlint-disable-next-line no-await-in-loop -- sequential, because each file may have the maximum size
    ready.push(await read(image, image.kind === 'upload' ? 'image' : `images[${index}]`));
  }
  return { ...request, images: ready, ...(mask === undefined ? {} : { mask: await read(mask, 'mask') }) };
}

function isReady({ kind }: ImageInput): boolean {
  return kind === 'data' || kind === 'file';
}

async function bytesOf(upload: Upload): Promise<ImageInput> {
  const chunks: Buffer[] = [];
  for await (const chunk of upload.open()) chunks.push(chunk as Buffer);
  // The type is that of the bytes, not the declared one.
  const mimeType = mediaKind(upload.head) ?? upload.mimeType;
  return { kind: 'data', mimeType, data: Buffer.concat(chunks).toString('base64') };
}

/**
 * Returns a reply with the bytes of its images where the client wants them and the provider gave addresses. Where nothing may be fetched the
 * address goes to the client, and is reported as a loss.
 */
export function withBytes(
  source: Observable<GatewayEvent>,
  call: Call,
  target: Target,
  tools: InternalTools,
): Observable<GatewayEvent> {
  // Other requests are not decoded for this.
  if (!operations.has(call.operation)) return source;
  const { request } = call;
  if (!isOfImages(request) || !(request.stream || request.delivery === 'base64')) return source;
  return source.pipe(
    concatMap((event) => {
      if (event.type !== 'result') return of(event);
      const result = event.value as ImageResult;
      if (result.images.every(({ base64 }) => base64 !== undefined)) return of(event);
      if (!tools.settings.fetch.enabled) {
        const loss: Loss = {
          path: request.delivery === undefined ? 'stream' : 'response_format',
          kind: 'response',
          from: target.channel.id,
          to: call.codec.format,
        };
        return from([{ type: 'loss', loss } as const, event]);
      }
      return from(download(call, result, tools));
    }),
  );
}

async function download(
  call: Call,
  result: ImageResult,
  { fetchMedia }: InternalTools,
): Promise<GatewayEvent> {
  const bytesFrom = async (image: GeneratedImage): Promise<GeneratedImage> => {
    const { url, ...rest } = image;
    if (image.base64 !== undefined || url === undefined) return image;
    try {
      const { bytes, mimeType } = await fetchMedia(call, url, { kinds: ['image'], at: 'data' });
      return { ...rest, base64: bytes.toString('base64'), mimeType };
    } catch (error) {
      // An upstream error, because the provider sent the address.
      throw new GatewayError('upstream_error', 'An image that the upstream has made could not be fetched.', {
        origin: 'upstream',
        retryable: false,
        cause: error,
      });
    }
  };
  const images = await Promise.all(result.images.map(bytesFrom));
  return { type: 'result', value: { ...result, images } };
}

/**
 * Adds what has a price of its own and only the request names, where a reply does not tell it: quality and size of images, and that pages are
 * annotated.
 */
export function withNamedUnits(source: Observable<GatewayEvent>, call: Call): Observable<GatewayEvent> {
  if (call.operation === 'ocr') return withAnnotations(source, call);
  if (!operations.has(call.operation)) return source;
  const [name] = Object.keys(call.codec.estimate?.(call.request).units?.imagesAt ?? {});
  if (name === undefined) return source;
  return source.pipe(
    map((event) => {
      if (event.type !== 'usage') return event;
      const { units } = event.usage;
      if (units?.images === undefined || units.imagesAt !== undefined) return event;
      return { ...event, usage: { ...event.usage, units: { ...units, imagesAt: { [name]: units.images } } } };
    }),
  );
}

function withAnnotations(source: Observable<GatewayEvent>, call: Call): Observable<GatewayEvent> {
  if (call.codec.estimate?.(call.request).units?.annotatedPages === undefined) return source;
  return source.pipe(
    map((event) => {
      if (event.type !== 'usage') return event;
      const { units } = event.usage;
      if (units?.pages === undefined || units.annotatedPages !== undefined) return event;
      return { ...event, usage: { ...event.usage, units: { ...units, annotatedPages: units.pages } } };
    }),
  );
}

/** Returns the usage of a response that passed through. The number of images is the requested one, because its images are not counted. */
export function withImages(usage: Usage | undefined, call: Call): Usage | undefined {
  if (!operations.has(call.operation)) return usage;
  const { units } = call.codec.estimate?.(call.request) ?? {};
  return {
    ...(usage ?? { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 }),
    ...(units === undefined ? {} : { units }),
  };
}

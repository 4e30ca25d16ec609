import { GatewayError } from 'sluice';
import type { ImageInput, Upload, VideoRequest } from 'sluice/channel-kit';

/** First bytes of the supported image formats. */
const kinds: readonly (readonly [mimeType: string, fits: (head: Buffer) => boolean])[] = [
  ['image/png', (head) => head.subarray(0, 4).toString('latin1') === '\x89PNG'],
  ['image/jpeg', (head) => head[0] === 0xff && head[1] === 0xd8 && head[2] === 0xff],
  ['image/gif', (head) => head.subarray(0, 4).toString('latin1') === 'GIF8'],
  [
    'image/webp',
    (head) =>
      head.subarray(0, 4).toString('latin1') === 'RIFF' && head.subarray(8, 12).toString('latin1') === 'WEBP',
  ],
];

/** Returns the request with its uploaded images as bytes, since providers take them in as many ways as there are. Throws for what is no image, or too large. */
export async function withBytes(request: VideoRequest, most: number): Promise<VideoRequest> {
  if (request.images.every(({ kind }) => kind !== 'upload')) return request;
  const images: ImageInput[] = [];
  for (const image of request.images)
    images.push(image.kind === 'upload' ? await imageOf(image.upload, most) : image);
  return { ...request, images };
}

const param = 'input_reference';

async function imageOf(upload: Upload, most: number): Promise<ImageInput> {
  const kind = kinds.find(([, fits]) => fits(upload.head));
  if (kind === undefined) {
    throw new GatewayError('invalid_value', `${param} must be an image: PNG, JPEG, GIF or WebP.`, { param });
  }
  if (upload.size > most)
    throw new GatewayError('request_too_large', `${param} is larger than ${most} bytes.`, { param });
  const chunks: Buffer[] = [];
  for await (const chunk of upload.open()) chunks.push(chunk as Buffer);
  return { kind: 'data', mimeType: kind[0], data: Buffer.concat(chunks).toString('base64') };
}

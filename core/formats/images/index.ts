/** The images format: images made, edited and varied under `/v1/images`. */
import type { ImageRequest } from '../../model/image.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import { chatRateHeaders } from '../_openai/headers.ts';
import { defineCodec } from '../_shared/define-codec.ts';
import { frameType } from '../_shared/stream-frames.ts';
import type { Codec, Format } from '../../sdk/format.ts';
import { expectedOf } from './estimate.ts';
import { checkLimits } from './limits.ts';
import { decodeWhole, encodeWhole } from './reply.ts';
import { decodeRequest, encodeRequest, peek } from './request.ts';
import { passes } from './settings.ts';
import { ImageStreamDecoder, ImageStreamEncoder } from './stream.ts';
import { usageTap } from './usage.ts';
import { eventNames, formatName, paths, type ImageOperation } from './wire.ts';

function createCodec(operation: ImageOperation): Codec<ImageRequest> {
  const completed = `${eventNames[operation]}.completed`;
  const streams: Partial<Codec<ImageRequest>> =
    operation === 'vary-image'
      ? {}
      : {
          clientFraming: () => 'sse',
          decodeStream: () => new ImageStreamDecoder(operation),
          encodeStream: (context) => new ImageStreamEncoder(operation, context),
        };
  return defineCodec<ImageRequest>({
    format: formatName,
    operation,
    path: paths[operation],
    upstreamFraming: 'sse',
    marks: {
      usage: ['"usage"', completed],
      terminal: [completed],
      reply: ['data'],
    },
    endsStream: (frame) => frameType(frame) === completed,
    peek: peek(operation),
    passes,
    check: checkLimits,
    decodeRequest: decodeRequest(operation),
    encodeRequest,
    decodeWhole,
    encodeWhole,
    usageTap,
    estimate: expectedOf,
    ...streams,
  });
}

const images: Format = {
  name: formatName,
  routes: [
    { method: 'POST', path: '/v1/images/generations', operation: 'generate-image' },
    {
      method: 'POST',
      path: '/v1/images/edits',
      operation: 'edit-image',
      accepts: ['form', 'json'],
      files: 'image',
    },
    {
      method: 'POST',
      path: '/v1/images/variations',
      operation: 'vary-image',
      accepts: ['form'],
      files: 'image',
    },
  ],
  codecs: {
    'generate-image': createCodec('generate-image'),
    'edit-image': createCodec('edit-image'),
    'vary-image': createCodec('vary-image'),
  },
  errorReply,
  replyHeaders,
  rateHeaders: chatRateHeaders,
};

/** Images made, changed and varied: `/v1/images/…`. */
export default images;

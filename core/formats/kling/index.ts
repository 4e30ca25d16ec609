/** The kling format for videos: its endpoints and codecs. */
import { defineVideoCodecs } from '../_shared/video-codec.ts';
import type { Format, Route } from '../../sdk/format.ts';
import { errorReply } from './errors.ts';
import { readReport, writeSubmitted } from './report.ts';
import { decode, encode, modelIn, pathFor } from './request.ts';
import { name, words } from './wire.ts';

const kinds = ['text2video', 'image2video'];

const kling: Format = {
  name,
  routes: kinds.map((kind): Route => ({
    method: 'POST',
    path: `/kling/v1/videos/${kind}`,
    operation: 'create-video',
    params: () => ({ kind }),
  })),
  codecs: defineVideoCodecs({
    format: name,
    words,
    model: modelIn,
    decode,
    encode,
    readReport,
    writeSubmitted,
    writeStatus: writeSubmitted,
    ask: ({ id, images }) => ({
      path: `${pathFor(images)}/${encodeURIComponent(id)}`,
      method: 'GET',
      body: {},
    }),
  }),
  errorReply,
  replyHeaders: (requestId) => ({ 'x-request-id': requestId }),
};

/** The kling format: `/kling/v1/videos/text2video` and `image2video`. */
export default kling;

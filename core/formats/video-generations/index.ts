/** The generic video format of gateways: its endpoints and codecs. */
import { chatRateHeaders } from '../_openai/headers.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import { defineVideoCodecs } from '../_shared/video-codec.ts';
import { requiredModel } from '../_shared/check.ts';
import type { Format } from '../../sdk/format.ts';
import { readReport, writeStatus, writeSubmitted } from './report.ts';
import { decode, encode } from './request.ts';
import { name, words } from './wire.ts';

const videoGenerations: Format = {
  name,
  routes: [
    {
      method: 'POST',
      path: '/v1/video/generations',
      operation: 'create-video',
      accepts: ['json', 'form'],
      files: 'video',
    },
  ],
  codecs: defineVideoCodecs({
    format: name,
    words,
    model: ({ model }) => requiredModel(model),
    decode,
    encode,
    readReport,
    writeSubmitted,
    writeStatus,
    ask: ({ id }) => ({ path: `/video/generations/${encodeURIComponent(id)}`, method: 'GET', body: {} }),
  }),
  errorReply,
  replyHeaders,
  rateHeaders: chatRateHeaders,
};

/** The generic format of gateways for videos: `/v1/video/generations`. */
export default videoGenerations;

/** The videos format: its endpoints and codecs. */
import { chatRateHeaders } from '../_openai/headers.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import { defineVideoCodecs } from '../_shared/video-codec.ts';
import type { Format } from '../../sdk/format.ts';
import { askTask, cancelTask, contentRequest } from './ask.ts';
import { readReport, writeReport } from './report.ts';
import { decode, encode, modelIn } from './request.ts';
import { name, words } from './wire.ts';

const videos: Format = {
  name,
  routes: [
    {
      method: 'POST',
      path: '/v1/videos',
      operation: 'create-video',
      accepts: ['json', 'form'],
      files: 'video',
    },
    {
      method: 'POST',
      path: '/v1/videos/:id/remix',
      operation: 'create-video',
      accepts: ['json', 'form'],
      params: ({ id = '' }) => ({ id }),
    },
  ],
  codecs: defineVideoCodecs({
    format: name,
    words,
    model: modelIn,
    decode,
    encode,
    remixes: true,
    readReport,
    writeSubmitted: writeReport,
    writeStatus: writeReport,
    ask: askTask,
    cancel: cancelTask,
    contentRequest,
  }),
  errorReply,
  replyHeaders,
  rateHeaders: chatRateHeaders,
};

/** The videos format: `/v1/videos` and what belongs to a video there. */
export default videos;

/** The jimeng format for videos: its endpoint and codecs. */
import { defineVideoCodecs } from '../_shared/video-codec.ts';
import type { Format } from '../../sdk/format.ts';
import { errorReply } from './errors.ts';
import { readReport, writeStatus, writeSubmitted } from './report.ts';
import { ask, decode, encode, modelIn } from './request.ts';
import { name, submitQuery, words } from './wire.ts';

const jimeng: Format = {
  name,
  routes: [
    {
      method: 'POST',
      path: '/jimeng',
      operation: 'create-video',
      query: { Action: submitQuery.Action },
    },
  ],
  codecs: defineVideoCodecs({
    format: name,
    words,
    model: modelIn,
    decode,
    encode,
    readReport,
    writeSubmitted,
    writeStatus,
    ask,
  }),
  errorReply,
  replyHeaders: (requestId) => ({ 'x-request-id': requestId }),
};

/** The jimeng format: one path, whose query says whether a video is wanted or asked for. */
export default jimeng;

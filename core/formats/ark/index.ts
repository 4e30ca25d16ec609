/** The ark format of Volcengine for videos: its endpoints and codecs. */
import { defineVideoCodecs } from '../_shared/video-codec.ts';
import { requiredModel } from '../_shared/check.ts';
import type { Format } from '../../sdk/format.ts';
import { errorReply } from './errors.ts';
import { readReport, writeStatus, writeSubmitted } from './report.ts';
import { decode, encode, onlyNative } from './request.ts';
import { name, tasksPath, words } from './wire.ts';

const ark: Format = {
  name,
  routes: [{ method: 'POST', path: `/api/v3${tasksPath}`, operation: 'create-video' }],
  codecs: defineVideoCodecs({
    format: name,
    words,
    model: ({ model }) => requiredModel(model),
    decode,
    encode,
    onlyNative,
    readReport,
    writeSubmitted,
    writeStatus,
    ask: ({ id }) => ({ path: `${tasksPath}/${encodeURIComponent(id)}`, method: 'GET', body: {} }),
    cancel: ({ id }) => ({ path: `${tasksPath}/${encodeURIComponent(id)}`, method: 'DELETE', body: {} }),
  }),
  errorReply,
  replyHeaders: (requestId) => ({ 'x-request-id': requestId }),
};

/** The ark format: `/api/v3/contents/generations/tasks`. */
export default ark;

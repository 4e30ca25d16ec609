/** The vidu format for videos: its endpoints and codecs. */
import { defineVideoCodecs } from '../_shared/video-codec.ts';
import { requiredModel } from '../_shared/check.ts';
import type { Format, Route } from '../../sdk/format.ts';
import { errorReply } from './errors.ts';
import { readReport, writeStatus, writeSubmitted } from './report.ts';
import { decode, encode } from './request.ts';
import { kinds, name, words } from './wire.ts';

const codecs = defineVideoCodecs({
  format: name,
  words,
  model: ({ model }) => requiredModel(model),
  decode,
  encode,
  readReport,
  writeSubmitted,
  writeStatus,
  ask: ({ id }) => ({ path: `/tasks/${encodeURIComponent(id)}/creations`, method: 'GET', body: {} }),
  cancel: ({ id }) => ({ path: `/tasks/${encodeURIComponent(id)}/cancel`, body: { id } }),
});

const vidu: Format = {
  name,
  routes: kinds.map((kind): Route => ({
    method: 'POST',
    path: `/ent/v2/${kind}`,
    operation: 'create-video',
    params: () => ({ kind }),
  })),
  codecs,
  errorReply,
  replyHeaders: (requestId) => ({ 'x-request-id': requestId }),
};

/** The vidu format: `/ent/v2/text2video` and its like, and the tasks they make. */
export default vidu;

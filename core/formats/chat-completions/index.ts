/** The chat completions format: its endpoints and codecs. */
import { chatRateHeaders } from '../_openai/headers.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import type { Format } from '../../sdk/format.ts';
import { aliases } from './aliases.ts';
import { chatCodec } from './codec.ts';
import { models } from '../_openai/models.ts';
import { formatName } from './wire.ts';

const chatCompletions: Format = {
  name: formatName,
  routes: [{ method: 'POST', path: '/v1/chat/completions', operation: 'chat' }],
  codecs: { chat: chatCodec },
  errorReply,
  replyHeaders,
  rateHeaders: chatRateHeaders,
  models,
  aliases,
};

/** The chat completions format. Its model list has no route here, because the headers of `/v1/models` select the format of the list. */
export default chatCompletions;

export { samplingConflict } from './validate.ts';

/** The text completions format: its endpoint and codec. */
import { chatRateHeaders } from '../_openai/headers.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import type { Format } from '../../sdk/format.ts';
import { chatCodec } from './codec.ts';
import { formatName } from './wire.ts';

const textCompletions: Format = {
  name: formatName,
  routes: [{ method: 'POST', path: '/v1/completions', operation: 'chat' }],
  codecs: { chat: chatCodec },
  errorReply,
  replyHeaders,
  rateHeaders: chatRateHeaders,
};

/** The text completions format: a prompt, and what a model writes behind it. Models are listed as in chat completions. */
export default textCompletions;

/** The Responses format: its endpoints and codecs. */
import { chatRateHeaders } from '../_openai/headers.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import type { Format } from '../../sdk/format.ts';
import { responsesCodec, countTokensCodec } from './codec.ts';
import { compactCodec } from './compact.ts';
import { responsesSocket } from './socket.ts';
import { formatName } from './wire.ts';

const responses: Format = {
  name: formatName,
  routes: [
    { method: 'POST', path: '/v1/responses', operation: 'chat' },
    { method: 'POST', path: '/v1/responses/input_tokens', operation: 'count-tokens' },
    { method: 'POST', path: '/v1/responses/compact', operation: 'compact' },
  ],
  codecs: { chat: responsesCodec, 'count-tokens': countTokensCodec, compact: compactCodec },
  errorReply,
  replyHeaders,
  rateHeaders: chatRateHeaders,
  sockets: [responsesSocket],
};

/** The Responses format. Plugins store objects between calls and serve their paths. Models are listed as in chat completions. */
export default responses;

/** The messages format: its endpoints and codecs. */
import type { Format } from '../../sdk/format.ts';
import { aliases } from './aliases.ts';
import { chatCodec, countCodec } from './codec.ts';
import { errorReply, replyHeaders } from './errors.ts';
import { checkVersion, rateHeaders } from './headers.ts';
import { modelListing } from './models.ts';
import { formatName } from './wire.ts';

const messages: Format = {
  name: formatName,
  routes: [
    { method: 'POST', path: '/v1/messages', operation: 'chat', checkHeaders: checkVersion },
    {
      method: 'POST',
      path: '/v1/messages/count_tokens',
      operation: 'count-tokens',
      checkHeaders: checkVersion,
    },
  ],
  codecs: { chat: chatCodec, 'count-tokens': countCodec },
  errorReply,
  replyHeaders,
  rateHeaders,
  models: modelListing,
  aliases,
};

/** The messages format: `/v1/messages`, its token counts and its model list. */
export default messages;

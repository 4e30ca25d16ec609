/** The realtime format: its endpoints, which open a WebSocket. */
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import { chatRateHeaders } from '../_openai/headers.ts';
import type { Format } from '../../sdk/format.ts';
import { realtimeCodec } from './codec.ts';
import { translations, tunnel } from './tunnel/index.ts';
import { formatName } from './wire.ts';

const realtime: Format = {
  name: formatName,
  routes: [],
  codecs: { realtime: realtimeCodec },
  errorReply,
  replyHeaders,
  rateHeaders: chatRateHeaders,
  tunnels: [tunnel, translations],
};

/** The realtime format: sessions over a WebSocket, in text and audio, and translations of speech. Refusals are those of chat completions. */
export default realtime;

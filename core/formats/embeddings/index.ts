/** The embeddings format: its endpoint and codec. */
import { chatRateHeaders } from '../_openai/headers.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import type { Format } from '../../sdk/format.ts';
import { embedCodec } from './codec.ts';
import { formatName } from './wire.ts';

const embeddings: Format = {
  name: formatName,
  routes: [{ method: 'POST', path: '/v1/embeddings', operation: 'embed' }],
  codecs: { embed: embedCodec },
  errorReply,
  replyHeaders,
  rateHeaders: chatRateHeaders,
};

/** Embeddings, as most providers have them: `/v1/embeddings`. */
export default embeddings;

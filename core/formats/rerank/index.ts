/** The rerank format: its endpoints and codec. */
import type { RerankRequest } from '../../model/rerank.ts';
import { chatRateHeaders } from '../_openai/headers.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import { defineCodec } from '../_shared/define-codec.ts';
import { decodeRerank, estimateRerank } from '../_shared/rerank.ts';
import type { Codec, Format, Route } from '../../sdk/format.ts';
import { encodeWhole } from './reply.ts';
import { decodeRequest, encodeRequest } from './request.ts';
import { formatName, path } from './wire.ts';

const rerankCodec: Codec<RerankRequest> = defineCodec<RerankRequest>({
  format: formatName,
  operation: 'rerank',
  path,
  // Providers differ in their defaults and in what they answer: the gateway sorts, cuts and puts the documents back for all.
  passes: () => false,
  decodeRequest,
  encodeRequest,
  decodeWhole: (body) => decodeRerank(body, formatName),
  encodeWhole,
  estimate: estimateRerank,
});

const route = (at: string): Route => ({ method: 'POST', path: at, operation: 'rerank' });

const rerank: Format = {
  name: formatName,
  routes: [route('/v1/rerank'), route('/v2/rerank'), route('/rerank')],
  codecs: { rerank: rerankCodec },
  errorReply(error, requestId) {
    const reply = errorReply(error, requestId);
    // Clients of one of the families read the sentence here.
    return { ...reply, body: { ...reply.body, message: error.message } };
  },
  replyHeaders,
  rateHeaders: chatRateHeaders,
};

/** Documents in the order of how well they answer a query: `/v1/rerank`, `/v2/rerank`, `/rerank`. */
export default rerank;

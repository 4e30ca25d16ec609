/** The OCR format: documents read page by page, as Mistral has it. */
import type { OcrRequest } from '../../model/ocr.ts';
import type { Codec, Format } from '../../sdk/format.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import { chatRateHeaders } from '../_openai/headers.ts';
import { defineCodec } from '../_shared/define-codec.ts';
import { decodeWhole, encodeWhole, usageTap } from './reply.ts';
import { decodeRequest, encodeRequest, expectedOf } from './request.ts';
import { formatName, path } from './wire.ts';

const read: Codec<OcrRequest> = defineCodec<OcrRequest>({
  format: formatName,
  operation: 'ocr',
  path,
  marks: { usage: ['"usage_info":{', '"usage_info": {'], terminal: [], reply: ['pages'] },
  decodeRequest,
  encodeRequest,
  decodeWhole,
  encodeWhole,
  usageTap,
  estimate: expectedOf,
});

const ocr: Format = {
  name: formatName,
  routes: [{ method: 'POST', path: '/v1/ocr', operation: 'ocr' }],
  codecs: { ocr: read },
  errorReply(error, requestId) {
    const reply = errorReply(error, requestId);
    // Clients of Mistral read the sentence here.
    return { ...reply, body: { ...reply.body, message: error.message } };
  },
  replyHeaders,
  rateHeaders: chatRateHeaders,
};

/** Documents read page by page, as Mistral has it: `/v1/ocr`. */
export default ocr;

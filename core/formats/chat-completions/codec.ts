import type { ChatRequest } from '../../model/chat.ts';
import { endsCompletion } from '../_shared/stream-frames.ts';
import { askUsage, isUsageOnly } from '../_shared/usage.ts';
import type { Codec } from '../../sdk/format.ts';
import { decodeRequest } from './request-in/index.ts';
import { ChatStreamDecoder } from './stream-in/index.ts';
import { wantsBytes } from './request-out/parts.ts';
import { chatPath, encodeRequest, headersFor } from './request-out/index.ts';
import { ChatStreamEncoder } from './stream-out/index.ts';
import { patch } from './patch.ts';
import { settingPath } from './settings.ts';
import { usageTap } from './usage.ts';
import { checkSampling, validate } from './validate.ts';
import { ChatWholeEncoder, decodeWhole } from './whole/index.ts';
import { formatName } from './wire.ts';
import { words } from './words.ts';
import { peek } from '../_shared/check.ts';

/** Chat completions. */
export const chatCodec: Codec<ChatRequest> = {
  format: formatName,
  operation: 'chat',
  upstreamFraming: 'sse',
  toleratesComments: true,
  marks: {
    // Chunks carry `"usage":null`, which is no usage.
    usage: ['"usage":{', '"usage": {', '"usage" : {'],
    terminal: ['[DONE]', '"finish_reason":"', '"finish_reason": "', '"finish_reason" : "'],
  },
  endsStream: endsCompletion,
  peek,
  validate,
  outlines: true,
  checkSampling,
  clientFraming: () => 'sse',
  patch,
  passThrough: (_model, _stream, headers) => ({ path: chatPath, ...headersFor(headers) }),
  askUsage,
  isUsageOnly,
  wantsBytes,
  decodeRequest,
  encodeRequest,
  decodeStream: (traits) => new ChatStreamDecoder(traits),
  encodeStream: (context) => new ChatStreamEncoder(context),
  decodeWhole,
  encodeWhole: (context) => new ChatWholeEncoder(context),
  usageTap,
  settingPath,
  words,
};

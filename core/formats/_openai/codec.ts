import type { Codec } from '../../sdk/format.ts';
import { peek } from '../_shared/check.ts';
import { endsCompletion } from '../_shared/stream-frames.ts';
import { requestUsage, isUsageOnly } from '../_shared/usage.ts';
import { replyWords } from './reply-words.ts';

/** Shared parts of the codecs of chat and text completions. */
export const completions = {
  upstreamFraming: 'sse',
  toleratesComments: true,
  marks: {
    // Chunks carry `"usage":null`, which is no usage.
    usage: ['"usage":{', '"usage": {', '"usage" : {'],
    terminal: ['[DONE]', '"finish_reason":"', '"finish_reason": "', '"finish_reason" : "'],
  },
  endsStream: endsCompletion,
  peek,
  clientFraming: () => 'sse',
  askUsage: requestUsage,
  isUsageOnly,
  replyWords,
} as const satisfies Partial<Codec>;

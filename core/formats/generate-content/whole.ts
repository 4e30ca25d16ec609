/** Whole generateContent replies, which are one chunk of a stream: decoding and encoding. */
import type { GatewayEvent } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ReplyContext, WholeEncoder } from '../../sdk/format.ts';
import { ReplyDecoder } from './stream-in/index.ts';
import { ReplyEncoder } from './stream-out/index.ts';
import { replySigns } from './wire.ts';
import { unusableResponse } from '../_shared/upstream-error/index.ts';

/** Decodes a whole reply. Throws for an error body and for JSON that is no reply. */
export function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  if (!replySigns.some((key) => body[key] !== undefined)) throw unusableResponse('sent an invalid response');
  const decoder = new ReplyDecoder(true);
  return [...decoder.chunk(body), ...decoder.end()];
}

/** Encodes events as one chunk, by a stream encoder that writes everything at the end. */
export function encodeWhole(context: ReplyContext): WholeEncoder {
  const encoder = new ReplyEncoder(context, true);
  return {
    event(event) {
      encoder.event(event);
    },
    end() {
      const [frame] = encoder.end();
      return frame !== undefined && 'json' in frame ? frame.json : {};
    },
  };
}

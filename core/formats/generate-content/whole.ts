import type { GatewayEvent } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ReplyContext, WholeEncoder } from '../../sdk/format.ts';
import { ReplyDecoder } from './stream-in/index.ts';
import { ReplyEncoder } from './stream-out/index.ts';
import { replySigns } from './wire.ts';
import { unusableResponse } from '../_shared/upstream-error/index.ts';

/** A whole reply is one chunk that says everything. Throws for an error body and for what is no reply at all. */
export function decodeWhole(body: JsonObject): readonly GatewayEvent[] {
  if (!replySigns.some((key) => body[key] !== undefined))
    throw unusableResponse('sent something that is no answer');
  const decoder = new ReplyDecoder(true);
  return [...decoder.chunk(body), ...decoder.end()];
}

/** Gathers events into one chunk: the stream's encoder, which holds everything back. */
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

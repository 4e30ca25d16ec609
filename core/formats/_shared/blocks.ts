/**
 * Block numbers and end events for stream decoders, and the filter that stream encoders use to skip events that are no part of a chat
 * reply.
 */
import type { GatewayEvent } from '../../model/event.ts';

/** Numbers the blocks of a response. */
export class BlockCounter {
  #next = 0;

  next(): number {
    const block = this.#next;
    this.#next += 1;
    return block;
  }
}

/** Returns the event that closes an open block of this kind. */
export function endOf(
  kind: 'text' | 'refusal' | 'reasoning' | 'tool' | 'media',
  block: number,
  choice: number,
): GatewayEvent {
  return { type: `${kind}-end`, block, choice };
}

/** Events that are no part of a chat's reply. */
const besides = [
  'request',
  'attempt',
  'answer',
  'loss',
  'frames',
  'bytes',
  'result',
  'partial-image',
  'message',
  'models',
] as const;
const passedOver: ReadonlySet<GatewayEvent['type']> = new Set(besides);

/** Returns true for the events that an encoder of a chat stream writes. */
export function isReplyEvent(
  event: GatewayEvent,
): event is Exclude<GatewayEvent, { readonly type: (typeof besides)[number] }> {
  return !passedOver.has(event.type);
}

import type { GatewayEvent } from '../../model/event.ts';

/** Gives each block of a reply its number. */
export class BlockCounter {
  #next = 0;

  next(): number {
    const block = this.#next;
    this.#next += 1;
    return block;
  }
}

/** The event that closes an open block of this kind. */
export function endOf(
  kind: 'text' | 'refusal' | 'reasoning' | 'tool' | 'media',
  block: number,
  choice: number,
): GatewayEvent {
  return { type: `${kind}-end`, block, choice };
}

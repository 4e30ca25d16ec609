/** State of one candidate while a generateContent stream is encoded. */
import type { EventOf } from '../../_shared/floor.ts';
import type { Cited } from '../citations.ts';

/** An open block. */
export interface Block {
  readonly kind: 'text' | 'reasoning' | 'tool' | 'media';
  /** Text so far, or arguments so far. */
  text: string;
  /** Pieces of base64 so far. */
  readonly data: string[];
  /** Start event of a call or a medium, which is written when the block ends. */
  readonly start: EventOf<'tool-start' | 'media-start'> | undefined;
}

/** State of one candidate. */
export class Choice {
  readonly blocks = new Map<number, Block>();
  readonly cited: Cited[] = [];
  finished = false;
  /** True where the last chunk may have no part, because this format's own provider sent it so. */
  bare = false;

  /** Returns the block of this number. Begins it if there is none. */
  open(block: number, kind: Block['kind'], start?: Block['start']): Block {
    let open = this.blocks.get(block);
    if (open === undefined) this.blocks.set(block, (open = { kind, text: '', data: [], start }));
    return open;
  }
}

import type { EventOf } from '../../_shared/floor.ts';
import type { Cited } from '../citations.ts';

/** A block that has begun. */
export interface Block {
  readonly kind: 'text' | 'reasoning' | 'tool' | 'media';
  /** Text so far, arguments so far, or base64 so far. */
  text: string;
  /** How a call or a medium began: it is said when it has ended. */
  readonly start: EventOf<'tool-start' | 'media-start'> | undefined;
}

/** One answer of several. */
export class Choice {
  readonly blocks = new Map<number, Block>();
  readonly cited: Cited[] = [];
  finished = false;
  /** Its last chunk may go out without a part: so it came from this format's own provider. */
  bare = false;

  /** The block of this number, begun when there is none. */
  open(block: number, kind: Block['kind'], start?: Block['start']): Block {
    let open = this.blocks.get(block);
    if (open === undefined) this.blocks.set(block, (open = { kind, text: '', start }));
    return open;
  }
}

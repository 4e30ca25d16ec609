/** Keeps the open blocks of a Messages or Converse stream by their index, and emits the end event of each. */
import type { GatewayEvent } from '../../model/event.ts';
import type { Extra, Proof } from '../../model/extra.ts';
import type { JsonObject } from '../../model/json.ts';
import { BlockCounter } from './blocks.ts';
import { unusableResponse } from './upstream-error/index.ts';

/** Maximum number of open blocks. These formats open one at a time; a faulty upstream may not close them. */
const openLimit = 1024;

type Kind = 'text' | 'reasoning' | 'tool' | 'media' | 'opaque';

/** A block that has begun. */
export interface OpenBlock {
  readonly kind: Kind;
  readonly block: number;
  signature: string;
  /** Reasoning that only its provider can read. */
  redacted: string | undefined;
  /** A call's input that came with its start. */
  input: string;
}

/** Functions by which a format builds the end event of a block. */
interface EndWords {
  readonly format: string;
  /** The end of a part that only the format knows; `frame` is what ended it, if anything did. */
  readonly stop: (index: number, frame: JsonObject | undefined) => GatewayEvent;
  /** Returns the fields of a frame that ends a block which only the format knows. */
  readonly extra?: (frame: JsonObject) => { readonly extra?: Extra };
}

/** The open blocks of a stream whose frames name them by an index. */
export class OpenBlocks {
  readonly #words: EndWords;
  readonly #counter = new BlockCounter();
  readonly #open = new Map<number, OpenBlock>();

  constructor(words: EndWords) {
    this.#words = words;
  }

  at(index: number): OpenBlock | undefined {
    return this.#open.get(index);
  }

  /** Opens a block; the caller emits its start event. Throws where too many are open. */
  begin(kind: Kind, index: number): OpenBlock {
    if (this.#open.size >= openLimit) throw unusableResponse('sent too many open blocks');
    const open = { kind, block: this.#counter.next(), signature: '', redacted: undefined, input: '' };
    this.#open.set(index, open);
    return open;
  }

  /** Returns the open block of this kind at an index. Opens it if the provider sends no start. */
  need(kind: 'text' | 'reasoning', index: number, events: GatewayEvent[]): OpenBlock {
    const open = this.#open.get(index);
    if (open?.kind === kind) return open;
    this.close(index, events);
    const begun = this.begin(kind, index);
    events.push({ type: `${kind}-start`, block: begun.block, choice: 0 });
    return begun;
  }

  /** Ends the block at an index, if there is one. */
  close(index: number, events: GatewayEvent[], frame?: JsonObject): void {
    const open = this.#open.get(index);
    if (open === undefined) return;
    this.#open.delete(index);
    const { kind, block, input } = open;
    if (kind === 'opaque') {
      events.push(this.#words.stop(index, frame));
      return;
    }
    if (input !== '') events.push({ type: 'tool-delta', block, choice: 0, input });
    const base = { block, choice: 0, ...(frame === undefined ? {} : this.#words.extra?.(frame)) };
    const proof = kind === 'reasoning' ? this.#proofOf(open) : undefined;
    if (kind === 'reasoning' && proof !== undefined) events.push({ type: 'reasoning-end', ...base, proof });
    else events.push({ type: `${kind}-end`, ...base });
  }

  /** Ends every block. */
  closeAll(events: GatewayEvent[]): void {
    for (const index of this.#open.keys()) this.close(index, events);
  }

  #proofOf({ redacted, signature }: OpenBlock): Proof | undefined {
    const { format } = this.#words;
    if (redacted !== undefined) return { format, kind: 'encrypted', value: redacted };
    return signature === '' ? undefined : { format, kind: 'signature', value: signature };
  }
}

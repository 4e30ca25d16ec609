/**
 * Base class of the stream encoders of Messages, Converse and Responses, which write one block at a time: delays interleaved blocks, and
 * reports what the format cannot carry.
 */
import type { GatewayError } from '../../sdk/errors.ts';
import type { ReplyContext, StreamEncoder, WireFrame } from '../../sdk/format.ts';
import type { FinishReason, GatewayEvent, HeadEvent } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import { isReplyEvent } from './blocks.ts';
import { Losses } from './losses.ts';
import { WaitingBlocks } from './waiting-blocks.ts';

/** An event of one of these kinds. */
export type EventOf<Type extends GatewayEvent['type']> = Extract<GatewayEvent, { type: Type }>;
/** An event that belongs to a block. */
export type BlockEvent = Extract<GatewayEvent, { readonly block: number; readonly choice: number }>;

/** An event of a block: `opaque` for a part that only the format knows. */
export type EncodedEvent = BlockEvent | EventOf<'opaque'>;

const none: readonly WireFrame[] = [];

/**
 * Stream encoder for one choice whose blocks are written in sequence. One block is open; events of other blocks wait until it ends.
 * Subclasses write the frames.
 */
export abstract class FloorEncoder implements StreamEncoder {
  protected readonly context: ReplyContext;
  protected readonly losses: Losses;
  protected usage: Usage | undefined;
  protected finish: EventOf<'finish'> | undefined;
  readonly #waiting = new WaitingBlocks<EncodedEvent>();
  #started = false;
  #over = false;

  constructor(format: string, context: ReplyContext) {
    this.context = context;
    this.losses = new Losses(format, context);
  }

  /** The block that has the floor. */
  protected abstract readonly floor: number | undefined;
  /** Writes the beginning of a reply. */
  protected abstract emitHead(head: HeadEvent | undefined): void;
  /** Writes an event of the open block, or of the block that it opens. */
  protected abstract emitEvent(block: number, event: EncodedEvent): void;
  /** Routes a part that only this format has to its block, or encodes it separately. */
  protected abstract takeOpaque(value: JsonObject, event: EventOf<'opaque'>): void;
  /** Ends the block that has the floor, if there is one. */
  protected abstract endFloor(): void;
  /** Writes the end of a reply. */
  protected abstract emitEnd(): void;
  protected abstract emitError(error: GatewayError): void;
  /** Returns the frames that were written since the last call. */
  protected abstract takeFrames(): readonly WireFrame[];

  /** Called when the answer has finished. */
  protected finished(_reason: FinishReason): void {}

  /** Called when the last block has ended. */
  protected ended(): void {}

  /** Writes a keep-alive frame, in formats that have one. */
  protected ping(): void {}

  event(event: GatewayEvent): readonly WireFrame[] {
    if (this.#over || !isReplyEvent(event)) return none;
    switch (event.type) {
      case 'usage':
        this.usage = event.usage;
        return none;
      case 'head':
        this.losses.dropForeign(event.extra);
        this.#start(event);
        break;
      case 'opaque':
        if (!this.losses.isOwn(event)) return none;
        this.#start();
        this.takeOpaque(event.value, event);
        break;
      default:
        this.losses.dropForeign(event.extra);
        if (event.choice !== 0) {
          this.losses.drop('choices');
          return none;
        }
        this.#start();
        if (event.type !== 'finish') this.route(event.block, event);
        else {
          this.finish = event;
          this.finished(event.reason);
        }
    }
    return this.takeFrames();
  }

  end(): readonly WireFrame[] {
    if (this.#over) return none;
    this.#start();
    this.endFloor();
    while (this.#next()) this.endFloor();
    this.#over = true;
    this.ended();
    this.emitEnd();
    return this.takeFrames();
  }

  error(error: GatewayError): readonly WireFrame[] {
    if (this.#over) return none;
    this.#over = true;
    this.emitError(error);
    return this.takeFrames();
  }

  keepAlive(): readonly WireFrame[] {
    if (this.#over) return none;
    this.ping();
    return this.takeFrames();
  }

  /** Sends an event to its block, or lets it wait; then the waiting ones, as far as the floor is free. */
  protected route(block: number, event: EncodedEvent): void {
    const { floor } = this;
    if (floor !== undefined && floor !== block) {
      this.#waiting.add(block, event);
      return;
    }
    this.emitEvent(block, event);
    while (this.floor === undefined && this.#next());
  }

  /** Makes the block that has waited longest the current one. Returns false when none waits. */
  #next(): boolean {
    const next = this.#waiting.take();
    if (next === undefined) return false;
    for (const event of next.events) this.emitEvent(next.block, event);
    return true;
  }

  #start(head?: HeadEvent): void {
    if (this.#started) return;
    this.#started = true;
    this.emitHead(head);
  }
}

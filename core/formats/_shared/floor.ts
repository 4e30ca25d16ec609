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

/** What is said in its block: `opaque` for a part that only the format knows. */
export type Said = BlockEvent | EventOf<'opaque'>;

const none: readonly WireFrame[] = [];

/**
 * The streams of formats that say one block after the other, in one answer: one block has the floor, and those that come interleaved wait
 * until it has ended. What the frames look like is for the format to say.
 */
export abstract class FloorEncoder implements StreamEncoder {
  protected readonly context: ReplyContext;
  protected readonly losses: Losses;
  protected usage: Usage | undefined;
  protected finish: EventOf<'finish'> | undefined;
  readonly #waiting = new WaitingBlocks<Said>();
  #started = false;
  #over = false;

  constructor(format: string, context: ReplyContext) {
    this.context = context;
    this.losses = new Losses(format, context);
  }

  /** The block that has the floor. */
  protected abstract readonly floor: number | undefined;
  /** Says what a reply begins with. */
  protected abstract sayHead(head: HeadEvent | undefined): void;
  /** Says an event of the block that has the floor, or that takes it. */
  protected abstract sayEvent(block: number, event: Said): void;
  /** Routes a part that only this format knows to its block, or says it apart. */
  protected abstract takeOpaque(value: JsonObject, event: EventOf<'opaque'>): void;
  /** Ends the block that has the floor, if there is one. */
  protected abstract endFloor(): void;
  /** Says what a reply ends with. */
  protected abstract sayEnd(): void;
  protected abstract sayError(error: GatewayError): void;
  /** The frames that were said since they were last taken. */
  protected abstract takeFrames(): readonly WireFrame[];

  /** The answer has ended; what comes now is told of it alone. */
  protected finished(_reason: FinishReason): void {}

  /** The last block has ended. */
  protected ended(): void {}

  /** Says what keeps a silent stream alive, if anything does. */
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
    this.sayEnd();
    return this.takeFrames();
  }

  error(error: GatewayError): readonly WireFrame[] {
    if (this.#over) return none;
    this.#over = true;
    this.sayError(error);
    return this.takeFrames();
  }

  keepAlive(): readonly WireFrame[] {
    if (this.#over) return none;
    this.ping();
    return this.takeFrames();
  }

  /** Sends an event to its block, or lets it wait; then the waiting ones, as far as the floor is free. */
  protected route(block: number, event: Said): void {
    const { floor } = this;
    if (floor !== undefined && floor !== block) {
      this.#waiting.add(block, event);
      return;
    }
    this.sayEvent(block, event);
    while (this.floor === undefined && this.#next());
  }

  /** Gives the floor to the block that waits longest; false when none does. */
  #next(): boolean {
    const next = this.#waiting.take();
    if (next === undefined) return false;
    for (const event of next.events) this.sayEvent(next.block, event);
    return true;
  }

  #start(head?: HeadEvent): void {
    if (this.#started) return;
    this.#started = true;
    this.sayHead(head);
  }
}

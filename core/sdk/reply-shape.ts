import type { GatewayEvent } from '../model/event.ts';
import { GatewayError } from './errors.ts';

/** Blocks that begin and end by themselves where a channel sends nothing but their deltas. */
const plain = ['text', 'reasoning', 'refusal'] as const;
type PlainKind = (typeof plain)[number];

/** Counts that a channel may leave out. */
const noTokens = { cacheRead: 0, cacheWrite: 0, reasoning: 0 } as const;

/** A block that is open, in the numbers of the reply. */
interface OpenBlock {
  readonly block: number;
  readonly choice: number;
  readonly kind: string;
}

/**
 * Puts the events of one reply into the order that {@link GatewayEvent} promises, so that a channel need not: the reply begins with a head,
 * deltas stand in blocks with a start and an end, blocks have numbers of their own, and a reply without `finish` is an error.
 */
export class ReplyShape {
  readonly #model: string;
  readonly #id: string;
  readonly #open = new Map<string, OpenBlock>();
  #hasHead = false;
  #isFinished = false;
  #blocks = 0;

  /** `id` and `model` of a reply whose channel sends no head. */
  constructor(id: string, model: string) {
    this.#id = id;
    this.#model = model;
  }

  /** Returns what an event of the channel comes to. */
  event(event: GatewayEvent): readonly GatewayEvent[] {
    if (event.type === 'head') {
      if (this.#hasHead) return [];
      this.#hasHead = true;
      return [event];
    }
    const events = this.#inBlocks(event);
    if (this.#hasHead || event.type === 'loss' || events.length === 0) return events;
    this.#hasHead = true;
    return [{ type: 'head', id: this.#id, model: this.#model }, ...events];
  }

  /** Throws when the reply is not complete. */
  end(): void {
    if (!this.#isFinished)
      throw new GatewayError('upstream_cut', 'The upstream stopped before the response was complete.', {
        origin: 'upstream',
      });
  }

  #inBlocks(event: GatewayEvent): readonly GatewayEvent[] {
    switch (event.type) {
      case 'text-delta':
      case 'reasoning-delta':
      case 'refusal-delta':
        return this.#delta(event);
      case 'text-start':
      case 'reasoning-start':
      case 'refusal-start':
      case 'media-start':
      case 'tool-start':
        return this.#start(event);
      case 'citation':
      case 'media-delta':
      case 'tool-delta':
        return [{ ...event, block: this.#openBlock(event).block }];
      case 'text-end':
      case 'reasoning-end':
      case 'refusal-end':
      case 'media-end':
      case 'tool-end': {
        const { block } = this.#openBlock(event);
        this.#open.delete(keyOf(event));
        return [{ ...event, block }];
      }
      case 'finish':
        this.#isFinished = true;
        return [...this.#closeAll(event.choice), event];
      case 'usage':
        return [{ ...event, usage: { ...noTokens, ...event.usage } }];
      case 'opaque':
      case 'loss':
        return [event];
      default:
        throw wrong(`"${event.type}" is not an event of a channel's response`);
    }
  }

  #delta(event: GatewayEvent & { readonly type: `${PlainKind}-delta` }): readonly GatewayEvent[] {
    const open = this.#open.get(keyOf(event));
    if (open !== undefined) return [{ ...event, block: open.block }];
    const { choice, block } = event;
    const kind = kindOf(event);
    const begun = this.#start({ type: `${kind}-start` as `${PlainKind}-start`, block, choice });
    return [...begun, { ...event, block: this.#openBlock(event).block }];
  }

  /** Starts a block. Ends the open blocks of its choice, because only tool calls of one choice may be open at the same time. */
  #start(event: GatewayEvent & { readonly type: `${string}-start` }): readonly GatewayEvent[] {
    const { choice } = event;
    const ended = kindOf(event) === 'tool' ? this.#closeAll(choice, 'tool') : this.#closeAll(choice);
    const block = this.#blocks;
    this.#blocks += 1;
    this.#open.set(keyOf(event), { block, choice, kind: kindOf(event) });
    return [...ended, { ...event, block }];
  }

  /** Closes the blocks of a choice, but for those of one kind. */
  #closeAll(ofChoice: number, except?: string): readonly GatewayEvent[] {
    const ends: GatewayEvent[] = [];
    for (const [key, { block, choice, kind }] of this.#open) {
      if (choice !== ofChoice || kind === except) continue;
      this.#open.delete(key);
      ends.push({ type: `${kind}-end` as 'text-end', block, choice });
    }
    return ends;
  }

  #openBlock(event: GatewayEvent & { readonly block: number; readonly choice: number }): OpenBlock {
    const open = this.#open.get(keyOf(event));
    if (open === undefined) throw wrong(`"${event.type}" came without a start of block ${event.block}`);
    return open;
  }
}

function kindOf({ type }: Pick<GatewayEvent, 'type'>): string {
  return type === 'citation' ? 'text' : type.slice(0, type.indexOf('-'));
}

function keyOf(event: GatewayEvent & { readonly block: number; readonly choice: number }): string {
  return `${kindOf(event)} ${event.choice} ${event.block}`;
}

function wrong(what: string): GatewayError {
  return new GatewayError('upstream_error', `The channel's response is invalid: ${what}.`, {
    origin: 'upstream',
  });
}

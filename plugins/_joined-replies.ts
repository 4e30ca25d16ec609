/** Joins the responses of several requests to providers into one response with numbered choices and blocks, one head, and the sum of their usage. */
import { estimateTokens, sumUsage, wordBytes, type GatewayEvent, type Usage } from 'sluice';

/** The joined response. Events that a response has once, such as its head, are taken from the first part only. */
export class JoinedReplies {
  readonly #parts: Part[] = [];
  #blocks = 0;

  /** Adds a response whose choices are numbered from `firstChoice`. `input`: estimate of its input tokens, used until the provider reports usage. */
  add(firstChoice: number, input?: number): Part {
    const part = new Part(this, firstChoice, input);
    this.#parts.push(part);
    return part;
  }

  /** Returns the usage of all replies so far; undefined where nothing is known of any. */
  get usage(): Usage | undefined {
    const used = this.#parts.map((part) => part.used).filter((one) => one !== undefined);
    const [first, ...others] = used;
    if (first === undefined || others.length === 0) return first;
    const sum = others.reduce<Usage>((so, one) => sumUsage(so, one), first);
    return { ...sum, units: { ...sum.units, calls: used.length } };
  }

  /** Returns a number for a block that no other block of any reply has. */
  nextBlock(): number {
    this.#blocks += 1;
    return this.#blocks - 1;
  }

  /** Returns true for the part whose head, attempt and losses stand for all of them. */
  leads(part: Part): boolean {
    return this.#parts[0] === part;
  }
}

/** State of one response. */
export class Part {
  readonly #all: JoinedReplies;
  readonly #firstChoice: number;
  readonly #blocks = new Map<number, number>();
  #usage: Usage | undefined;
  /** Bytes of text since the provider last reported usage. */
  #words = 0;

  constructor(all: JoinedReplies, firstChoice: number, input: number | undefined) {
    this.#all = all;
    this.#firstChoice = firstChoice;
    this.#usage = input === undefined ? undefined : estimated(input);
  }

  /** Converts an event of this response to one of the joined response. Undefined for an event that only the first part may emit. */
  event(event: GatewayEvent): GatewayEvent | undefined {
    if (isOnce(event)) return this.#all.leads(this) ? event : undefined;
    if (event.type === 'usage') {
      this.#usage = event.usage;
      this.#words = 0;
      return { type: 'usage', usage: this.#all.usage ?? event.usage };
    }
    if ('block' in event) {
      this.#words += wordBytes(event);
      return { ...event, block: this.#block(event.block), choice: this.#firstChoice + event.choice };
    }
    if (event.type === 'finish') return { ...event, choice: this.#firstChoice + event.choice };
    return event.type === 'opaque' ? { ...event, choice: this.#firstChoice + (event.choice ?? 0) } : event;
  }

  /** Ends the response: the last reported usage is final. Returns the events that are still to be sent. */
  end(): readonly GatewayEvent[] {
    if (this.#words === 0) return [];
    this.#words = 0;
    const { usage } = this.#all;
    return usage === undefined ? [] : [{ type: 'usage', usage }];
  }

  /** The provider's last usage, and an estimate of what has come since. */
  get used(): Usage | undefined {
    const seen = estimateTokens(this.#words);
    return this.#usage === undefined || seen === 0
      ? this.#usage
      : sumUsage(this.#usage, { ...estimated(0), output: seen });
  }

  #block(block: number): number {
    const known = this.#blocks.get(block);
    if (known !== undefined) return known;
    const next = this.#all.nextBlock();
    this.#blocks.set(block, next);
    return next;
  }
}

function estimated(input: number): Usage {
  return { input, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0, estimated: true };
}

/** Returns true for events that a response has once, however many responses are joined. */
function isOnce({ type }: GatewayEvent): boolean {
  return type === 'head' || type === 'attempt' || type === 'loss';
}

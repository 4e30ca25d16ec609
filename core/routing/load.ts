/** Counts the running attempts of channels and keys, and measures how soon their models begin to respond. */
import type { Target } from '../sdk/call.ts';

/** Milliseconds after which what was measured counts a third: old news fade, so that a place that was slow is tried again. */
const fading = 30_000;

/** Models of one key whose times are remembered; the one that was measured first goes first. */
const mostModels = 200;

interface Measured {
  /** Decaying average, in milliseconds. */
  average: number;
  /** `performance.now()` of the last measurement. */
  at: number;
}

/** Running attempts of one key of a channel, and the times after which its models began to respond. */
export class KeyLoad {
  readonly #channel: ChannelLoad;
  readonly #models = new Map<string, Measured>();
  #running = 0;

  constructor(channel: ChannelLoad) {
    this.#channel = channel;
  }

  /** Attempts that run. */
  get running(): number {
    return this.#running;
  }

  /** An attempt begins. Each needs one {@link leave}. */
  enter(): void {
    this.#running += 1;
    this.#channel.running += 1;
  }

  /** It is over, however it ended. */
  leave(): void {
    this.#running -= 1;
    this.#channel.running -= 1;
  }

  /** How soon the model may be expected to begin its answer, in milliseconds; undefined when nothing is known. */
  firstToken(model: string, now: number): number | undefined {
    const measured = this.#models.get(model);
    return measured === undefined
      ? undefined
      : measured.average * Math.exp(-Math.max(0, now - measured.at) / fading);
  }

  /** The model began its answer after so many milliseconds; `atLeast` when it was given up before it did. */
  measured(model: string, milliseconds: number, now: number, atLeast = false): void {
    const known = this.#models.get(model);
    if (known === undefined) {
      const [oldest] = this.#models.keys();
      if (this.#models.size >= mostModels && oldest !== undefined) this.#models.delete(oldest);
      this.#models.set(model, { average: milliseconds, at: now });
      return;
    }
    if (atLeast && milliseconds <= known.average) return;
    // What is worse is believed at once, what is better step by step: a place that slows down is left before it stands still.
    const kept = milliseconds > known.average ? 0.5 : Math.min(0.9, Math.exp((known.at - now) / fading));
    known.average = known.average * kept + milliseconds * (1 - kept);
    known.at = now;
  }
}

/** What runs over one channel. */
export class ChannelLoad {
  /** Attempts that run, over all keys. */
  running = 0;
  #turn = 0;
  readonly #keys = new Map<string, KeyLoad>();

  /** What runs over one of its keys. */
  key(id: string): KeyLoad {
    let load = this.#keys.get(id);
    if (load === undefined) this.#keys.set(id, (load = new KeyLoad(this)));
    return load;
  }

  /** Counts up: whose turn it is among keys that are all alike. */
  nextStart(): number {
    this.#turn = (this.#turn + 1) % 0x4000_0000;
    return this.#turn;
  }
}

/**
 * Loads of all targets of this process. They outlive a configuration, because calls of the one before still run.
 * Its size is that of the configuration, whatever models strangers name.
 */
export class TargetLoads {
  readonly #channels = new Map<string, ChannelLoad>();

  /** What runs over one channel. */
  channel(id: string): ChannelLoad {
    let load = this.#channels.get(id);
    if (load === undefined) this.#channels.set(id, (load = new ChannelLoad()));
    return load;
  }

  /** What runs over one key of one channel. */
  of({ channel, key }: Target): KeyLoad {
    return this.channel(channel.id).key(key.id);
  }
}

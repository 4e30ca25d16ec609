/** Counts the running attempts of channels and keys, and measures how soon their models begin to respond. */
import type { Target } from '../sdk/call.ts';

/** Milliseconds after which a measurement has a third of its weight. Old measurements decay, so that a target that was slow is tried again. */
const fading = 30_000;

/** Maximum number of measured models of one key. The oldest one is removed first. */
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

  /** Number of running attempts. */
  get running(): number {
    return this.#running;
  }

  /** Counts an attempt that starts. Each needs one {@link leave}. */
  enter(): void {
    this.#running += 1;
    this.#channel.running += 1;
  }

  /** Counts the end of an attempt, whatever its outcome. */
  leave(): void {
    this.#running -= 1;
    this.#channel.running -= 1;
  }

  /** Returns the expected time until the first event of a response, in milliseconds; undefined without measurements. */
  firstToken(model: string, now: number): number | undefined {
    const measured = this.#models.get(model);
    return measured === undefined
      ? undefined
      : measured.average * Math.exp(-Math.max(0, now - measured.at) / fading);
  }

  /** Records the time until the first event of a response, in milliseconds. `atLeast`: the attempt was cancelled after that time without one. */
  measured(model: string, milliseconds: number, now: number, atLeast = false): void {
    const known = this.#models.get(model);
    if (known === undefined) {
      const [oldest] = this.#models.keys();
      if (this.#models.size >= mostModels && oldest !== undefined) this.#models.delete(oldest);
      this.#models.set(model, { average: milliseconds, at: now });
      return;
    }
    if (atLeast && milliseconds <= known.average) return;
    // A longer time counts fully at once, a shorter one gradually, so that calls leave a target that becomes slow.
    const kept = milliseconds > known.average ? 0.5 : Math.min(0.9, Math.exp((known.at - now) / fading));
    known.average = known.average * kept + milliseconds * (1 - kept);
    known.at = now;
  }
}

/** Running attempts of one channel. */
export class ChannelLoad {
  /** Number of running attempts of all keys. */
  running = 0;
  #turn = 0;
  readonly #keys = new Map<string, KeyLoad>();

  /** Returns the load of one key. */
  key(id: string): KeyLoad {
    let load = this.#keys.get(id);
    if (load === undefined) this.#keys.set(id, (load = new KeyLoad(this)));
    return load;
  }

  /** Counter for the rotation among equal keys. */
  nextStart(): number {
    this.#turn = (this.#turn + 1) % 0x4000_0000;
    return this.#turn;
  }
}

/**
 * Loads of all targets of this process. They survive a reload, because calls of the previous configuration still run. The size is limited by
 * the configuration, not by the models that clients name.
 */
export class TargetLoads {
  readonly #channels = new Map<string, ChannelLoad>();

  /** Returns the load of one channel. */
  channel(id: string): ChannelLoad {
    let load = this.#channels.get(id);
    if (load === undefined) this.#channels.set(id, (load = new ChannelLoad()));
    return load;
  }

  /** Returns the load of one key of one channel. */
  of({ channel, key }: Target): KeyLoad {
    return this.channel(channel.id).key(key.id);
  }
}

/** Stores the circuit breakers of keys and models, a limited number of them, and converts them for reports and other gateways. */
import type { TargetHealth, KeyOrModel, AttemptReport } from '../../sdk/health.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import type { SharedBreaker } from './sharing.ts';
import { OutcomeWindow } from './outcome-window.ts';

/** Maximum number of models of one key, because clients can name any model that matches a pattern. */
const mostModels = 500;
/** Maximum length of the name of a model. */
const longestModel = 200;
/** Maximum number of keys, because other gateways can report keys that this gateway does not have. */
const mostKeys = 10_000;

/** Breaker of a key, or of a model behind one. */
export type Breaker = CircuitBreaker<AttemptReport>;

/** Breaker of a key, with its recent outcomes and the breakers of its models. */
export class KeyBreaker extends CircuitBreaker<AttemptReport> {
  readonly tally: OutcomeWindow;
  models: Map<string, Breaker> | undefined;

  constructor(name: KeyOrModel, window: number) {
    super(name);
    this.tally = new OutcomeWindow(window);
  }
}

/** All breakers. */
export class Breakers {
  /** Breakers that are not closed. */
  readonly resting = new Set<Breaker>();
  readonly #channels = new Map<string, Map<string, KeyBreaker>>();
  readonly #window: number;
  #keys = 0;

  /** `window`: time in milliseconds for which attempts count. */
  constructor(window: number) {
    this.#window = window;
  }

  key(channel: string, key: string): KeyBreaker | undefined {
    return this.#channels.get(channel)?.get(key);
  }

  /** Returns the breaker of a key, and creates a missing one; undefined when the maximum is reached. */
  needKey(channel: string, key: string): KeyBreaker | undefined {
    let keys = this.#channels.get(channel);
    const known = keys?.get(key);
    if (known !== undefined) return known;
    if (this.#keys >= mostKeys) return undefined;
    this.#keys += 1;
    if (keys === undefined) this.#channels.set(channel, (keys = new Map()));
    const made = new KeyBreaker({ channel, key }, this.#window);
    keys.set(key, made);
    return made;
  }

  /** Returns the breaker of a model of a key, and creates a missing one, in place of the oldest at the maximum. Undefined for a name that is too long. */
  needModel(key: KeyBreaker, model: string): Breaker | undefined {
    const models = (key.models ??= new Map());
    const known = models.get(model);
    if (known !== undefined || model.length > longestModel) return known;
    if (models.size >= mostModels) {
      const [oldest] = models.values();
      if (oldest !== undefined) this.drop(key, oldest);
    }
    const made: Breaker = new CircuitBreaker({ ...key.name, model });
    models.set(model, made);
    return made;
  }

  /** Removes the breaker of a model. */
  drop(key: KeyBreaker, model: Breaker): void {
    this.resting.delete(model);
    key.models?.delete(model.name.model ?? '');
    if (key.models?.size === 0) key.models = undefined;
  }

  /** Yields the keys of a channel, or of all channels. */
  *keys(channel?: string): Iterable<KeyBreaker> {
    if (channel !== undefined) yield* this.#channels.get(channel)?.values() ?? [];
    else for (const keys of this.#channels.values()) yield* keys.values();
  }

  /** Yields the breakers of keys and models that are not closed. */
  *troubled(now: number): Iterable<Breaker> {
    for (const key of this.keys())
      for (const breaker of [key, ...(key.models?.values() ?? [])])
        if (breaker.standing(now) !== 'up') yield breaker;
  }
}

/** Returns the status of a breaker for reports. */
export function viewOf(breaker: Breaker, now: number): TargetHealth {
  const until = breaker.until(now);
  return {
    ...breaker.name,
    standing: breaker.standing(now),
    failures: breaker instanceof KeyBreaker ? breaker.tally.failures(now) : breaker.rests,
    ...(until > now ? { until: Math.round(Date.now() + until - now) } : {}),
    ...(breaker.last === undefined ? {} : { last: breaker.last }),
  };
}

/** Returns the state of a breaker for other gateways. */
export function sharedOf(
  { name, coolUntil, restUntil, rests, base, last }: Breaker,
  now: number,
): SharedBreaker {
  return {
    name,
    cool: Math.max(0, coolUntil - now),
    rest: Math.max(0, restUntil - now),
    rests,
    base,
    ...(last === undefined ? {} : { last }),
  };
}

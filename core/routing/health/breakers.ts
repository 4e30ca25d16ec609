/** Stores the circuit breakers of keys and models, a limited number of them, and converts them for reports and other gateways. */
import type { TargetHealth, KeyOrModel, AttemptReport } from '../../sdk/health.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import type { SharedBreaker } from './sharing.ts';
import { OutcomeWindow } from './outcome-window.ts';

/** Most models that are remembered for one key: strangers may name any where a channel serves a pattern. */
const mostModels = 500;
/** The longest name of a model that is remembered. */
const longestModel = 200;
/** Most keys that are remembered: those of other gateways need not be ours. */
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
  /** Those that rest. */
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

  /** As {@link key}, made where it is new; undefined where there is no room for more. */
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

  /** A model of a key, made where it is new; undefined for a name that is too long. The oldest makes room. */
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

  /** The keys of a channel; without a name those of all. */
  *keys(channel?: string): Iterable<KeyBreaker> {
    if (channel !== undefined) yield* this.#channels.get(channel)?.values() ?? [];
    else for (const keys of this.#channels.values()) yield* keys.values();
  }

  /** Keys and models that are not up. */
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

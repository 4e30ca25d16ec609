/** Opens and closes the circuit breakers of keys and models by the outcomes of attempts, and shares changes with other gateways. */
import type { GatewayError } from '../../sdk/errors.ts';
import { ProbeLeases } from './probe-leases.ts';
import type { HealthSharing, SharedBreaker, SharingHooks } from './sharing.ts';
import { KeyBreaker, Breakers, sharedOf, viewOf, type Breaker } from './breakers.ts';
import { ReportedAttempt, unwatched, type ReportReceiver } from './reported-attempt.ts';
import { diagnose, sentenceOf } from './diagnosis.ts';
import type { Health, HealthChange, TargetHealth, Standing, AttemptReport } from '../../sdk/health.ts';
import type { HealthSettings } from '../../settings/routing.ts';
import type { Target } from '../../sdk/call.ts';

/** Options besides the settings. */
export interface HealthOptions {
  /** A clock in milliseconds that never goes back. Default: the process's own. */
  readonly now?: () => number;
  /** Returns a number from 0 to 1. Default: `Math.random`. */
  readonly random?: () => number;
  /** Connects to other gateways. Default: there are none. */
  readonly share?: (hooks: SharingHooks) => HealthSharing;
}

/**
 * All circuit breakers. A key's breaker opens when, within the window, at least `failures` attempts and half of all completed attempts
 * failed, and at once when the provider refuses the key. A model of the key has a breaker of its own only while the provider limits it or
 * does not know it. A call costs two lookups in maps and one small object, without timers or waits.
 */
export class HealthRegistry implements Health, ReportReceiver {
  readonly #settings: HealthSettings;
  readonly #now: () => number;
  readonly #times: { readonly mostRest: number; readonly random: () => number };
  readonly #places: Breakers;
  readonly #leases: ProbeLeases;
  readonly #listeners = new Set<(change: HealthChange) => void>();
  readonly #share: HealthSharing | undefined;

  constructor(settings: HealthSettings, { now, random, share }: HealthOptions) {
    this.#settings = settings;
    this.#places = new Breakers(settings.window);
    this.#now = now ?? (() => performance.now());
    this.#times = { mostRest: settings.mostRest, random: random ?? Math.random };
    this.#share = settings.enabled
      ? share?.({
          adopt: (breaker) => this.#adopt(breaker),
          known: () => this.#known(),
          tick: () => this.#leases.acquireAhead(this.#places.resting),
        })
      : undefined;
    this.#leases = new ProbeLeases(this.#share, this.#now);
  }

  get sharing(): Health['sharing'] {
    if (this.#share === undefined) return 'alone';
    return this.#share.isUp ? 'ok' : 'degraded';
  }

  waitMs({ channel, key, model }: Target): number {
    const known = this.#places.key(channel.id, key.id);
    if (known === undefined) return 0;
    const breaker = known.models?.get(model);
    if (breaker === undefined && known.rests === 0) return 0;
    const now = this.#now();
    const wait = this.#wait(known, now);
    return breaker === undefined ? wait : Math.max(wait, this.#wait(breaker, now));
  }

  standing({ channel, key, model }: Target): Standing {
    const known = this.#places.key(channel.id, key.id);
    if (known === undefined) return 'up';
    const now = this.#now();
    const own = known.standing(now);
    return own === 'up' ? (known.models?.get(model)?.standing(now) ?? 'up') : own;
  }

  enter({ channel, key, model }: Target): AttemptReport | undefined {
    if (!this.#settings.enabled) return unwatched;
    const known = this.#places.needKey(channel.id, key.id);
    if (known === undefined) return unwatched;
    const breaker = known.models?.get(model);
    if (breaker === undefined && known.rests === 0) return new ReportedAttempt(this, known, model);
    const now = this.#now();
    if (!known.admits(now) || breaker?.admits(now) === false) return undefined;
    const attempt = new ReportedAttempt(this, known, model);
    // Its cooldown is over, so that nothing has to be stored for the model.
    if (breaker?.standing(now) === 'up') this.#places.drop(known, breaker);
    if (known.rests > 0) this.#beginProbe(known, attempt);
    if (breaker !== undefined && breaker.rests > 0) this.#beginProbe(breaker, attempt);
    return attempt;
  }

  report(): readonly TargetHealth[] {
    const now = this.#now();
    const listed: TargetHealth[] = [];
    for (const key of this.#places.keys()) {
      if (key.last !== undefined || key.standing(now) !== 'up') listed.push(viewOf(key, now));
      for (const model of key.models?.values() ?? [])
        if (model.standing(now) !== 'up') listed.push(viewOf(model, now));
    }
    return listed;
  }

  reset(channel: string): void {
    for (const key of this.#places.keys(channel)) {
      for (const model of key.models?.values() ?? []) this.#forget(model);
      key.tally.clear();
      this.#forget(key);
      key.models = undefined;
    }
  }

  follow(listener: (change: HealthChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async close(): Promise<void> {
    await this.#share?.close();
  }

  /* ---- Reports of attempts ---------------------------------------------------------------------------------------- */

  /** Closes the breakers that the attempt probes. Ignores other attempts, because the start of a response is not their outcome. */
  answered(attempt: ReportedAttempt): void {
    const { key, model } = attempt;
    if (key.probe === attempt) this.#close(key);
    const breaker = key.models?.get(model);
    if (breaker?.probe === attempt) this.#close(breaker);
  }

  succeeded(attempt: ReportedAttempt): void {
    this.answered(attempt);
    attempt.key.tally.add(this.#now(), false);
  }

  left(attempt: ReportedAttempt): void {
    const { key, model } = attempt;
    const breaker = key.models?.get(model);
    for (const one of [key, breaker]) if (one?.probe === attempt) this.#giveUp(one);
  }

  failed(attempt: ReportedAttempt, error: GatewayError): void {
    const { says, patience } = diagnose(error);
    const { key } = attempt;
    if (says === 'fine') {
      this.succeeded(attempt);
      return;
    }
    if (says === 'nothing') {
      this.left(attempt);
      return;
    }
    const last = { at: Date.now(), code: error.code, message: sentenceOf(error) };
    key.last = last;
    if (says === 'failure' || says === 'refused') {
      this.#failedKey(attempt, says === 'refused');
      if (patience !== undefined) this.#coolModel(attempt, patience, last);
      return;
    }
    if (key.probe === attempt) this.#close(key);
    if (says === 'patience') this.#coolModel(attempt, patience ?? this.#settings.coolDown, last);
    else this.#unknownModel(attempt, last);
  }

  #failedKey(attempt: ReportedAttempt, refused: boolean): void {
    const { key, model } = attempt;
    const { failures, rest, refusedRest } = this.#settings;
    const base = refused ? refusedRest : rest;
    const now = this.#now();
    const breaker = key.models?.get(model);
    if (breaker?.probe === attempt) this.#giveUp(breaker);
    if (key.probe === attempt) {
      this.#change(key, () => key.reopen(now, base, this.#times));
      this.#leases.release(key);
      return;
    }
    if (key.rests > 0) {
      // Earlier attempts have opened it. A refusal of the key opens it for longer.
      if (!refused || key.base >= refusedRest) return;
      key.rests = 0;
    } else {
      key.tally.add(now, true);
      const failed = key.tally.failures(now);
      if (!refused && (failed < failures || failed * 2 < key.tally.callsSince(now))) return;
    }
    this.#change(key, () => key.open(now, base, this.#times));
  }

  #coolModel(attempt: ReportedAttempt, patience: number, last: NonNullable<TargetHealth['last']>): void {
    const breaker = this.#places.needModel(attempt.key, attempt.model);
    if (breaker === undefined) return;
    const now = this.#now();
    this.#change(breaker, () => {
      breaker.last = last;
      if (breaker.probe === attempt) breaker.close();
      breaker.cool(now + Math.min(patience, this.#settings.mostCoolDown));
    });
  }

  #unknownModel(attempt: ReportedAttempt, last: NonNullable<TargetHealth['last']>): void {
    const breaker = this.#places.needModel(attempt.key, attempt.model);
    if (breaker === undefined || (breaker.rests > 0 && breaker.probe !== attempt)) return;
    const now = this.#now();
    const { refusedRest } = this.#settings;
    const isProbe = breaker.probe === attempt;
    this.#change(breaker, () => {
      breaker.last = last;
      breaker.reopen(now, refusedRest, this.#times);
    });
    if (isProbe) this.#leases.release(breaker);
  }

  /* ---- Places ----------------------------------------------------------------------------------------------------- */

  #wait(breaker: Breaker, now: number): number {
    if (breaker.rests === 0) return Math.max(0, breaker.coolUntil - now);
    breaker.wantedAt = now;
    if (!breaker.isDue(now)) return Math.max(1, Math.ceil(breaker.until(now) - now));
    return this.#leases.waitFor(breaker, now);
  }

  #beginProbe(breaker: Breaker, attempt: ReportedAttempt): void {
    this.#change(
      breaker,
      () => {
        breaker.probe = attempt;
      },
      false,
    );
    this.#leases.extend(breaker);
  }

  /** Ends a probe without a result, so that the next call can probe. */
  #giveUp(breaker: Breaker): void {
    this.#change(breaker, () => {
      breaker.probe = undefined;
      breaker.leasedUntil = 0;
    });
    this.#leases.release(breaker);
  }

  #close(breaker: Breaker): void {
    const key = this.#places.key(breaker.name.channel, breaker.name.key);
    this.#change(breaker, () => breaker.close());
    this.#leases.release(breaker);
    if (breaker instanceof KeyBreaker) breaker.tally.clear();
    else if (key !== undefined && breaker.coolUntil <= this.#now()) this.#places.drop(key, breaker);
  }

  #forget(breaker: Breaker): void {
    const wasProbing = breaker.probe !== undefined;
    this.#change(breaker, () => breaker.forget(), false);
    this.#share?.publish({ ...sharedOf(breaker, this.#now()), forgotten: true });
    if (wasProbing) this.#leases.release(breaker);
  }

  /** Changes a breaker, shares its state, and notifies listeners where it differs. */
  #change(breaker: Breaker, act: () => void, isShared = true, elsewhere = false): void {
    const before = breaker.standing(this.#now());
    act();
    const now = this.#now();
    if (breaker.rests > 0) this.#places.resting.add(breaker);
    else this.#places.resting.delete(breaker);
    if (isShared) this.#share?.publish(sharedOf(breaker, this.#now()));
    if (breaker.standing(now) === before) return;
    const change: HealthChange = { ...viewOf(breaker, now), before, elsewhere };
    for (const listener of this.#listeners) listener(change);
  }

  /* ---- Other gateways --------------------------------------------------------------------------------------------- */

  #known(): readonly SharedBreaker[] {
    const now = this.#now();
    return [...this.#places.troubled(now)].map((breaker) => sharedOf(breaker, now));
  }

  #adopt(shared: SharedBreaker): void {
    const { name, cool, rests, forgotten } = shared;
    const { channel, key, model } = name;
    // A closed breaker without an entry needs none.
    const isNews = rests > 0 || cool > 0;
    const known = isNews ? this.#places.needKey(channel, key) : this.#places.key(channel, key);
    if (known === undefined) return;
    const breaker =
      model === undefined ? known : isNews ? this.#places.needModel(known, model) : known.models?.get(model);
    if (breaker === undefined) return;
    // The target works again. Earlier failures are dropped, as after a successful probe of this gateway.
    if (breaker === known && (forgotten === true || rests === 0)) known.tally.clear();
    this.#change(
      breaker,
      () => {
        // The message may also have what happened after the reset.
        if (forgotten === true) breaker.forget();
        breaker.adopt(this.#now(), shared);
      },
      false,
      true,
    );
    if (breaker !== known && breaker.standing(this.#now()) === 'up') this.#places.drop(known, breaker);
  }
}

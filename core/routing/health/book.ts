/** Opens and closes the circuit breakers of keys and models by the outcomes of attempts, and shares changes with other gateways. */
import type { GatewayError } from '../../sdk/errors.ts';
import { Claims } from './claims.ts';
import type { HealthSharing, SharedPlace, SharingHooks } from './sharing.ts';
import { KeyBreaker, Places, sharedOf, viewOf, type Place } from './places.ts';
import { CallVisit, unwatched, type VisitJudge } from './visit.ts';
import { diagnose, sentenceOf } from './diagnosis.ts';
import type { Health, HealthChange, PlaceHealth, Standing, Visit } from '../../sdk/health.ts';
import type { HealthSettings } from '../../settings/routing.ts';
import type { Target } from '../../sdk/call.ts';

/** Options besides the settings. */
export interface HealthOptions {
  /** A clock in milliseconds that never goes back. Default: the process's own. */
  readonly now?: () => number;
  /** 0 to 1. */
  readonly random?: () => number;
  /** Connects to other gateways. Default: there are none. */
  readonly share?: (hooks: SharingHooks) => HealthSharing;
}

/**
 * All circuit breakers. A key's breaker opens when, within the window, at least `failures` attempts and half of all completed attempts
 * failed, and at once when the provider refuses the key. A model of the key has a breaker of its own only while the provider limits it or
 * does not know it. A call costs two lookups in maps and one small object, without timers or waits.
 */
export class HealthBook implements Health, VisitJudge {
  readonly #settings: HealthSettings;
  readonly #now: () => number;
  readonly #times: { readonly mostRest: number; readonly random: () => number };
  readonly #places: Places;
  readonly #claims: Claims;
  readonly #listeners = new Set<(change: HealthChange) => void>();
  readonly #share: HealthSharing | undefined;

  constructor(settings: HealthSettings, { now, random, share }: HealthOptions) {
    this.#settings = settings;
    this.#places = new Places(settings.window);
    this.#now = now ?? (() => performance.now());
    this.#times = { mostRest: settings.mostRest, random: random ?? Math.random };
    this.#share = settings.enabled
      ? share?.({
          heard: (place) => this.#heard(place),
          known: () => this.#known(),
          tick: () => this.#claims.claimAhead(this.#places.resting),
        })
      : undefined;
    this.#claims = new Claims(this.#share, this.#now);
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

  enter({ channel, key, model }: Target): Visit | undefined {
    if (!this.#settings.enabled) return unwatched;
    const known = this.#places.needKey(channel.id, key.id);
    if (known === undefined) return unwatched;
    const breaker = known.models?.get(model);
    if (breaker === undefined && known.rests === 0) return new CallVisit(this, known, model);
    const now = this.#now();
    if (!known.admits(now) || breaker?.admits(now) === false) return undefined;
    const visit = new CallVisit(this, known, model);
    // Its cooldown is over, so that nothing has to be stored for the model.
    if (breaker?.standing(now) === 'up') this.#places.drop(known, breaker);
    if (known.rests > 0) this.#beginProbe(known, visit);
    if (breaker !== undefined && breaker.rests > 0) this.#beginProbe(breaker, visit);
    return visit;
  }

  report(): readonly PlaceHealth[] {
    const now = this.#now();
    const told: PlaceHealth[] = [];
    for (const key of this.#places.keys()) {
      if (key.last !== undefined || key.standing(now) !== 'up') told.push(viewOf(key, now));
      for (const model of key.models?.values() ?? [])
        if (model.standing(now) !== 'up') told.push(viewOf(model, now));
    }
    return told;
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

  /* ---- What visits tell ------------------------------------------------------------------------------------------- */

  /** Closes the breakers that the attempt probes. For any other attempt, the start of a response says nothing yet. */
  answered(visit: CallVisit): void {
    const { key, model } = visit;
    if (key.probe === visit) this.#close(key);
    const breaker = key.models?.get(model);
    if (breaker?.probe === visit) this.#close(breaker);
  }

  succeeded(visit: CallVisit): void {
    this.answered(visit);
    visit.key.tally.add(this.#now(), false);
  }

  left(visit: CallVisit): void {
    const { key, model } = visit;
    const breaker = key.models?.get(model);
    for (const one of [key, breaker]) if (one?.probe === visit) this.#giveUp(one);
  }

  failed(visit: CallVisit, error: GatewayError): void {
    const { says, patience } = diagnose(error);
    const { key } = visit;
    if (says === 'fine') {
      this.succeeded(visit);
      return;
    }
    if (says === 'nothing') {
      this.left(visit);
      return;
    }
    const last = { at: Date.now(), code: error.code, message: sentenceOf(error) };
    key.last = last;
    if (says === 'failure' || says === 'refused') {
      this.#failedKey(visit, says === 'refused');
      if (patience !== undefined) this.#coolModel(visit, patience, last);
      return;
    }
    if (key.probe === visit) this.#close(key);
    if (says === 'patience') this.#coolModel(visit, patience ?? this.#settings.coolDown, last);
    else this.#unknownModel(visit, last);
  }

  #failedKey(visit: CallVisit, refused: boolean): void {
    const { key, model } = visit;
    const { failures, rest, refusedRest } = this.#settings;
    const base = refused ? refusedRest : rest;
    const now = this.#now();
    const breaker = key.models?.get(model);
    if (breaker?.probe === visit) this.#giveUp(breaker);
    if (key.probe === visit) {
      this.#change(key, () => key.reopen(now, base, this.#times));
      this.#claims.release(key);
      return;
    }
    if (key.rests > 0) {
      // Earlier attempts have opened it. A refusal of the key opens it for longer.
      if (!refused || key.base >= refusedRest) return;
      key.rests = 0;
    } else {
      key.tally.add(now, true);
      const failed = key.tally.failures(now);
      if (!refused && (failed < failures || failed * 2 < key.tally.visits(now))) return;
    }
    this.#change(key, () => key.open(now, base, this.#times));
  }

  #coolModel(visit: CallVisit, patience: number, last: NonNullable<PlaceHealth['last']>): void {
    const breaker = this.#places.needModel(visit.key, visit.model);
    if (breaker === undefined) return;
    const now = this.#now();
    this.#change(breaker, () => {
      breaker.last = last;
      if (breaker.probe === visit) breaker.close();
      breaker.cool(now + Math.min(patience, this.#settings.mostCoolDown));
    });
  }

  #unknownModel(visit: CallVisit, last: NonNullable<PlaceHealth['last']>): void {
    const breaker = this.#places.needModel(visit.key, visit.model);
    if (breaker === undefined || (breaker.rests > 0 && breaker.probe !== visit)) return;
    const now = this.#now();
    const { refusedRest } = this.#settings;
    const isProbe = breaker.probe === visit;
    this.#change(breaker, () => {
      breaker.last = last;
      breaker.reopen(now, refusedRest, this.#times);
    });
    if (isProbe) this.#claims.release(breaker);
  }

  /* ---- Places ----------------------------------------------------------------------------------------------------- */

  #wait(breaker: Place, now: number): number {
    if (breaker.rests === 0) return Math.max(0, breaker.coolUntil - now);
    breaker.wantedAt = now;
    if (!breaker.isDue(now)) return Math.max(1, Math.ceil(breaker.until(now) - now));
    return this.#claims.waitFor(breaker, now);
  }

  #beginProbe(breaker: Place, visit: CallVisit): void {
    this.#change(
      breaker,
      () => {
        breaker.probe = visit;
      },
      false,
    );
    this.#claims.probed(breaker);
  }

  /** Ends a probe without a result, so that the next call may probe. */
  #giveUp(breaker: Place): void {
    this.#change(breaker, () => {
      breaker.probe = undefined;
      breaker.claimedUntil = 0;
    });
    this.#claims.release(breaker);
  }

  #close(breaker: Place): void {
    const key = this.#places.key(breaker.name.channel, breaker.name.key);
    this.#change(breaker, () => breaker.close());
    this.#claims.release(breaker);
    if (breaker instanceof KeyBreaker) breaker.tally.clear();
    else if (key !== undefined && breaker.coolUntil <= this.#now()) this.#places.drop(key, breaker);
  }

  #forget(breaker: Place): void {
    const wasProbing = breaker.probe !== undefined;
    this.#change(breaker, () => breaker.forget(), false);
    this.#share?.tell({ ...sharedOf(breaker, this.#now()), forgotten: true });
    if (wasProbing) this.#claims.release(breaker);
  }

  /** Changes a breaker, shares its state, and notifies listeners where it differs. */
  #change(breaker: Place, act: () => void, tell = true, elsewhere = false): void {
    const before = breaker.standing(this.#now());
    act();
    const now = this.#now();
    if (breaker.rests > 0) this.#places.resting.add(breaker);
    else this.#places.resting.delete(breaker);
    if (tell) this.#share?.tell(sharedOf(breaker, this.#now()));
    if (breaker.standing(now) === before) return;
    const change: HealthChange = { ...viewOf(breaker, now), before, elsewhere };
    for (const listener of this.#listeners) listener(change);
  }

  /* ---- Other gateways --------------------------------------------------------------------------------------------- */

  #known(): readonly SharedPlace[] {
    const now = this.#now();
    return [...this.#places.troubled(now)].map((place) => sharedOf(place, now));
  }

  #heard(heard: SharedPlace): void {
    const { name, cool, rests, forgotten } = heard;
    const { channel, key, model } = name;
    // A closed breaker needs no entry where nothing is known.
    const isNews = rests > 0 || cool > 0;
    const known = isNews ? this.#places.needKey(channel, key) : this.#places.key(channel, key);
    if (known === undefined) return;
    const breaker =
      model === undefined ? known : isNews ? this.#places.needModel(known, model) : known.models?.get(model);
    if (breaker === undefined) return;
    // It answers again: failures before that count no more, as behind a probe of this gateway.
    if (breaker === known && (forgotten === true || rests === 0)) known.tally.clear();
    this.#change(
      breaker,
      () => {
        // The message may also have what happened after the reset.
        if (forgotten === true) breaker.forget();
        breaker.hear(this.#now(), heard);
      },
      false,
      true,
    );
    if (breaker !== known && breaker.standing(this.#now()) === 'up') this.#places.drop(known, breaker);
  }
}

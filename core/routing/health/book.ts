import type { GatewayError } from '../../sdk/errors.ts';
import { upstreamFailureOf } from '../../formats/_shared/upstream-error/index.ts';
import { maskSecrets } from '../../log.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import type { HealthSharing, SharedPlace, SharingHooks } from './sharing.ts';
import { Tally } from './tally.ts';
import { diagnose } from './diagnosis.ts';
import type { Health, HealthChange, PlaceHealth, PlaceName, Standing, Visit } from '../../sdk/health.ts';
import type { HealthSettings } from '../../settings/routing.ts';
import type { Target } from '../../sdk/call.ts';

/** What a book of health works with besides its settings. */
export interface HealthOptions {
  /** A clock in milliseconds that never goes back. Default: the process's own. */
  readonly now?: () => number;
  /** 0 to 1. */
  readonly random?: () => number;
  /** Opens the way to other gateways. Default: there are none. */
  readonly share?: (hooks: SharingHooks) => HealthSharing;
}

/** Most models that are remembered for one key: strangers may name any where a channel serves a pattern. */
const mostModels = 500;
/** The longest name of a model that is remembered. */
const longestModel = 200;
/** Most keys that are remembered: those of other gateways need not be ours. */
const mostKeys = 10_000;
/** The longest sentence that is kept of a failure. */
const longestMessage = 500;

/** How long a gateway may take to begin a probe that it has claimed, and how long the probe itself is protected, in milliseconds. */
const claimTime = 5_000;
const probeTime = 60_000;
/** How long it takes to learn whose turn it is. */
const claimWait = 50;
/** A place that nobody has wanted for so long is not claimed ahead of time. */
const wantedFor = 10_000;

type AnyBreaker = CircuitBreaker<CallVisit>;

/** A key with what happened lately, and those of its models that are in trouble. */
class KeyBreaker extends CircuitBreaker<CallVisit> {
  readonly tally: Tally;
  models: Map<string, AnyBreaker> | undefined;

  constructor(name: PlaceName, window: number) {
    super(name);
    this.tally = new Tally(window);
  }
}

const unwatched: Visit = { answered() {}, succeeded() {}, failed() {}, left() {} };

/**
 * What is known of all keys. A key rests when, within the window, enough visits have failed and at least half of all that ended; a key
 * that was refused rests at once. Its models have places of their own only while the provider limits them or does not know them. A call
 * costs a look into two maps and one small object; nothing is timed, nothing waits.
 */
export class HealthBook implements Health {
  readonly #settings: HealthSettings;
  readonly #now: () => number;
  readonly #times: { readonly mostRest: number; readonly random: () => number };
  readonly #channels = new Map<string, Map<string, KeyBreaker>>();
  #keys = 0;
  /** Places that rest. */
  readonly #resting = new Set<AnyBreaker>();
  readonly #listeners = new Set<(change: HealthChange) => void>();
  readonly #share: HealthSharing | undefined;

  constructor(settings: HealthSettings, { now, random, share }: HealthOptions) {
    this.#settings = settings;
    this.#now = now ?? (() => performance.now());
    this.#times = { mostRest: settings.mostRest, random: random ?? Math.random };
    this.#share = settings.enabled
      ? share?.({
          heard: (place) => this.#heard(place),
          known: () => this.#known(),
          tick: () => this.#tick(),
        })
      : undefined;
  }

  get sharing(): Health['sharing'] {
    if (this.#share === undefined) return 'alone';
    return this.#share.isUp ? 'ok' : 'degraded';
  }

  waitFor({ channel, key, model }: Target): number {
    const known = this.#channels.get(channel.id)?.get(key.id);
    if (known === undefined) return 0;
    const breaker = known.models?.get(model);
    if (breaker === undefined && known.rests === 0) return 0;
    const now = this.#now();
    const wait = this.#wait(known, now);
    return breaker === undefined ? wait : Math.max(wait, this.#wait(breaker, now));
  }

  standing({ channel, key, model }: Target): Standing {
    const known = this.#channels.get(channel.id)?.get(key.id);
    if (known === undefined) return 'up';
    const now = this.#now();
    const own = known.standing(now);
    return own === 'up' ? (known.models?.get(model)?.standing(now) ?? 'up') : own;
  }

  enter({ channel, key, model }: Target): Visit | undefined {
    if (!this.#settings.enabled) return unwatched;
    const known = this.#keyBreaker(channel.id, key.id);
    if (known === undefined) return unwatched;
    const breaker = known.models?.get(model);
    if (breaker === undefined && known.rests === 0) return new CallVisit(this, known, model);
    const now = this.#now();
    if (!known.admits(now) || breaker?.admits(now) === false) return undefined;
    const visit = new CallVisit(this, known, model);
    // Its patience is over: it costs nothing any more.
    if (breaker?.standing(now) === 'up') this.#drop(known, breaker);
    if (known.rests > 0) this.#beginProbe(known, visit);
    if (breaker !== undefined && breaker.rests > 0) this.#beginProbe(breaker, visit);
    return visit;
  }

  report(): readonly PlaceHealth[] {
    const now = this.#now();
    const told: PlaceHealth[] = [];
    for (const keys of this.#channels.values()) {
      for (const key of keys.values()) {
        if (key.last !== undefined || key.standing(now) !== 'up') told.push(this.#view(key, now));
        for (const model of key.models?.values() ?? [])
          if (model.standing(now) !== 'up') told.push(this.#view(model, now));
      }
    }
    return told;
  }

  reset(channel: string): void {
    for (const key of this.#channels.get(channel)?.values() ?? []) {
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

  /** A probe has shown that the place answers; for any other visit this says nothing yet. */
  answered(visit: CallVisit): void {
    const { key, model } = visit;
    if (key.probe === visit) this.#close(key);
    const breaker = key.models?.get(model);
    if (breaker?.probe === visit) this.#close(breaker);
  }

  succeeded(visit: CallVisit): void {
    this.answered(visit);
    if (visit.key.rests === 0) visit.key.tally.add(this.#now(), false);
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
      this.#share?.release(key.name);
      return;
    }
    if (key.rests > 0) {
      // Others have said so before. That the key is refused is worse news.
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
    const breaker = this.#modelBreaker(visit.key, visit.model);
    if (breaker === undefined) return;
    const now = this.#now();
    this.#change(breaker, () => {
      breaker.last = last;
      if (breaker.probe === visit) breaker.close();
      breaker.cool(now + Math.min(patience, this.#settings.mostCoolDown));
    });
  }

  #unknownModel(visit: CallVisit, last: NonNullable<PlaceHealth['last']>): void {
    const breaker = this.#modelBreaker(visit.key, visit.model);
    if (breaker === undefined || (breaker.rests > 0 && breaker.probe !== visit)) return;
    const now = this.#now();
    const { refusedRest } = this.#settings;
    const isProbe = breaker.probe === visit;
    this.#change(breaker, () => {
      breaker.last = last;
      if (isProbe) breaker.reopen(now, refusedRest, this.#times);
      else breaker.open(now, refusedRest, this.#times);
    });
    if (isProbe) this.#share?.release(breaker.name);
  }

  /* ---- Places ----------------------------------------------------------------------------------------------------- */

  #keyBreaker(channel: string, key: string): KeyBreaker | undefined {
    let keys = this.#channels.get(channel);
    const known = keys?.get(key);
    if (known !== undefined) return known;
    if (this.#keys >= mostKeys) return undefined;
    this.#keys += 1;
    if (keys === undefined) this.#channels.set(channel, (keys = new Map()));
    const made = new KeyBreaker({ channel, key }, this.#settings.window);
    keys.set(key, made);
    return made;
  }

  #modelBreaker(key: KeyBreaker, model: string): AnyBreaker | undefined {
    const models = (key.models ??= new Map());
    const known = models.get(model);
    if (known !== undefined || model.length > longestModel) return known;
    if (models.size >= mostModels) {
      const [oldest] = models.values();
      if (oldest !== undefined) this.#drop(key, oldest);
    }
    const made: AnyBreaker = new CircuitBreaker({ ...key.name, model });
    models.set(model, made);
    return made;
  }

  #drop(key: KeyBreaker, breaker: AnyBreaker): void {
    this.#resting.delete(breaker);
    key.models?.delete(breaker.name.model ?? '');
    if (key.models?.size === 0) key.models = undefined;
  }

  #wait(breaker: AnyBreaker, now: number): number {
    if (breaker.rests === 0) return Math.max(0, breaker.coolUntil - now);
    breaker.wantedAt = now;
    if (!breaker.isDue(now)) return Math.max(1, Math.ceil(breaker.until(now) - now));
    if (this.#share?.isUp !== true || breaker.claimedUntil > now) return 0;
    this.#claim(breaker, claimTime);
    return claimWait;
  }

  #beginProbe(breaker: AnyBreaker, visit: CallVisit): void {
    this.#change(
      breaker,
      () => {
        breaker.probe = visit;
      },
      false,
    );
    this.#claim(breaker, probeTime);
  }

  /** The probe came to nothing: the next one may go. */
  #giveUp(breaker: AnyBreaker): void {
    this.#change(breaker, () => {
      breaker.probe = undefined;
      breaker.claimedUntil = 0;
    });
    this.#share?.release(breaker.name);
  }

  #close(breaker: AnyBreaker): void {
    const key = this.#channels.get(breaker.name.channel)?.get(breaker.name.key);
    this.#change(breaker, () => breaker.close());
    this.#share?.release(breaker.name);
    if (breaker instanceof KeyBreaker) breaker.tally.clear();
    else if (key !== undefined && breaker.coolUntil <= this.#now()) this.#drop(key, breaker);
  }

  #forget(breaker: AnyBreaker): void {
    const wasProbing = breaker.probe !== undefined;
    this.#change(breaker, () => breaker.forget(), false);
    this.#resting.delete(breaker);
    this.#share?.tell({ ...this.#shared(breaker), forgotten: true });
    if (wasProbing) this.#share?.release(breaker.name);
  }

  /** Changes a place, and tells of it where it then stands differently. */
  #change(breaker: AnyBreaker, act: () => void, tell = true, elsewhere = false): void {
    const before = breaker.standing(this.#now());
    act();
    const now = this.#now();
    if (breaker.rests > 0) this.#resting.add(breaker);
    else this.#resting.delete(breaker);
    if (tell) this.#share?.tell(this.#shared(breaker));
    if (breaker.standing(now) === before) return;
    const change: HealthChange = { ...this.#view(breaker, now), before, elsewhere };
    for (const listener of this.#listeners) listener(change);
  }

  #view(breaker: AnyBreaker, now: number): PlaceHealth {
    const until = breaker.until(now);
    return {
      ...breaker.name,
      standing: breaker.standing(now),
      failures: breaker instanceof KeyBreaker ? breaker.tally.failures(now) : breaker.rests,
      ...(until > now ? { until: Math.round(Date.now() + until - now) } : {}),
      ...(breaker.last === undefined ? {} : { last: breaker.last }),
    };
  }

  /* ---- Other gateways --------------------------------------------------------------------------------------------- */

  #shared({ name, coolUntil, restUntil, rests, base, last }: AnyBreaker): SharedPlace {
    const now = this.#now();
    return {
      name,
      cool: Math.max(0, coolUntil - now),
      rest: Math.max(0, restUntil - now),
      rests,
      base,
      ...(last === undefined ? {} : { last }),
    };
  }

  #known(): readonly SharedPlace[] {
    const now = this.#now();
    const known: SharedPlace[] = [];
    for (const keys of this.#channels.values())
      for (const key of keys.values())
        for (const breaker of [key, ...(key.models?.values() ?? [])])
          if (breaker.standing(now) !== 'up') known.push(this.#shared(breaker));
    return known;
  }

  #heard(heard: SharedPlace): void {
    const { name, cool, rests, forgotten } = heard;
    const { channel, key, model } = name;
    // That all is well where nothing is known is no news.
    const isNews = rests > 0 || cool > 0;
    const known = isNews ? this.#keyBreaker(channel, key) : this.#channels.get(channel)?.get(key);
    if (known === undefined) return;
    const breaker =
      model === undefined ? known : isNews ? this.#modelBreaker(known, model) : known.models?.get(model);
    if (breaker === undefined) return;
    if (forgotten === true && breaker === known) known.tally.clear();
    this.#change(
      breaker,
      () => {
        // What came after it was forgotten may come with it.
        if (forgotten === true) breaker.forget();
        breaker.hear(this.#now(), heard);
      },
      false,
      true,
    );
    if (breaker !== known && breaker.standing(this.#now()) === 'up') this.#drop(known, breaker);
  }

  /** Asks for a turn a little ahead of time, so that the first call behind a rest finds it settled. */
  #tick(): void {
    const now = this.#now();
    for (const breaker of this.#resting) {
      const isSoon = breaker.restUntil - now < 1_000 && breaker.coolUntil <= now;
      const isWanted = now - breaker.wantedAt < wantedFor && breaker.claimedUntil <= now;
      if (isSoon && isWanted && breaker.probe === undefined && breaker.elsewhereUntil <= now)
        this.#claim(breaker, claimTime);
    }
  }

  #claim(breaker: AnyBreaker, lease: number): void {
    if (this.#share === undefined || breaker.isClaiming) return;
    breaker.isClaiming = true;
    void this.#share.claim(breaker.name, lease).then((wait) => {
      breaker.isClaiming = false;
      const now = this.#now();
      if (wait === 0) breaker.claimedUntil = now + lease;
      else if (wait !== undefined && breaker.probe === undefined) breaker.elsewhereUntil = now + wait;
      // The probe began while its turn was asked for: it needs longer than that.
      if (wait === 0 && lease < probeTime && breaker.probe !== undefined) this.#claim(breaker, probeTime);
    });
  }
}

/** One attempt. What is told after its outcome is passed over. */
class CallVisit implements Visit {
  readonly #book: HealthBook;
  readonly key: KeyBreaker;
  readonly model: string;
  #over = false;

  constructor(book: HealthBook, key: KeyBreaker, model: string) {
    this.#book = book;
    this.key = key;
    this.model = model;
  }

  answered(): void {
    if (!this.#over) this.#book.answered(this);
  }

  succeeded(): void {
    if (this.#end()) this.#book.succeeded(this);
  }

  failed(error: GatewayError): void {
    if (this.#end()) this.#book.failed(this, error);
  }

  left(): void {
    if (this.#end()) this.#book.left(this);
  }

  #end(): boolean {
    const first = !this.#over;
    this.#over = true;
    return first;
  }
}

/** The provider's own sentence where it gave one: a client may not see it, the operator must. */
function sentenceOf(error: GatewayError): string {
  const own = upstreamFailureOf(error)?.message;
  return maskSecrets(own === undefined || own === '' ? error.message : own).slice(0, longestMessage);
}

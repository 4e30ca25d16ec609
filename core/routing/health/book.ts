import type { GatewayError } from '../../sdk/errors.ts';
import { upstreamFailureOf } from '../../formats/_shared/upstream-error.ts';
import { maskSecrets } from '../../log.ts';
import { Place } from './place.ts';
import type { HealthSharing, SharedPlace, SharingHooks } from './sharing.ts';
import { Tally } from './tally.ts';
import { verdictOf } from './verdict.ts';
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

type AnyPlace = Place<CallVisit>;

/** A key with what happened lately, and those of its models that are in trouble. */
class KeyPlace extends Place<CallVisit> {
  readonly tally: Tally;
  models: Map<string, AnyPlace> | undefined;

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
  readonly #channels = new Map<string, Map<string, KeyPlace>>();
  #keys = 0;
  /** Places that rest. */
  readonly #resting = new Set<AnyPlace>();
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
    const place = known.models?.get(model);
    if (place === undefined && known.rests === 0) return 0;
    const now = this.#now();
    const wait = this.#wait(known, now);
    return place === undefined ? wait : Math.max(wait, this.#wait(place, now));
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
    const known = this.#keyPlace(channel.id, key.id);
    if (known === undefined) return unwatched;
    const place = known.models?.get(model);
    if (place === undefined && known.rests === 0) return new CallVisit(this, known, model);
    const now = this.#now();
    if (!known.admits(now) || place?.admits(now) === false) return undefined;
    const visit = new CallVisit(this, known, model);
    // Its patience is over: it costs nothing any more.
    if (place?.standing(now) === 'up') this.#drop(known, place);
    if (known.rests > 0) this.#beginProbe(known, visit);
    if (place !== undefined && place.rests > 0) this.#beginProbe(place, visit);
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
    const place = key.models?.get(model);
    if (place?.probe === visit) this.#close(place);
  }

  succeeded(visit: CallVisit): void {
    this.answered(visit);
    if (visit.key.rests === 0) visit.key.tally.add(this.#now(), false);
  }

  left(visit: CallVisit): void {
    const { key, model } = visit;
    const place = key.models?.get(model);
    for (const one of [key, place]) if (one?.probe === visit) this.#giveUp(one);
  }

  failed(visit: CallVisit, error: GatewayError): void {
    const { says, patience } = verdictOf(error);
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
    const place = key.models?.get(model);
    if (place?.probe === visit) this.#giveUp(place);
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
    const place = this.#modelPlace(visit.key, visit.model);
    if (place === undefined) return;
    const now = this.#now();
    this.#change(place, () => {
      place.last = last;
      if (place.probe === visit) place.close();
      place.cool(now + Math.min(patience, this.#settings.mostCoolDown));
    });
  }

  #unknownModel(visit: CallVisit, last: NonNullable<PlaceHealth['last']>): void {
    const place = this.#modelPlace(visit.key, visit.model);
    if (place === undefined || (place.rests > 0 && place.probe !== visit)) return;
    const now = this.#now();
    const { refusedRest } = this.#settings;
    const isProbe = place.probe === visit;
    this.#change(place, () => {
      place.last = last;
      if (isProbe) place.reopen(now, refusedRest, this.#times);
      else place.open(now, refusedRest, this.#times);
    });
    if (isProbe) this.#share?.release(place.name);
  }

  /* ---- Places ----------------------------------------------------------------------------------------------------- */

  #keyPlace(channel: string, key: string): KeyPlace | undefined {
    let keys = this.#channels.get(channel);
    const known = keys?.get(key);
    if (known !== undefined) return known;
    if (this.#keys >= mostKeys) return undefined;
    this.#keys += 1;
    if (keys === undefined) this.#channels.set(channel, (keys = new Map()));
    const made = new KeyPlace({ channel, key }, this.#settings.window);
    keys.set(key, made);
    return made;
  }

  #modelPlace(key: KeyPlace, model: string): AnyPlace | undefined {
    const models = (key.models ??= new Map());
    const known = models.get(model);
    if (known !== undefined || model.length > longestModel) return known;
    if (models.size >= mostModels) {
      const [oldest] = models.values();
      if (oldest !== undefined) this.#drop(key, oldest);
    }
    const made: AnyPlace = new Place({ ...key.name, model });
    models.set(model, made);
    return made;
  }

  #drop(key: KeyPlace, place: AnyPlace): void {
    this.#resting.delete(place);
    key.models?.delete(place.name.model ?? '');
    if (key.models?.size === 0) key.models = undefined;
  }

  #wait(place: AnyPlace, now: number): number {
    if (place.rests === 0) return Math.max(0, place.coolUntil - now);
    place.wantedAt = now;
    if (!place.isDue(now)) return Math.max(1, Math.ceil(place.until(now) - now));
    if (this.#share?.isUp !== true || place.claimedUntil > now) return 0;
    this.#claim(place, claimTime);
    return claimWait;
  }

  #beginProbe(place: AnyPlace, visit: CallVisit): void {
    this.#change(
      place,
      () => {
        place.probe = visit;
      },
      false,
    );
    this.#claim(place, probeTime);
  }

  /** The probe came to nothing: the next one may go. */
  #giveUp(place: AnyPlace): void {
    this.#change(place, () => {
      place.probe = undefined;
      place.claimedUntil = 0;
    });
    this.#share?.release(place.name);
  }

  #close(place: AnyPlace): void {
    const key = this.#channels.get(place.name.channel)?.get(place.name.key);
    this.#change(place, () => place.close());
    this.#share?.release(place.name);
    if (place instanceof KeyPlace) place.tally.clear();
    else if (key !== undefined && place.coolUntil <= this.#now()) this.#drop(key, place);
  }

  #forget(place: AnyPlace): void {
    const wasProbing = place.probe !== undefined;
    this.#change(place, () => place.forget(), false);
    this.#resting.delete(place);
    this.#share?.tell({ ...this.#shared(place), forgotten: true });
    if (wasProbing) this.#share?.release(place.name);
  }

  /** Changes a place, and tells of it where it then stands differently. */
  #change(place: AnyPlace, act: () => void, tell = true, elsewhere = false): void {
    const before = place.standing(this.#now());
    act();
    const now = this.#now();
    if (place.rests > 0) this.#resting.add(place);
    else this.#resting.delete(place);
    if (tell) this.#share?.tell(this.#shared(place));
    if (place.standing(now) === before) return;
    const change: HealthChange = { ...this.#view(place, now), before, elsewhere };
    for (const listener of this.#listeners) listener(change);
  }

  #view(place: AnyPlace, now: number): PlaceHealth {
    const until = place.until(now);
    return {
      ...place.name,
      standing: place.standing(now),
      failures: place instanceof KeyPlace ? place.tally.failures(now) : place.rests,
      ...(until > now ? { until: Math.round(Date.now() + until - now) } : {}),
      ...(place.last === undefined ? {} : { last: place.last }),
    };
  }

  /* ---- Other gateways --------------------------------------------------------------------------------------------- */

  #shared({ name, coolUntil, restUntil, rests, base, last }: AnyPlace): SharedPlace {
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
        for (const place of [key, ...(key.models?.values() ?? [])])
          if (place.standing(now) !== 'up') known.push(this.#shared(place));
    return known;
  }

  #heard(heard: SharedPlace): void {
    const { name, cool, rests, forgotten } = heard;
    const { channel, key, model } = name;
    // That all is well where nothing is known is no news.
    const isNews = rests > 0 || cool > 0;
    const known = isNews ? this.#keyPlace(channel, key) : this.#channels.get(channel)?.get(key);
    if (known === undefined) return;
    const place =
      model === undefined ? known : isNews ? this.#modelPlace(known, model) : known.models?.get(model);
    if (place === undefined) return;
    if (forgotten === true && place === known) known.tally.clear();
    this.#change(
      place,
      () => {
        // What came after it was forgotten may come with it.
        if (forgotten === true) place.forget();
        place.hear(this.#now(), heard);
      },
      false,
      true,
    );
    if (place !== known && place.standing(this.#now()) === 'up') this.#drop(known, place);
  }

  /** Asks for a turn a little ahead of time, so that the first call behind a rest finds it settled. */
  #tick(): void {
    const now = this.#now();
    for (const place of this.#resting) {
      const isSoon = place.restUntil - now < 1_000 && place.coolUntil <= now;
      const isWanted = now - place.wantedAt < wantedFor && place.claimedUntil <= now;
      if (isSoon && isWanted && place.probe === undefined && place.elsewhereUntil <= now)
        this.#claim(place, claimTime);
    }
  }

  #claim(place: AnyPlace, lease: number): void {
    if (this.#share === undefined || place.isClaiming) return;
    place.isClaiming = true;
    void this.#share.claim(place.name, lease).then((wait) => {
      place.isClaiming = false;
      const now = this.#now();
      if (wait === 0) place.claimedUntil = now + lease;
      else if (wait !== undefined && place.probe === undefined) place.elsewhereUntil = now + wait;
      // The probe began while its turn was asked for: it needs longer than that.
      if (wait === 0 && lease < probeTime && place.probe !== undefined) this.#claim(place, probeTime);
    });
  }
}

/** One attempt. What is told after its outcome is passed over. */
class CallVisit implements Visit {
  readonly #book: HealthBook;
  readonly key: KeyPlace;
  readonly model: string;
  #over = false;

  constructor(book: HealthBook, key: KeyPlace, model: string) {
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

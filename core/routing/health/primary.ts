/** Shares circuit breakers among the workers of one gateway through the primary process, and lets one worker at a time send a probe. */
import type { HealthSharing, SharedBreaker, SharingHooks } from './sharing.ts';
import type { KeyOrModel } from '../../sdk/health.ts';

/** Message of a worker to the primary process. */
export type HealthWord =
  /** Asks for the states that are known, and for all changes from then on. */
  | { readonly kind: 'join' }
  | { readonly kind: 'tell'; readonly places: readonly SharedBreaker[] }
  | { readonly kind: 'claim'; readonly id: number; readonly name: KeyOrModel; readonly lease: number }
  | { readonly kind: 'release'; readonly name: KeyOrModel };

/** Message of the primary process to a worker. */
export type HealthNews =
  | { readonly kind: 'heard'; readonly places: readonly SharedBreaker[] }
  /** Milliseconds until the worker may send the probe; 0: now. */
  | { readonly kind: 'turn'; readonly id: number; readonly wait: number };

/** Connection of a worker to the primary process. */
export interface HealthLine {
  /** Returns false when the connection is closed. */
  send(word: HealthWord): boolean;
  /** Sets the receiver of messages. */
  listen(listener: (news: HealthNews) => void): void;
}

/** Interval in milliseconds between two messages about changes. The first change is sent at once, later ones together. */
const tellEvery = 25;

/** Interval of `tick`, in milliseconds. */
const tickEvery = 400;

/** Timeout of a claim, in milliseconds. */
const patience = 1_000;

/** Maximum number of open claims. */
const mostOpen = 1_000;

/** Maximum number of states, and of rights to probe, in the primary process. The oldest are dropped. */
const mostPlaces = 5_000;

/** Time for which a state is stored after its last change, in milliseconds. */
const keptFor = 3_600_000;

/** Returns the worker's end of the connection. */
export function primarySharing(line: HealthLine): (hooks: SharingHooks) => HealthSharing {
  return (hooks) => new PrimarySharing(line, hooks);
}

interface OpenClaim {
  readonly timer: NodeJS.Timeout;
  readonly settle: (wait: number | undefined) => void;
}

class PrimarySharing implements HealthSharing {
  readonly #line: HealthLine;
  readonly #hooks: SharingHooks;
  readonly #ticking: NodeJS.Timeout;
  readonly #claims = new Map<number, OpenClaim>();
  #ids = 0;
  #isUp: boolean;
  /** Changes that wait to be sent, the latest of each breaker. */
  readonly #waiting = new Map<string, SharedBreaker>();
  #pausing: NodeJS.Timeout | undefined;

  constructor(line: HealthLine, hooks: SharingHooks) {
    this.#line = line;
    this.#hooks = hooks;
    line.listen((news) => this.#hear(news));
    this.#isUp = line.send({ kind: 'join' });
    this.#ticking = setInterval(() => {
      if (this.#isUp) hooks.tick();
    }, tickEvery).unref();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  tell(place: SharedBreaker): void {
    if (!this.#isUp) return;
    const id = idOf(place.name);
    const before = this.#waiting.get(id);
    this.#waiting.set(id, before?.forgotten === true ? { ...place, forgotten: true } : place);
    // What changes in the same turn is told together.
    if (this.#waiting.size === 1 && this.#pausing === undefined) queueMicrotask(() => this.#flush());
  }

  claim(name: KeyOrModel, lease: number): Promise<number | undefined> {
    return new Promise((settle) => {
      const id = (this.#ids += 1);
      if (this.#claims.size >= mostOpen || !this.#send({ kind: 'claim', id, name, lease })) {
        settle(undefined);
        return;
      }
      const timer = setTimeout(() => {
        // It hears this after the question, whenever that is: what nobody waits for is not taken.
        this.#send({ kind: 'release', name });
        this.#isUp = false;
        this.#settle(id, undefined);
      }, patience).unref();
      this.#claims.set(id, { timer, settle });
    });
  }

  release(name: KeyOrModel): void {
    // What the probe has found out goes before the turn of the next.
    this.#sendWaiting();
    this.#send({ kind: 'release', name });
  }

  close(): Promise<void> {
    this.#sendWaiting();
    clearInterval(this.#ticking);
    clearTimeout(this.#pausing);
    for (const id of this.#claims.keys()) this.#settle(id, undefined);
    return Promise.resolve();
  }

  #hear(news: HealthNews): void {
    if (!this.#isUp) this.#back();
    if (news.kind === 'turn') this.#settle(news.id, news.wait);
    else for (const place of news.places) this.#hooks.adopt(place);
  }

  /** Sends all states when the primary process responds again, because changes were not sent meanwhile. */
  #back(): void {
    this.#isUp = true;
    for (const place of this.#hooks.known()) this.tell(place);
  }

  #flush(): void {
    if (this.#waiting.size === 0) return;
    this.#sendWaiting();
    this.#pausing = setTimeout(() => {
      this.#pausing = undefined;
      this.#flush();
    }, tellEvery).unref();
  }

  #sendWaiting(): void {
    if (this.#waiting.size === 0) return;
    const places = [...this.#waiting.values()];
    this.#waiting.clear();
    this.#send({ kind: 'tell', places });
  }

  #send(word: HealthWord): boolean {
    const isSent = this.#line.send(word);
    if (!isSent) this.#isUp = false;
    return isSent;
  }

  #settle(id: number, wait: number | undefined): void {
    const claim = this.#claims.get(id);
    if (claim === undefined) return;
    this.#claims.delete(id);
    clearTimeout(claim.timer);
    claim.settle(wait);
  }
}

interface Kept {
  readonly place: SharedBreaker;
  /** Time at which the state was received. */
  readonly at: number;
}

interface ProbePermit {
  readonly whose: number;
  readonly until: number;
}

/**
 * The primary process's end: forwards changes of a worker to the others, and decides which worker may send a probe. Workers are known by
 * number.
 */
export class HealthServer {
  readonly #now: () => number;
  readonly #members = new Map<number, (news: HealthNews) => void>();
  readonly #places = new Map<string, Kept>();
  readonly #permits = new Map<string, ProbePermit>();

  /** `now`: a clock in milliseconds that never goes back. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Handles a message of a worker. `tell` sends a message to it. */
  hear(member: number, word: HealthWord, tell: (news: HealthNews) => void): void {
    switch (word.kind) {
      case 'join': {
        this.#members.set(member, tell);
        const places = this.#known();
        if (places.length > 0) tell({ kind: 'heard', places });
        return;
      }
      case 'tell':
        for (const place of word.places) this.#keep(place);
        for (const [other, tellOther] of this.#members)
          if (other !== member) tellOther({ kind: 'heard', places: word.places });
        return;
      case 'claim':
        tell({ kind: 'turn', id: word.id, wait: this.#claim(member, idOf(word.name), word.lease) });
        return;
      case 'release':
        if (this.#permits.get(idOf(word.name))?.whose === member) this.#permits.delete(idOf(word.name));
    }
  }

  /** Removes a worker that has ended, and releases its rights to probe. */
  forget(member: number): void {
    this.#members.delete(member);
    for (const [id, { whose }] of this.#permits) if (whose === member) this.#permits.delete(id);
  }

  #keep(place: SharedBreaker): void {
    const id = idOf(place.name);
    // What changed last stands last.
    this.#places.delete(id);
    if (place.rests === 0 && place.cool <= 0) return;
    this.#places.set(id, { place, at: this.#now() });
    dropOldest(this.#places);
  }

  #known(): readonly SharedBreaker[] {
    const now = this.#now();
    const known: SharedBreaker[] = [];
    for (const [id, { place, at }] of this.#places) {
      const age = now - at;
      const cool = Math.max(0, place.cool - age);
      if (age > keptFor || (place.rests === 0 && cool === 0)) this.#places.delete(id);
      else known.push({ ...place, cool, rest: Math.max(0, place.rest - age) });
    }
    return known;
  }

  #claim(member: number, id: string, lease: number): number {
    const now = this.#now();
    const held = this.#permits.get(id);
    if (held !== undefined && held.whose !== member && held.until > now) return Math.ceil(held.until - now);
    this.#permits.delete(id);
    this.#permits.set(id, { whose: member, until: now + lease });
    dropOldest(this.#permits);
    return 0;
  }
}

function dropOldest(kept: Map<string, unknown>): void {
  if (kept.size <= mostPlaces) return;
  const [oldest] = kept.keys();
  if (oldest !== undefined) kept.delete(oldest);
}

function idOf({ channel, key, model }: KeyOrModel): string {
  return JSON.stringify([channel, key, model]);
}

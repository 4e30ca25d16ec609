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
const sendInterval = 25;

/** Interval of `tick`, in milliseconds. */
const tickEvery = 400;

/** Timeout of a request for the right to probe, in milliseconds. */
const patience = 1_000;

/** Maximum number of open requests for the right to probe. */
const mostOpen = 1_000;

/** Maximum number of states, and of rights to probe, in the primary process. The oldest are dropped. */
const mostPlaces = 5_000;

/** Time for which a state is stored after its last change, in milliseconds. */
const keptFor = 3_600_000;

/** Returns the worker's end of the connection. */
export function primarySharing(line: HealthLine): (hooks: SharingHooks) => HealthSharing {
  return (hooks) => new PrimarySharing(line, hooks);
}

interface PendingAcquire {
  readonly timer: NodeJS.Timeout;
  readonly settle: (wait: number | undefined) => void;
}

class PrimarySharing implements HealthSharing {
  readonly #line: HealthLine;
  readonly #hooks: SharingHooks;
  readonly #ticking: NodeJS.Timeout;
  readonly #pending = new Map<number, PendingAcquire>();
  #ids = 0;
  #isUp: boolean;
  /** Changes that wait to be sent, the latest of each breaker. */
  readonly #waiting = new Map<string, SharedBreaker>();
  #pausing: NodeJS.Timeout | undefined;

  constructor(line: HealthLine, hooks: SharingHooks) {
    this.#line = line;
    this.#hooks = hooks;
    line.listen((news) => this.#receive(news));
    this.#isUp = line.send({ kind: 'join' });
    this.#ticking = setInterval(() => {
      if (this.#isUp) hooks.tick();
    }, tickEvery).unref();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  publish(breaker: SharedBreaker): void {
    if (!this.#isUp) return;
    const id = idOf(breaker.name);
    const before = this.#waiting.get(id);
    this.#waiting.set(id, before?.forgotten === true ? { ...breaker, forgotten: true } : breaker);
    // Changes of one turn of the event loop are sent together.
    if (this.#waiting.size === 1 && this.#pausing === undefined) queueMicrotask(() => this.#flush());
  }

  acquire(name: KeyOrModel, lease: number): Promise<number | undefined> {
    return new Promise((settle) => {
      const id = (this.#ids += 1);
      if (this.#pending.size >= mostOpen || !this.#send({ kind: 'claim', id, name, lease })) {
        settle(undefined);
        return;
      }
      const timer = setTimeout(() => {
        // The primary process handles this message after the request, so that no lease is left that nobody waits for.
        this.#send({ kind: 'release', name });
        this.#isUp = false;
        this.#settle(id, undefined);
      }, patience).unref();
      this.#pending.set(id, { timer, settle });
    });
  }

  release(name: KeyOrModel): void {
    // The result of the probe is sent before the lease is released to the next worker.
    this.#sendWaiting();
    this.#send({ kind: 'release', name });
  }

  close(): Promise<void> {
    this.#sendWaiting();
    clearInterval(this.#ticking);
    clearTimeout(this.#pausing);
    for (const id of this.#pending.keys()) this.#settle(id, undefined);
    return Promise.resolve();
  }

  #receive(news: HealthNews): void {
    if (!this.#isUp) this.#back();
    if (news.kind === 'turn') this.#settle(news.id, news.wait);
    else for (const breaker of news.places) this.#hooks.adopt(breaker);
  }

  /** Sends all states when the primary process responds again, because changes were not sent meanwhile. */
  #back(): void {
    this.#isUp = true;
    for (const breaker of this.#hooks.known()) this.publish(breaker);
  }

  #flush(): void {
    if (this.#waiting.size === 0) return;
    this.#sendWaiting();
    this.#pausing = setTimeout(() => {
      this.#pausing = undefined;
      this.#flush();
    }, sendInterval).unref();
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
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#pending.delete(id);
    clearTimeout(pending.timer);
    pending.settle(wait);
  }
}

interface Kept {
  readonly breaker: SharedBreaker;
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
  receive(member: number, word: HealthWord, send: (news: HealthNews) => void): void {
    switch (word.kind) {
      case 'join': {
        this.#members.set(member, send);
        const places = this.#known();
        if (places.length > 0) send({ kind: 'heard', places });
        return;
      }
      case 'tell':
        for (const breaker of word.places) this.#keep(breaker);
        for (const [other, sendOther] of this.#members)
          if (other !== member) sendOther({ kind: 'heard', places: word.places });
        return;
      case 'claim':
        send({ kind: 'turn', id: word.id, wait: this.#acquire(member, idOf(word.name), word.lease) });
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

  #keep(breaker: SharedBreaker): void {
    const id = idOf(breaker.name);
    // The state that changed last is the last in the map.
    this.#places.delete(id);
    if (breaker.rests === 0 && breaker.cool <= 0) return;
    this.#places.set(id, { breaker, at: this.#now() });
    dropOldest(this.#places);
  }

  #known(): readonly SharedBreaker[] {
    const now = this.#now();
    const known: SharedBreaker[] = [];
    for (const [id, { breaker, at }] of this.#places) {
      const age = now - at;
      const cool = Math.max(0, breaker.cool - age);
      if (age > keptFor || (breaker.rests === 0 && cool === 0)) this.#places.delete(id);
      else known.push({ ...breaker, cool, rest: Math.max(0, breaker.rest - age) });
    }
    return known;
  }

  #acquire(member: number, id: string, lease: number): number {
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

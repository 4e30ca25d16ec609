/** Answers a call from the cache, or keeps its response there. */
import type { Observable } from 'rxjs';
import {
  addReplyHeaders,
  observe,
  type Call,
  type GatewayEvent,
  type Next,
  type PluginTools,
  type Usage,
} from 'sluice';
import { directivesOf, type Directives } from './directives.ts';
import { ageOf, compacted, isKept, sizeOf, usageIn, type Entry } from './entry.ts';
import { isOutage, isTheSameForAll, notCached } from './failures.ts';
import { Flight, type Outcome } from './flight.ts';
import { isCachedOperation } from './cacheable.ts';
import { Keys, type CacheKey } from './key.ts';
import { recordingBytesOf, shareOf, type CacheOptions } from './options.ts';
import { Recording, type Budget } from './recording.ts';
import { replayed } from './replay.ts';
import type { SemanticIndex } from './semantic/index.ts';
import { findSimilar, type Similar } from './semantic/similar.ts';
import { ResponseStore } from './store.ts';

type Reply = Observable<GatewayEvent>;

/** Value of `x-sluice-cache`. */
type Kind = 'hit' | 'miss' | 'stale';

/** Maximum number of stale responses that are refreshed at the same time. */
const mostRefreshes = 100;

/** Maximum number of requests that a call waits for, or makes, when the request of another call failed. */
const mostGenerations = 3;

/** The cache of one gateway: entries, flights and refreshes. */
export class ResponseCache {
  readonly #options: CacheOptions;
  readonly #tools: PluginTools;
  readonly #semantic: SemanticIndex | undefined;
  readonly #store: ResponseStore;
  readonly #keys: Keys;
  readonly #share: number;
  readonly #flights = new Map<string, Flight>();
  readonly #refreshes = new Set<Flight>();
  readonly #budget: Budget;
  readonly #calls;

  constructor(options: CacheOptions, tools: PluginTools, semantic?: SemanticIndex) {
    this.#options = options;
    this.#tools = tools;
    this.#semantic = semantic;
    this.#store = new ResponseStore(options, tools);
    this.#keys = new Keys(options);
    this.#share = shareOf(options.charge);
    this.#budget = { most: recordingBytesOf(options), used: 0 };
    this.#calls = tools.metrics.counter(
      'calls',
      'Calls of operations that are cached. result: hit, stale, miss, joined (a call that shared a request of another one) or bypass; reason: why a call was bypassed.',
      ['result', 'reason'],
    );
  }

  /** Answers a call from an entry, with the response to an equal call that is under way, or from its provider. */
  async answer(call: Call, next: Next): Promise<Reply> {
    if (!isCachedOperation(call.operation)) return next(call);
    const directives = directivesOf(call);
    const key = directives.noStore ? undefined : this.#keys.of(call);
    if (typeof key !== 'object') {
      this.#calls.add({ result: 'bypass', reason: key ?? 'no-store' });
      if (directives.onlyIfCached) throw notCached();
      return next(call);
    }
    const found = directives.noCache ? undefined : this.#store.find(key.digest);
    const entry = found instanceof Promise ? await found : found;
    const usable = entry !== undefined && ageOf(entry) <= (directives.maxAge ?? Infinity) ? entry : undefined;
    if (usable !== undefined && ageOf(usable) <= this.#options.ttl) return this.#replay(call, usable, 'hit');
    if (directives.onlyIfCached) throw notCached();
    if (usable !== undefined && this.#isWithin(usable, this.#options.staleWhileRevalidate)) {
      const isOwn = this.#refresh(key, call, next);
      return this.#replay(call, usable, 'stale', !isOwn);
    }
    return this.#fetch(key, call, next, directives, usable);
  }

  /** Deletes all entries, or those of one scope. */
  async purge(scope: string | undefined): Promise<number | undefined> {
    const [deleted] = await Promise.all([this.#store.purge(scope), this.#semantic?.clear(scope)]);
    return deleted;
  }

  /** Ends refreshes, which have no client. */
  close(): void {
    for (const flight of this.#refreshes) flight.stop();
    this.#semantic?.close();
  }

  #isWithin(entry: Entry, seconds: number): boolean {
    return ageOf(entry) <= this.#options.ttl + seconds;
  }

  /** Returns a kept response. `isCharged` is false where the call pays for a new one. */
  #replay(call: Call, entry: Entry, kind: 'hit' | 'stale', isCharged = true): Reply {
    this.#setHeaders(call, kind, ageOf(entry));
    this.#calls.add({ result: kind });
    if (isCharged) this.#tools.chargeAnswer(call, usageIn(entry.events), this.#share);
    return replayed(entry, call, this.#options.pace);
  }

  #setHeaders(call: Call, kind: Kind, age?: number): void {
    addReplyHeaders(call, {
      'x-sluice-cache': kind,
      ...(age === undefined ? {} : { age: String(Math.floor(age)) }),
    });
  }

  /** Sends the request to a provider. Returns the stale response where the providers fail. */
  async #fetch(
    key: CacheKey,
    call: Call,
    next: Next,
    { noCache, maxAge = Infinity }: Directives,
    stale: Entry | undefined,
  ): Promise<Reply> {
    try {
      return this.#options.singleFlight && !noCache
        ? await this.#shared(key, call, next, maxAge)
        : await this.#alone(key, call, next);
    } catch (error) {
      if (stale === undefined || !this.#isWithin(stale, this.#options.staleIfError) || !isOutage(error))
        throw error;
      return this.#replay(call, stale, 'stale');
    }
  }

  /** Sends a request that no other call waits for. */
  async #alone(key: CacheKey, call: Call, next: Next): Promise<Reply> {
    this.#calls.add({ result: 'miss' });
    this.#setHeaders(call, 'miss');
    const at = Date.now();
    const reply = await next(call.with({ decoded: true }));
    const recording = new Recording(this.#options.maxEntryBytes, this.#budget);
    return reply.pipe(
      observe({
        event: (event) => recording.add(event),
        end: (how) => {
          const events = recording.end();
          if (how === 'complete') void this.#keep(key, call.format.name, at, events);
        },
      }),
    );
  }

  /** Joins the request of an equal call, or makes one that others may join. */
  async #shared(key: CacheKey, call: Call, next: Next, maxAge: number): Promise<Reply> {
    for (let generation = 1; ; generation += 1) {
      const flight = this.#flights.get(key.digest);
      if (flight?.isOpen !== true) return this.#lead(key, call, next, maxAge);
      const reader = flight.join(call);
      try {
        // A client that wants no stream has not been sent anything when a stream breaks off.
        // oxlint-disable-next-line no-await-in-loop -- again only when the request of another call failed
        await (call.stream ? flight.started : flight.settled);
      } catch (error) {
        if (call.signal.aborted || generation >= mostGenerations || isTheSameForAll(error)) throw error;
        continue;
      }
      this.#calls.add({ result: 'joined' });
      this.#setHeaders(call, 'hit', 0);
      return this.#charged(call, reader.stream);
    }
  }

  /** Charges a call for a response whose usage is known at its end. */
  #charged(call: Call, reply: Reply): Reply {
    if (this.#share === 0) {
      this.#tools.chargeAnswer(call, undefined, 0);
      return reply;
    }
    let usage: Usage | undefined;
    call.onEnd(() => this.#tools.chargeAnswer(call, usage, this.#share));
    return reply.pipe(
      observe({
        event: (event) => {
          if (event.type === 'usage') usage = event.usage;
        },
      }),
    );
  }

  /** Sends a request that other calls may join. */
  async #lead(key: CacheKey, call: Call, next: Next, maxAge: number): Promise<Reply> {
    const at = Date.now();
    let similar: Similar | undefined;
    const flight = this.#launch(key, call, (outcome) => {
      if (flight.isFound || !('events' in outcome)) return;
      const isShared = this.#keep(key, call.format.name, at, outcome.events);
      if (isShared !== undefined && similar?.embedded !== undefined)
        this.#semantic?.add(similar.embedded, { digest: key.digest, scope: key.scope, at, isShared });
    });
    const reader = flight.join(call, true);
    const index = this.#semantic;
    const lookUp =
      index &&
      (async (): Promise<Entry | undefined> => {
        similar = await findSimilar(index, this.#store, call, key, { ttl: this.#options.ttl, maxAge });
        return similar.found;
      });
    void this.#send(flight, call, next, lookUp);
    await flight.started;
    if (!flight.isFound) {
      this.#calls.add({ result: 'miss' });
      this.#setHeaders(call, 'miss');
      return reader.stream;
    }
    this.#calls.add({ result: 'hit', reason: 'semantic' });
    this.#setHeaders(call, 'hit', similar?.found === undefined ? 0 : ageOf(similar.found));
    return this.#charged(call, reader.stream);
  }

  /** Completes the flight with a cached response, or sends the request. Never rejects. */
  async #send(
    flight: Flight,
    call: Call,
    next: Next,
    lookUp: (() => Promise<Entry | undefined>) | undefined,
  ): Promise<void> {
    try {
      if (lookUp !== undefined) {
        const found = await lookUp();
        if (found !== undefined) flight.serve(found);
        // Others may wait who ask by themselves then.
        else if (call.signal.aborted) flight.stop();
        if (flight.end !== undefined) return;
      }
      await flight.send(this.#tools.detach(call), next);
    } catch (error) {
      flight.fail(error);
    }
  }

  /** Refreshes a stale response unless a refresh is under way. Returns true where the call pays for the refresh. */
  #refresh(key: CacheKey, call: Call, next: Next): boolean {
    if (this.#flights.has(key.digest) || this.#refreshes.size >= mostRefreshes) return false;
    const at = Date.now();
    const ended = (outcome: Outcome): void => {
      this.#refreshes.delete(flight);
      if ('events' in outcome) void this.#keep(key, call.format.name, at, outcome.events);
    };
    const flight = this.#launch(key, call, ended, true);
    this.#refreshes.add(flight);
    void flight.send(this.#tools.detach(call), next);
    return true;
  }

  #launch(key: CacheKey, call: Call, ended: (outcome: Outcome) => void, isOfNobody = false): Flight {
    const flight: Flight = new Flight({
      limit: this.#options.maxEntryBytes,
      budget: this.#budget,
      format: call.format.name,
      ended: (outcome) => {
        if (this.#flights.get(key.digest) === flight) this.#flights.delete(key.digest);
        ended(outcome);
      },
      isOfNobody,
    });
    this.#flights.set(key.digest, flight);
    return flight;
  }

  /** Stores a complete response. Returns undefined where the rules forbid it; otherwise resolves with true once other workers can find it. */
  #keep(
    key: CacheKey,
    format: string,
    at: number,
    all: readonly GatewayEvent[] | undefined,
  ): Promise<boolean> | undefined {
    if (all === undefined || !isKept(all, this.#options)) return undefined;
    const events = compacted(all);
    const bytes = events.reduce((sum, event) => sum + sizeOf(event), 0);
    return this.#store.set({ digest: key.digest, scope: key.scope, at, format, events, bytes });
  }
}

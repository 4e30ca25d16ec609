/** Runs responses with `background: true` without a waiting client: leases, cancellation, and the stream of events for a client that follows. */
import { filter, ignoreElements, lastValueFrom, Observable, of, ReplaySubject, takeUntil } from 'rxjs';
import { GatewayError, observe, toGatewayError, type GatewayEvent, type JsonObject } from 'sluice';
import { accountOf, type Call } from 'sluice/internal';
import type { Detached, DetachedCalls, ResponseStore, StoredResponse } from './core-types.ts';
import { growConversation, turnOf, type Keeping } from './keep.ts';
import { begunResponse, failureOf, Recorder } from './record.ts';
import type { Resolved } from './resolve.ts';
import { isRunning, runningStates } from './seen.ts';

/** Lease of a run and interval of its renewal, in milliseconds. A run whose lease has expired was interrupted. */
const lease = 20_000;
const leaseStep = 5_000;

/** Maximum number of events that wait for a slow client. Beyond it the stream ends with an error, and the client can fetch the result later. */
const mostBehind = 10_000;

/** Number of events that are replayed to the client, which subscribes right after the start of the run. */
const mostEarly = 100;

/** Options of background runs. */
export interface BackgroundOptions extends Keeping {
  /** Maximum number of runs at a time in this process. */
  readonly most: number;
  readonly detached: DetachedCalls;
}

/** Sends the call of a run. */
export type Send = (call: Call) => Promise<Observable<GatewayEvent>>;

/** The background runs of this process. */
export class BackgroundRuns {
  readonly #options: BackgroundOptions;
  readonly #runs = new Map<string, Run>();

  constructor(options: BackgroundOptions) {
    this.#options = options;
  }

  /** Starts a run. Returns the queued response, or the stream of events. Throws 503 where too many are running. */
  async begin(call: Call, resolved: Resolved, send: Send): Promise<Observable<GatewayEvent>> {
    const { most, store, retention } = this.#options;
    if (this.#runs.size >= most) {
      throw new GatewayError('server_is_overloaded', 'Too many background responses are running.', {
        retryAfter: 10,
      });
    }
    const queued: JsonObject = { ...begunResponse(call), status: 'queued', background: true };
    const stored = { ...turnOf(call, resolved, queued, retention), runsUntil: Date.now() + lease };
    await store.save(stored);
    const key = keyOf(stored.owner, stored.id);
    const run = new Run(call, resolved, stored, this.#options, () => this.#runs.delete(key));
    this.#runs.set(key, run);
    void run.go(send);
    if (call.stream) return run.live;
    return of<GatewayEvent>({ type: 'bytes', bytes: Buffer.from(JSON.stringify(queued)) });
  }

  /** Cancels a run in this or another process. Returns the response after that, unchanged if it had ended; undefined when there is none. */
  async cancel(owner: string, id: string): Promise<StoredResponse | undefined> {
    const { store } = this.#options;
    const stored = await store.find(owner, id);
    if (stored === undefined || !isRunning(stored)) return stored;
    await store.saveIf(ended(stored, { ...stored.response, status: 'cancelled' }), runningStates);
    this.#runs.get(keyOf(owner, id))?.stop(new GatewayError('conflict', 'The response was cancelled.'));
    return store.find(owner, id);
  }

  /** Ends all runs of this process. Their responses are stored as failed. */
  async close(): Promise<void> {
    await Promise.all([...this.#runs.values()].map((run) => run.interrupt()));
  }
}

function keyOf(owner: string, id: string): string {
  return JSON.stringify([owner, id]);
}

function ended({ runsUntil: _over, ...stored }: StoredResponse, response: JsonObject): StoredResponse {
  return { ...stored, response };
}

/** Background run of one response. */
class Run {
  readonly #call: Call;
  readonly #own: Detached;
  readonly #resolved: Resolved;
  readonly #store: ResponseStore;
  readonly #options: BackgroundOptions;
  readonly #forget: () => void;
  readonly #recorder: Recorder;
  readonly #clientGate: Call['gate'];
  readonly #done = Promise.withResolvers<void>();
  /** Events for the client that started the run, which may leave at any time. */
  readonly live = new ReplaySubject<GatewayEvent>(mostEarly);
  #stored: StoredResponse;
  #timer: NodeJS.Timeout | undefined;
  #behind = 0;
  /** Reason for which the run was stopped from outside. */
  #reason: GatewayError | undefined;

  constructor(
    call: Call,
    resolved: Resolved,
    stored: StoredResponse,
    options: BackgroundOptions,
    forget: () => void,
  ) {
    this.#own = options.detached.detach(call, true);
    this.#call = this.#own.call;
    this.#clientGate = call.gate;
    this.#resolved = resolved;
    this.#store = options.store;
    this.#options = options;
    this.#forget = forget;
    this.#stored = stored;
    this.#recorder = new Recorder(this.#call);
  }

  /** Stops the run. The caller writes the final state into the store. */
  stop(reason: GatewayError): void {
    this.#reason ??= reason;
    this.#own.end();
  }

  async interrupt(): Promise<void> {
    const reason = new GatewayError('internal_error', 'The gateway was stopped while it made this response.');
    this.stop(reason);
    await this.#done.promise;
  }

  /** Runs until the response has ended. Never rejects. */
  async go(send: Send): Promise<void> {
    this.#timer = setInterval(() => void this.#report(), leaseStep);
    this.#timer.unref();
    try {
      if (await this.#begin()) await this.#make(send);
      this.live.complete();
    } catch (error) {
      const failure = this.#reason ?? error;
      await this.#fail(failure);
      this.live.error(toGatewayError(failure));
    } finally {
      clearInterval(this.#timer);
      const { id } = this.#stored;
      this.#options.log.info({ id: this.#call.id, response: id }, 'a background run ended');
      this.#forget();
      this.#own.end();
      this.#done.resolve();
    }
  }

  async #make(send: Send): Promise<void> {
    const call = this.#call;
    const { id } = this.#stored;
    // The response begins at once, under the stored id, because a client must be able to return to it before the provider has responded.
    this.#see({ type: 'head', id, model: call.askedModel, created: call.created });
    const source = await this.#own.send(send);
    const over = new Observable<void>((subscriber) => call.onEnd(() => subscriber.next()));
    const read = source.pipe(
      filter(({ type }) => type !== 'head'),
      observe({ event: (event) => this.#see(event), failed: (error) => this.#broke(error) }),
      ignoreElements(),
      takeUntil(over),
    );
    try {
      await lastValueFrom(read, { defaultValue: undefined });
    } finally {
      // Charged before the response is there to be fetched.
      accountOf(call).close();
    }
    const reason = this.#reason ?? call.failure;
    if (reason !== undefined) throw reason;
    const response: JsonObject = { ...this.#recorder.response(), id, background: true };
    const turn = ended(this.#stored, response);
    if (await this.#store.saveIf(turn, runningStates))
      await growConversation(this.#store, turn, this.#resolved);
  }

  #see(event: GatewayEvent): void {
    this.#recorder.see(event);
    this.#behind = this.#clientGate.closed ? this.#behind + 1 : 0;
    if (this.#behind <= mostBehind) {
      this.live.next(event);
      return;
    }
    const { id } = this.#stored;
    this.live.error(
      new GatewayError('server_is_overloaded', `The stream is read too slowly: fetch ${id} when it is done.`),
    );
  }

  #broke(error: unknown): void {
    this.stop(toGatewayError(error));
  }

  async #fail(error: unknown): Promise<void> {
    const { log } = this.#options;
    if (!(error instanceof GatewayError)) log.error({ id: this.#call.id, error }, 'a background run failed');
    const response: JsonObject = { ...this.#stored.response, status: 'failed', error: failureOf(error) };
    try {
      await this.#store.saveIf(ended(this.#stored, response), runningStates);
    } catch (problem) {
      log.error({ id: this.#call.id, error: problem }, 'a background response could not be stored');
    }
  }

  /** Renews the lease. Stops the run where another process has cancelled it. */
  async #report(): Promise<void> {
    const { owner, id } = this.#stored;
    try {
      if (await this.#store.renew(owner, id, Date.now() + lease, runningStates)) return;
      this.stop(new GatewayError('conflict', 'The response was cancelled.'));
    } catch (error) {
      this.#options.log.warn(
        { id: this.#call.id, error },
        'a background run could not report that it is alive',
      );
    }
  }

  /** Stores the response as in progress. Resolves with false when it was cancelled before. */
  #begin(): Promise<boolean> {
    const response: JsonObject = { ...this.#stored.response, status: 'in_progress' };
    this.#stored = { ...this.#stored, response, runsUntil: Date.now() + lease };
    return this.#store.saveIf(this.#stored, runningStates);
  }
}

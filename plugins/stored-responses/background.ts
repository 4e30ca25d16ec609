import { filter, ignoreElements, lastValueFrom, Observable, of, ReplaySubject, takeUntil } from 'rxjs';
import { GatewayError, observe, toGatewayError, type GatewayEvent, type JsonObject } from 'sluice';
import { accountOf, type Call } from 'sluice/internal';
import type { Detached, DetachedCalls, ResponseStore, StoredResponse } from './core-types.ts';
import { growConversation, turnOf, type Keeping } from './keep.ts';
import { begunResponse, failureOf, Recorder } from './record.ts';
import type { Resolved } from './resolve.ts';
import { isRunning, runningStates } from './seen.ts';

/** How long a run promises to be alive, and how often it says so, in milliseconds. A run that says nothing any more was interrupted. */
const lease = 20_000;
const leaseStep = 5_000;

/** The most events that wait for a client that follows a run and reads slowly: beyond, it is told to fetch the result later. */
const mostBehind = 10_000;

/** Events that a run may make before its client listens, which it does at once. */
const mostEarly = 100;

/** What background runs work with. */
export interface BackgroundOptions extends Keeping {
  /** The most runs at once in this process. */
  readonly most: number;
  readonly detached: DetachedCalls;
}

/** Sends a call on its way: what the runs do instead of the handler. */
export type Send = (call: Call) => Promise<Observable<GatewayEvent>>;

/** Responses that are made without a client waiting for them. */
export class BackgroundRuns {
  readonly #options: BackgroundOptions;
  readonly #runs = new Map<string, Run>();

  constructor(options: BackgroundOptions) {
    this.#options = options;
  }

  /** Begins a run and answers with the queued response, or with the stream of what happens. Rejects with 503 when there are too many. */
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

  /** Ends a run, here or in another process. Gives the response as it is now: one that has ended stays what it is; undefined when there is none. */
  async cancel(owner: string, id: string): Promise<StoredResponse | undefined> {
    const { store } = this.#options;
    const stored = await store.find(owner, id);
    if (stored === undefined || !isRunning(stored)) return stored;
    await store.saveIf(ended(stored, { ...stored.response, status: 'cancelled' }), runningStates);
    this.#runs.get(keyOf(owner, id))?.stop(new GatewayError('conflict', 'The response was cancelled.'));
    return store.find(owner, id);
  }

  /** Ends every run of this process; each is kept as failed. */
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

/** One response on its way. */
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
  /** What happens, for the client that began the run and may leave at any time. */
  readonly live = new ReplaySubject<GatewayEvent>(mostEarly);
  #stored: StoredResponse;
  #timer: NodeJS.Timeout | undefined;
  #behind = 0;
  /** Why the run was ended from outside. */
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

  /** Ends the run. Whoever calls says in the store what became of it. */
  stop(reason: GatewayError): void {
    this.#reason ??= reason;
    this.#own.end();
  }

  async interrupt(): Promise<void> {
    const reason = new GatewayError('internal_error', 'The gateway was stopped while it made this response.');
    this.stop(reason);
    await this.#done.promise;
  }

  /** Runs to the end; never rejects. */
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
    // The reply begins at once, under the id that was given: a client must be able to come back to it before the provider has answered.
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
      log.error({ id: this.#call.id, error: problem }, 'a background response could not be kept');
    }
  }

  /** Says that the run is alive; another process may have cancelled it. */
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

  /** False when it was cancelled before it began. */
  #begin(): Promise<boolean> {
    const response: JsonObject = { ...this.#stored.response, status: 'in_progress' };
    this.#stored = { ...this.#stored, response, runsUntil: Date.now() + lease };
    return this.#store.saveIf(this.#stored, runningStates);
  }
}

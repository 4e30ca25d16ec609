/** Sends a call to the targets of its model until one responds: retries, fallbacks, hedges, and waits for a target. */
import type { Observable } from 'rxjs';
import { type Call, type Target } from '../sdk/call.ts';
import type { Next } from '../sdk/define.ts';
import { GatewayError, toGatewayError } from '../sdk/errors.ts';
import type { GatewayEvent } from '../model/event.ts';
import { accountOf } from '../money/account/index.ts';
import type { Notices } from '../sdk/notices.ts';
import { startWithEvents } from '../sdk/operators.ts';
import { findCandidates } from './candidates.ts';
import { Attempt, type AttemptTimeout } from './attempt.ts';
import type { Catalog } from './catalog.ts';
import { TargetSelector } from './target-selector.ts';
import { isRepeatable, shouldFallBack, nobodyKnows, failureScopeOf, selectFinalError } from './failures.ts';
import { attemptEvent, failureCause } from './failure-cause.ts';
import type { Health, AttemptReport } from '../sdk/health.ts';
import { preferCapable } from './prefer-capable.ts';
import { raceAttempts, mostHedges, type Runner } from './hedge.ts';
import type { TargetLoads } from './load.ts';
import type { RoutingSettings } from '../settings/routing.ts';

/** Services and settings for all calls. */
export interface AttemptsOptions {
  readonly catalog: Catalog;
  readonly notices: Notices;
  readonly health: Health;
  readonly load: TargetLoads;
  readonly settings: RoutingSettings;
  /** The translate stage around {@link sendToChannel}. */
  readonly translate: Next;
}

/** Maximum time that a call waits for a target to be ready, and tolerance for clocks and timers, in milliseconds. */
const longestWait = 1_000;
const slack = 100;

/**
 * Returns the step of the pipeline that makes the attempts. A failure that another target may not share causes a fallback; the client's own
 * mistake does not. Another attempt does no harm, because nothing reaches the client before the first event.
 */
export function createAttempts(options: AttemptsOptions): Next {
  return function attempts(call) {
    try {
      return new Attempts(call, options).run();
    } catch (error) {
      return Promise.reject(error as Error);
    }
  };
}

/** Target that health admits for the call. */
interface Entered {
  readonly target: Target;
  readonly report: AttemptReport;
}

/** Running attempt: the second one when it has replaced the first. */
interface Current {
  attempt?: Attempt;
}

/** Runs the attempts of one call. */
class Attempts {
  readonly #call: Call;
  readonly #options: AttemptsOptions;
  readonly #selector: TargetSelector;
  readonly #startedAt = performance.now();
  /** Events with which the response begins: the request and the attempts that failed. */
  readonly #before: GatewayEvent[];
  #failures: GatewayError[] | undefined;
  #tries = 0;
  #waited = 0;
  /** Number of remaining hedges. */
  #hedges: number;
  /** Targets that already got a retry. */
  #repeated: Target[] | undefined;
  /** Target of the next retry. */
  #repeat: Target | undefined;

  constructor(call: Call, options: AttemptsOptions) {
    const { health, load, settings } = options;
    this.#call = call;
    this.#options = options;
    this.#before = [{ type: 'request', model: call.model, stream: call.stream }];
    this.#selector = new TargetSelector(
      preferCapable(findCandidates(call, options.catalog), call),
      call.edits.affinity,
      {
        health,
        load,
        how: settings.choice,
      },
    );
    this.#hedges = mostHedges(call, settings);
  }

  /** Tries the best target, and others when it fails. Has no extra await for calls whose first attempt succeeds, which are nearly all. */
  run(): Promise<Observable<GatewayEvent>> {
    const entered = this.#enter();
    if (entered === undefined)
      return this.#whenReady().then((ready) => (ready === undefined ? this.run() : this.#try(ready)));
    return this.#try(entered);
  }

  #try(entered: Entered): Promise<Observable<GatewayEvent>> {
    this.#tries += 1;
    if (this.#hedges > 0)
      return this.#race(entered).then(this.#begun, (error: unknown) => this.#another(error));
    return this.#attempt(entered).then(this.#begun, (error: unknown) =>
      this.#again(entered, error).then(this.#begun, (last: unknown) => this.#another(last)),
    );
  }

  readonly #begun = (reply: Observable<GatewayEvent>): Observable<GatewayEvent> =>
    startWithEvents(this.#before, reply);

  /** Falls back to another target after a failure that it may not share. */
  #another(error: unknown): Promise<Observable<GatewayEvent>> {
    if (!shouldFallBack(error)) throw error;
    if (this.#tries >= this.#options.settings.attempts || this.#timeLeft() <= 0) throw this.#failure();
    return this.run();
  }

  /** Returns the best available target. `beside`: targets with running attempts. */
  #enter(beside?: readonly Target[]): Entered | undefined {
    const { health } = this.#options;
    const repeat = this.#repeat;
    this.#repeat = undefined;
    if (repeat !== undefined) {
      const report = health.enter(repeat);
      if (report !== undefined) return { target: repeat, report };
    }
    let refused: Target[] | undefined;
    let entered: Entered | undefined;
    for (
      let target = this.#selector.next(beside);
      target !== undefined;
      target = this.#selector.next(beside)
    ) {
      const report = health.enter(target);
      if (report !== undefined) {
        entered = { target, report };
        break;
      }
      (refused ??= []).push(target);
    }
    if (refused !== undefined) for (const target of refused) this.#selector.putBack(target);
    return entered;
  }

  /**
   * Handles the case that health holds back every target that is left. Enters one that admits a probe, or waits shortly and resolves with
   * undefined. Throws when neither is possible, because more requests do not help while all targets are down.
   */
  async #whenReady(): Promise<Entered | undefined> {
    const { health } = this.#options;
    const left = this.#selector
      .left()
      .map((target) => ({
        target,
        wait: Math.max(health.waitMs(target), 20),
        standing: health.standing(target),
      }))
      .toSorted((a, b) => a.wait - b.wait);
    for (const { target } of left) {
      const report = health.enter(target);
      if (report === undefined) continue;
      this.#selector.take(target);
      return { target, report };
    }
    const soonest = left[0]?.wait;
    if (soonest === undefined) throw this.#failure();
    if (this.#waited + soonest > longestWait + slack || soonest >= this.#timeLeft())
      throw this.#failure(
        soonest,
        left.every(({ standing }) => standing === 'cooling'),
      );
    this.#waited += soonest;
    // A timer can fire up to a millisecond early.
    await pause(this.#call, Math.ceil(soonest) + 1);
    return undefined;
  }

  /**
   * Handles an attempt that failed. On a stale connection the target gets the request again at once, and health records no failure. Any
   * other failure is recorded and thrown again.
   */
  async #again(entered: Entered, thrown: unknown, current?: Current): Promise<Observable<GatewayEvent>> {
    let error = toGatewayError(thrown);
    const report = error.staleConnection ? this.#options.health.enter(entered.target) : undefined;
    if (report !== undefined) {
      try {
        return await this.#attempt({ ...entered, report }, current);
      } catch (second) {
        error = toGatewayError(second);
      }
    }
    if (shouldFallBack(error)) this.#failed(entered.target, error);
    throw error;
  }

  /** Sends the call to one target. `current` shows which attempt runs. */
  #attempt({ target, report }: Entered, current?: Current): Promise<Observable<GatewayEvent>> {
    const { load, translate } = this.#options;
    const attempt = new Attempt(this.#call, target, report, load);
    if (current !== undefined) current.attempt = attempt;
    return attempt.begin(translate, this.#timeoutOf(target));
  }

  /** Sends the call to one target, and to others while it is silent. */
  #race(first: Entered): Promise<Observable<GatewayEvent>> {
    const { hedge, attempts } = this.#options.settings;
    const sending = accountOf(this.#call).attempts.watch();
    const started: Target[] = [];
    const start = (entered: Entered): Runner & { readonly target: Target } => {
      const { target } = entered;
      const current: Current = {};
      started.push(target);
      const reply = this.#attempt(entered, current).catch((error: unknown) =>
        this.#again(entered, error, current),
      );
      return { target, reply, giveUp: () => current.attempt?.giveUp() };
    };
    return raceAttempts(start(first), {
      after: hedge === false ? longestWait : hedge.after,
      another: () => {
        if (this.#hedges <= 0 || this.#tries >= attempts) return undefined;
        const next = this.#enter(started);
        if (next === undefined) return undefined;
        this.#hedges -= 1;
        this.#tries += 1;
        return start(next);
      },
      endsAll: (error) => !shouldFallBack(error),
      beaten: ({ target }) => {
        const at = sending.get(target);
        if (at !== undefined) this.#before.push(attemptEvent(target, 'hedged', at));
      },
    });
  }

  #failed(target: Target, error: GatewayError): void {
    const { channel, model } = target;
    this.#options.notices.emit('attempt-failed', { channel: channel.id, model, error });
    const { attempts } = accountOf(this.#call);
    const event = attemptEvent(target, error.code, attempts.startOf(target), failureCause(error));
    this.#before.push(event);
    attempts.failed(event);
    (this.#failures ??= []).push(error);
    if (isRepeatable(error) && this.#repeated?.includes(target) !== true) {
      (this.#repeated ??= []).push(target);
      this.#repeat = target;
    } else this.#selector.failed(target, ...failureScopeOf(error));
  }

  #timeLeft(): number {
    return this.#options.settings.total - (performance.now() - this.#startedAt);
  }

  #timeoutOf({ channel }: Target): AttemptTimeout {
    const { attempt, firstToken } = this.#options.settings;
    const whole = channel.attemptTimeout ?? attempt;
    // A response that is not streamed has no first token before it is complete.
    const own = this.#call.stream ? Math.min(whole, channel.firstTokenTimeout ?? firstToken) : whole;
    const left = Math.max(0, this.#timeLeft());
    return { milliseconds: Math.min(own, left), isOfCall: left < own };
  }

  /**
   * Returns the error for the client. `wait`: milliseconds until one of the targets that health holds back is ready; `cooling`: all of them
   * are in a cooldown.
   */
  #failure(wait?: number, cooling = false): GatewayError {
    const retryAfter = wait === undefined ? undefined : Math.max(1, Math.ceil(wait / 1000));
    if (this.#failures !== undefined) {
      const all = this.#selector.left().length === 0;
      const unknown = all ? nobodyKnows(this.#failures, this.#call.askedModel) : undefined;
      return unknown ?? selectFinalError(this.#failures, cooling ? retryAfter : undefined);
    }
    const details = { origin: 'upstream', ...(retryAfter === undefined ? {} : { retryAfter }) } as const;
    return cooling
      ? new GatewayError(
          'rate_limit_exceeded',
          'The upstream rate-limits requests for this model. Retry later.',
          details,
        )
      : new GatewayError(
          'no_available_channel',
          `No channel can currently serve the model "${this.#call.model}". Retry later.`,
          details,
        );
  }
}

/** Resolves after a time in milliseconds; rejects when the call ends earlier. */
function pause(call: Call, milliseconds: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      forget();
      resolve();
    }, milliseconds);
    const forget = call.onEnd(() => {
      clearTimeout(timer);
      reject(new GatewayError('client_closed_request', 'The call ended while it was waiting for a channel.'));
    });
  });
}

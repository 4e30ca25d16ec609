/** Decides how many hedges a call may have, and races attempts for the first response. */
import type { Observable } from 'rxjs';
import type { Call } from '../sdk/call.ts';
import type { Operation } from '../sdk/format.ts';
import type { GatewayEvent } from '../model/event.ts';
import { dismiss } from './attempt.ts';
import type { RoutingSettings } from '../settings/routing.ts';

/** Operations that can be hedged because they create nothing at the provider. */
const repeatable: ReadonlySet<Operation> = new Set<Operation>([
  'chat',
  'count-tokens',
  'embed',
  'rerank',
  'moderate',
  'ocr',
  'transcribe',
  'translate-audio',
  'speak',
]);

/**
 * Returns the maximum number of hedges for a call. 0 when the settings allow none, when the call creates or stores something at
 * the provider, and when it has an affinity that is not only for a warm cache.
 */
export function mostHedges(call: Call, { hedge }: Pick<RoutingSettings, 'hedge'>): number {
  if (hedge === false || !repeatable.has(call.operation)) return 0;
  const { affinity } = call.edits;
  if (affinity !== undefined && affinity.warm !== true) return 0;
  return call.operation === 'chat' && leavesSomething(call) ? 0 : hedge.most;
}

/** Returns true for a response that the provider stores, continues or computes in the background. Responses are stored by default. */
function leavesSomething({ body, codec }: Call): boolean {
  const {
    store = codec.format === 'responses',
    background,
    previous_response_id: previous,
    conversation,
  } = body;
  return store === true || background === true || (previous ?? conversation ?? null) !== null;
}

/** One attempt in a race. */
export interface Runner {
  /** Resolves with the start of the response. */
  readonly reply: Promise<Observable<GatewayEvent>>;
  giveUp(): void;
}

/** Callbacks and delay of a race. */
export interface RaceOptions<R extends Runner> {
  /** Milliseconds without a response after which another attempt starts. */
  readonly after: number;
  /** Starts another attempt; undefined when no target is left. */
  another(): R | undefined;
  /** Returns true for a failure that all other attempts would share. */
  endsAll(error: unknown): boolean;
  /** Cancels the attempt, because another one was faster. */
  beaten(runner: R): void;
}

/**
 * Resolves with the first response, and cancels all other attempts at once. Rejects with the failure of the last attempt, or as soon as an
 * attempt fails in a way that all others would share.
 */
export function raceAttempts<R extends Runner>(
  first: R,
  options: RaceOptions<R>,
): Promise<Observable<GatewayEvent>> {
  return new Promise((resolve, reject) => {
    const running = new Set<R>();
    let over = false;
    let timer: NodeJS.Timeout | undefined;
    const finish = (): void => {
      over = true;
      clearTimeout(timer);
      for (const other of running) other.giveUp();
    };
    const wait = (): void => {
      timer = setTimeout(() => {
        const another = options.another();
        if (another === undefined) return;
        start(another);
        wait();
      }, options.after);
    };
    const start = (runner: R): void => {
      running.add(runner);
      runner.reply.then(
        (reply) => {
          if (over) {
            // This attempt responded at the same time as the winner.
            dismiss(reply);
            return;
          }
          running.delete(runner);
          for (const other of running) options.beaten(other);
          finish();
          resolve(reply);
        },
        (error: Error) => {
          running.delete(runner);
          if (over || (running.size > 0 && !options.endsAll(error))) return;
          finish();
          reject(error);
        },
      );
    };
    start(first);
    wait();
  });
}

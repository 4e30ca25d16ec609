import type { Observable } from 'rxjs';
import { callKey } from '../sdk/call-key.ts';
import { type Call } from '../sdk/call.ts';
import type { Next } from '../sdk/define.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { Observing } from '../sdk/followed-reply.ts';
import { observe } from '../sdk/operators.ts';

/** Makes what watches a call's reply that goes on without its client. `own` is the call that goes on. */
export type Follower = (own: Call) => Observing;

const followers = callKey<Follower[]>('followers');

/**
 * For a plugin that accounts for calls: says what shall watch the reply when the call is given a life of its own. The client's reply then
 * ends early and tells nothing; `follower` runs before that, and its `end` comes once, however the reply ended.
 */
export function followDetached(call: Call, follower: Follower): void {
  const known = call.get(followers);
  if (known === undefined) call.set(followers, [follower]);
  else known.push(follower);
}

/** A call with a life of its own. */
export interface Detached {
  readonly call: Call;
  /** Sends a view of it on its way, watched by all who follow it. Rejects as `next` does. */
  send(next: Next): Promise<Observable<GatewayEvent>>;
  /** Ends it. Whoever detached it does so, once. */
  end(): void;
}

/** The calls of a gateway that go on without their client: it waits for them when it stops. */
export class DetachedCalls {
  #running = 0;

  /** How many there are. */
  get running(): number {
    return this.#running;
  }

  /** Gives a call a life of its own (see `Call.detached`), in the eyes of all who asked for that with {@link followDetached}. */
  detach(call: Call, stream?: boolean): Detached {
    const { call: own, end } = call.detached(stream);
    const watching = (own.get(followers) ?? []).map((follower) => once(follower(own)));
    this.#running += 1;
    own.onEnd(() => {
      this.#running -= 1;
      for (const { end: left } of watching.toReversed()) left('left');
    });
    return {
      call: own,
      end,
      async send(next) {
        try {
          let reply = await next(own);
          // The last that asked stands nearest to the provider, as it does in the pipeline.
          for (const one of watching.toReversed()) reply = reply.pipe(observe(one));
          return reply;
        } catch (error) {
          for (const { end: failed } of watching.toReversed()) failed('error', error);
          throw error;
        }
      },
    };
  }
}

/** The same watcher, told of the end only the first time. */
function once(observing: Observing): Observing & Required<Pick<Observing, 'end'>> {
  let ended = false;
  return {
    ...(observing.failed === undefined ? {} : { failed: (error) => observing.failed?.(error) }),
    event: (event) => observing.event?.(event),
    end(how, error) {
      if (ended) return;
      ended = true;
      observing.end?.(how, error);
    },
  };
}

/** Calls that go on without their client. */
import type { Observable } from 'rxjs';
import { followed } from '../money/account/followed.ts';
import { accountOf } from '../money/account/index.ts';
import type { CallKey } from '../sdk/call-key.ts';
import { detachedCallbacks } from '../sdk/on-detached.ts';
import { type Call } from '../sdk/call.ts';
import { computedHeaders, replyHeaders, replyTrailers } from '../sdk/reply-headers.ts';
import type { Next } from '../sdk/define.ts';
import type { GatewayEvent } from '../model/event.ts';

/** A call with a life of its own. It owns the account: what the client gets at once settles nothing. */
export interface Detached {
  readonly call: Call;
  /** Sends a view of the call on its way; the account observes its response. Rejects as `next` does. Once. */
  send(next: Next): Promise<Observable<GatewayEvent>>;
  /** Ends the call. Whoever detached it does so, once. */
  end(): void;
}

/** The calls of a gateway that go on without their client: it waits for them when it stops. */
export class DetachedCalls {
  #running = 0;

  /** Number of calls that run. */
  get running(): number {
    return this.#running;
  }

  /** Counts a call that goes on without a client, until it ends. */
  add(own: Call): void {
    this.#running += 1;
    own.onEnd(() => {
      this.#running -= 1;
    });
  }

  /** Detaches a call from its client: see `Call.detached`. */
  detach(call: Call, stream?: boolean): Detached {
    const { call: own, end } = call.detached(stream);
    const { record } = accountOf(own);
    this.add(own);
    for (const job of call.get(detachedCallbacks) ?? []) job(own);
    const send: Detached['send'] = async (next) => {
      try {
        return await followed(record, own, next);
      } finally {
        // The head and the trailers that the client gets are those of its own call.
        shareHeaders(own, call);
      }
    };
    return { call: own, end, send };
  }
}

/** Adds to a call the headers and trailers that were added to the call that was detached from it. */
function shareHeaders(own: Call, call: Call): void {
  const added = own.get(replyHeaders);
  if (added !== undefined) call.set(replyHeaders, { ...call.get(replyHeaders), ...added });
  shareNew(own, call, computedHeaders);
  shareNew(own, call, replyTrailers);
}

/** Adds to a call the entries that are new in its detached call, which began with those that the call has. */
function shareNew<Entry>(own: Call, call: Call, key: CallKey<readonly Entry[]>): void {
  const known = call.get(key) ?? [];
  const added = own.get(key)?.filter((entry) => !known.includes(entry)) ?? [];
  if (added.length > 0) call.set(key, [...known, ...added]);
}

import { Observable } from 'rxjs';
import { callKey, type Call } from '../call.ts';
import type { Next } from '../define.ts';
import { GatewayError, toGatewayError } from '../errors.ts';
import type { Operation } from '../formats/format.ts';
import type { AttemptEvent, GatewayEvent } from '../model/event.ts';
import type { Notices } from '../notices.ts';
import { startWithEvents } from '../operators.ts';
import type { Catalog } from './catalog.ts';
import type { Health } from './health.ts';
import type { RoutingSettings } from './settings.ts';
import type { Target } from './target.ts';

/** What the choice of a channel works with. */
export interface AttemptsOptions {
  readonly catalog: Catalog;
  readonly notices: Notices;
  readonly health: Health;
  readonly settings: RoutingSettings;
  /** The translate stage around {@link sendToChannel}. */
  readonly translate: Next;
}

/** The channels that could not serve this call so far, for whoever sees it fail: no stream tells of them when all have failed. */
export const failedAttempts = callKey<readonly AttemptEvent[]>('failed attempts');

/** `performance.now()` when a provider was first asked for this call: what came before is the gateway's own time. */
export const askedAt = callKey<number>('asked at');

/**
 * Chooses the channel: tries the model's targets in order until one answers. A failure that another channel may not share moves on; the
 * caller's own mistake does not. Nothing has reached the client before the first event, so trying again is free of harm.
 */
export function createAttempts({ catalog, notices, translate }: AttemptsOptions): Next {
  return async function attempts(call) {
    const targets = akin(call, able(call, catalog.targets(call.model)));
    const before: GatewayEvent[] = [{ type: 'request', model: call.model, stream: call.stream }];
    let failure: GatewayError | undefined;
    for (const target of targets) {
      try {
        return startWithEvents(before, await translate(call.with({ target })));
      } catch (error) {
        failure = toGatewayError(error);
        if (failure.origin === 'client' || !failure.retryable) throw failure;
        const { channel, model } = target;
        notices.emit('attempt-failed', { channel: channel.id, model, error: failure });
        const attempt: AttemptEvent = { type: 'attempt', channel: channel.id, model, failure: failure.code };
        before.push(attempt);
        call.set(failedAttempts, [...(call.get(failedAttempts) ?? []), attempt]);
      }
    }
    throw failure ?? new GatewayError('no_available_channel', `No channel serves the model ${call.model}.`);
  };
}

/** The targets that can do the operation; 503 when there is none. Tokens can be counted here for any channel that chats. */
function able(call: Call, targets: readonly Target[]): readonly Target[] {
  if (targets.length === 0) {
    throw new GatewayError(
      'no_available_channel',
      `No channel serves the model "${call.model}". GET /v1/models lists what there is.`,
      { param: 'model' },
    );
  }
  const doing = targets.filter(
    ({ channel }) =>
      channel.speaks[call.operation] !== undefined ||
      (overChat.has(call.operation) && channel.speaks.chat !== undefined),
  );
  if (doing.length === 0) {
    throw new GatewayError(
      'endpoint_not_supported',
      `The channel for the model "${call.model}" does not support ${call.wire.path}.`,
      { param: 'model' },
    );
  }
  return doing;
}

/** What the gateway does by itself for any channel that chats. */
const overChat: ReadonlySet<Operation> = new Set(['count-tokens', 'compact']);

/** The targets in the order that the call's affinity wants; 503 when it allows none of them. */
function akin(call: Call, targets: readonly Target[]): readonly Target[] {
  const { affinity } = call.edits;
  if (affinity === undefined) return targets;
  const isAkin = ({ channel }: Target): boolean => channel.id === affinity.channel;
  const first = targets.filter(isAkin);
  if (affinity.only !== true) return [...first, ...targets.filter((target) => !isAkin(target))];
  if (first.length === 0) {
    throw new GatewayError(
      'no_available_channel',
      `The model "${call.model}" is no longer served where this conversation began.`,
      { param: 'model' },
    );
  }
  return first;
}

/** The innermost step: opens the channel with the request that the translate stage made. */
export const sendToChannel: Next = async (call) => {
  const { target } = call;
  const { upstream } = call.edits;
  if (target === undefined || upstream === undefined) {
    throw new Error('No plugin of the translate stage made a request for the channel: one must run.');
  }
  if (call.get(askedAt) === undefined) call.set(askedAt, performance.now());
  if (call.operation === 'realtime') {
    const { connect } = target.channel;
    if (connect === undefined) throw new Error(`The channel ${target.channel.id} has no sockets.`);
    return connect(call, upstream);
  }
  const answer = await target.channel.open(call, upstream);
  return new Observable<GatewayEvent>((subscriber) => {
    subscriber.next({ type: 'answer', status: answer.status, headers: answer.headers });
    return answer.bytes.subscribe({
      next: (bytes) => subscriber.next({ type: 'bytes', bytes }),
      error: (error) => subscriber.error(error),
      complete: () => subscriber.complete(),
    });
  });
};

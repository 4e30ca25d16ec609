import { map, Observable } from 'rxjs';
import type { GatewayEvent } from '../model/event.ts';
import { callKey } from '../sdk/call-key.ts';
import type { Target } from '../sdk/call.ts';
import type { Upstream } from '../sdk/channel.ts';
import type { Next } from '../sdk/define.ts';

/** `performance.now()` when a provider was first asked for this call: what came before is the gateway's own time. */
export const askedAt = callKey<number>('asked at');

/** Where a task was made: its provider is asked for it with the same key. Set for `create-video`, which is never hedged. */
export const taskTarget = callKey<Target>('task target');

/** The targets whose providers were asked, where several may be at the same time. */
export const askedTargets = callKey<Set<Target>>('asked targets');

/** The innermost step: opens the channel with the request that the translate stage made. */
export const sendToChannel: Next = (call) => {
  const { target } = call;
  const { upstream } = call.edits;
  if (target === undefined || upstream === undefined) {
    throw new Error('No plugin of the translate stage made a request for the channel: one must run.');
  }
  if (call.get(askedAt) === undefined) call.set(askedAt, performance.now());
  call.get(askedTargets)?.add(target);
  if (call.operation === 'create-video') call.set(taskTarget, target);
  if (call.operation === 'realtime') {
    const { connect } = target.channel;
    if (connect === undefined) throw new Error(`The channel ${target.channel.id} has no sockets.`);
    return connect(call, upstream);
  }
  call.sent();
  const { events } = target.channel;
  if (events !== undefined) return new Promise((resolve) => resolve(events(call, upstream)));
  return target.channel.open(call, upstream).then(eventsOf);
};

function eventsOf({ status, headers, bytes }: Upstream): Observable<GatewayEvent> {
  return new Observable((subscriber) => {
    subscriber.next({ type: 'answer', status, headers });
    return bytes.pipe(map((piece) => ({ type: 'bytes', bytes: piece }) as const)).subscribe(subscriber);
  });
}

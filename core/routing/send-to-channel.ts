import { map, Observable } from 'rxjs';
import type { GatewayEvent } from '../model/event.ts';
import { accountOf } from '../money/account/index.ts';
import type { Upstream } from '../sdk/channel.ts';
import type { Next } from '../sdk/define.ts';

/** The innermost step: opens the channel with the request that the translate stage made. */
export const sendToChannel: Next = (call) => {
  const { target } = call;
  const { upstream } = call.edits;
  if (target === undefined || upstream === undefined) {
    throw new Error(
      'No plugin of the translate stage created a request for the channel. Enable the plugin that translates.',
    );
  }
  accountOf(call).attempts.start(target);
  if (call.operation === 'realtime') {
    const { connect } = target.channel;
    if (connect === undefined)
      throw new Error(`The channel ${target.channel.id} does not support WebSockets.`);
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

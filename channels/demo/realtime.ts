import { concat, concatMap, defer, EMPTY, finalize, type Observable } from 'rxjs';
import type { GatewayEvent, UpstreamRequest, Call, Valve } from 'sluice';
import { upstreamError } from 'sluice/channel-kit';
import { answerId } from './answers.ts';
import { RealtimeSession } from './realtime-session.ts';
import { RealtimeTranslation } from './realtime-translation.ts';
import { readSwitches } from './switches.ts';

/** Opens a session with the demo. `demo!status=N` rejects it as a provider would. */
export async function openSession(
  call: Call,
  { model, path }: UpstreamRequest,
): Promise<Observable<GatewayEvent>> {
  const { status } = readSwitches(model, '');
  if (status !== undefined) {
    const error = { message: `The demo answers ${status}, as you asked.` };
    throw upstreamError(status, JSON.stringify({ error }));
  }
  return defer(() => {
    const Session = path === '/realtime/translations' ? RealtimeTranslation : RealtimeSession;
    const session = new Session(answerId(call), model);
    const { gate, inputGate, input = EMPTY } = call;
    // Sound is not generated faster than the client reads it.
    const valve: Valve = { pause: () => inputGate.close(), resume: () => inputGate.open() };
    gate.attach(valve);
    return concat(
      session.begin(),
      input.pipe(concatMap((message): Iterable<GatewayEvent> => session.answer(message))),
    ).pipe(
      finalize(() => {
        gate.detach(valve);
        if (gate.closed) inputGate.open();
      }),
    );
  });
}

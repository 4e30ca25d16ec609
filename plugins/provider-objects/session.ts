import { concatMap, finalize, from, merge, Subject, type ObservableInput } from 'rxjs';
import { GatewayError, type GatewayEvent } from 'sluice';
import { parseObject, type Call, type Next, type SocketMessage } from 'sluice/internal';
import type { ObjectFormat } from './collections.ts';
import { placeOfReferences, type Finding } from './pin.ts';
import { apiOf, mayRefer, referencesIn } from './references.ts';

/**
 * Passes the messages of a session on. A message that names an object of another key is not sent to the provider, and the client gets an
 * error in its own format.
 */
export async function checkedSession(call: Call, next: Next, finding: Finding): ReturnType<Next> {
  const api = apiOf(call.codec.format);
  const route = call.format.tunnels?.find(({ operation }) => operation === call.operation);
  if (api === undefined || route === undefined || call.input === undefined) return next(call);
  const errors = new Subject<GatewayEvent>();
  const judge = async (message: SocketMessage): Promise<readonly SocketMessage[]> => {
    // No further message is read meanwhile: neither those that wait nor the errors about them pile up.
    call.inputGate.close();
    try {
      await checkMessage(call, message, api, finding);
      return [message];
    } catch (error) {
      const told = error instanceof GatewayError ? error : notChecked(error);
      errors.next({ type: 'message', data: Buffer.from(route.failure(told, call.id)), binary: false });
      await call.gate.opened();
      return [];
    } finally {
      call.inputGate.open();
    }
  };
  const input = call.input.pipe(
    concatMap((message): ObservableInput<SocketMessage> =>
      message.close === undefined && mayRefer(message.data, api)
        ? from(judge(message)).pipe(concatMap((messages) => messages))
        : [message],
    ),
  );
  const events = await next(call.with({ input }));
  return merge(events.pipe(finalize(() => errors.complete())), errors);
}

async function checkMessage(
  call: Call,
  { data }: SocketMessage,
  api: ObjectFormat,
  finding: Finding,
): Promise<void> {
  const event = parseObject(data.toString());
  if (event === undefined) return;
  try {
    await placeOfReferences(call, referencesIn(event, api), finding);
  } catch (error) {
    throw error instanceof GatewayError ? withEventId(error, event['event_id']) : error;
  }
}

/** Returns the error with the id that the client gave its message. */
function withEventId({ code, message, param }: GatewayError, eventId: unknown): GatewayError {
  return new GatewayError(code, message, {
    ...(param === undefined ? {} : { param }),
    ...(typeof eventId === 'string' ? { details: { event_id: eventId.slice(0, 512) } } : {}),
  });
}

function notChecked(cause: unknown): GatewayError {
  return new GatewayError(
    'server_is_overloaded',
    'The objects that this message names cannot be checked now.',
    {
      retryAfter: 5,
      cause,
    },
  );
}

import { concatMap, finalize, from, merge, Subject, type ObservableInput } from 'rxjs';
import { GatewayError, parseObject, type GatewayEvent, type JsonObject } from 'sluice';
import type { SocketMessage } from 'sluice/channel-kit';
import type { Call, Next } from 'sluice/internal';

/** What messages of a session are checked with. */
export interface MessageCheck {
  /** False for messages that need no check, found by a look at their letters. */
  concerns(data: Buffer): boolean;
  /** Throws or rejects for a message that must not be sent. */
  check(event: JsonObject): Promise<void> | void;
  /** Message of the error that the client gets where the check itself fails. */
  readonly failure: string;
}

/** Passes the messages of a session on. A message that a check refuses is not sent to the provider, and the client gets an error in its own format. */
export async function checkedMessages(call: Call, next: Next, rule: MessageCheck): ReturnType<Next> {
  const route = call.format.tunnels?.find(({ operation }) => operation === call.operation);
  if (route === undefined || call.input === undefined) return next(call);
  const errors = new Subject<GatewayEvent>();
  const judge = async (message: SocketMessage): Promise<readonly SocketMessage[]> => {
    // No further message is read meanwhile: neither those that wait nor the errors about them pile up.
    call.inputGate.close();
    try {
      await checkMessage(message, rule);
      return [message];
    } catch (error) {
      const told = error instanceof GatewayError ? error : notChecked(rule, error);
      errors.next({ type: 'message', data: Buffer.from(route.failure(told, call.id)), binary: false });
      await call.gate.opened();
      return [];
    } finally {
      call.inputGate.open();
    }
  };
  const input = call.input.pipe(
    concatMap((message): ObservableInput<SocketMessage> =>
      message.close === undefined && rule.concerns(message.data)
        ? from(judge(message)).pipe(concatMap((messages) => messages))
        : [message],
    ),
  );
  const events = await next(call.with({ input }));
  return merge(events.pipe(finalize(() => errors.complete())), errors);
}

async function checkMessage({ data }: SocketMessage, { check }: MessageCheck): Promise<void> {
  const event = parseObject(data.toString());
  if (event === undefined) return;
  try {
    await check(event);
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

function notChecked({ failure }: MessageCheck, cause: unknown): GatewayError {
  return new GatewayError('server_is_overloaded', failure, { retryAfter: 5, cause });
}

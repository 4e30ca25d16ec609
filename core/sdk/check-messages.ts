/** Checks the messages that clients send in sessions over WebSockets. */
import { concatMap, finalize, from, merge, Subject, type Observable, type ObservableInput } from 'rxjs';
import type * as author from './author/call.ts';
import type { Call } from './call.ts';
import { GatewayError } from './errors.ts';
import type { GatewayEvent } from '../model/event.ts';
import { parseObject } from '../json/parse.ts';
import type { JsonObject } from '../model/json.ts';
import type { SocketMessage } from '../model/realtime.ts';

/**
 * A check of the messages of a session.
 *
 * @example
 * const noTools: MessageCheck = {
 *   concerns: (data) => data.includes('tools') || data.includes('\\u'),
 *   check(event) {
 *     if (isObject(event.session) && event.session.tools !== undefined) throw new GatewayError('forbidden', 'No tools here.');
 *   },
 *   failure: 'The tools of this message cannot be checked now.',
 * };
 */
export interface MessageCheck {
  /**
   * Returns false for messages that need no check; they are sent without being parsed. JSON may escape letters, so also return true for data
   * that contains `\u`.
   */
  concerns(data: Buffer): boolean;
  /**
   * Throws GatewayError, or rejects with one, for a message that must not be sent. The next message waits for it. Not called for messages that
   * are not a JSON object: these are sent.
   */
  check(event: JsonObject): Promise<void> | void;
  /** Message of the 503 error that the client gets where the check itself fails. */
  readonly failure: string;
}

/**
 * Sends a call on and checks the messages of its session. A message that the check refuses is not sent to the provider, and the client gets
 * an error in its own format; the session goes on. Calls that are no sessions (`call.input` is undefined) are sent on unchanged.
 *
 * @example
 * if (call.operation === 'realtime') return checkMessages(call, next, noTools);
 */
export async function checkMessages<View extends author.Call>(
  call: View,
  next: (call: View) => Promise<Observable<GatewayEvent>>,
  rule: MessageCheck,
): Promise<Observable<GatewayEvent>> {
  const { format } = call as author.Call as Call;
  if (call.input === undefined) return next(call);
  const route = format.tunnels?.find(({ operation }) => operation === call.operation);
  // Sent on unchecked, its messages would pass what the check refuses.
  if (route === undefined)
    throw new Error(`Messages of "${call.operation}" in ${format.name} cannot be checked.`);
  const errors = new Subject<GatewayEvent>();
  const judge = async (message: SocketMessage): Promise<readonly SocketMessage[]> => {
    // No further message is read meanwhile: neither those that wait nor the errors about them pile up.
    call.inputGate.close();
    try {
      await checkMessage(message, rule);
      return [message];
    } catch (error) {
      const refusal = error instanceof GatewayError ? error : notChecked(rule, error);
      errors.next({ type: 'message', data: Buffer.from(route.failure(refusal, call.id)), binary: false });
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
  const events = await next(call.with({ input }) as View);
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

/** Returns the error with the id that the client gave its message, and with everything else that the author's error has. */
function withEventId(error: GatewayError, eventId: unknown): GatewayError {
  if (typeof eventId !== 'string') return error;
  const { code, message, param, retryAfter, origin, status, retryable, headers, details, cause } = error;
  return new GatewayError(code, message, {
    ...(param === undefined ? {} : { param }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
    ...(cause === undefined ? {} : { cause }),
    details: { ...details, event_id: eventId.slice(0, 512) },
    origin,
    status,
    retryable,
    headers,
  });
}

function notChecked({ failure }: MessageCheck, cause: unknown): GatewayError {
  return new GatewayError('server_is_overloaded', failure, { retryAfter: 5, cause });
}

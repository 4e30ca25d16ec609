/** Finds the cause of a failed attempt for operators, and builds the event that reports the attempt. */
import { upstreamFailureOf } from '../sdk/upstream-failure.ts';
import type { AttemptEvent, FailureCause } from '../model/event.ts';
import type { Target } from '../sdk/call.ts';

/** Maximum number of nested causes whose messages are joined. */
const maxDepth = 4;

/** Returns the provider's status and message, or the messages of the error's causes. Undefined if there are none. */
export function failureCause(error: Error): FailureCause | undefined {
  const failure = upstreamFailureOf(error);
  if (failure !== undefined) {
    const { status, message } = failure;
    return message === '' ? { status } : { status, message };
  }
  const messages = causeMessages(error);
  return messages.length === 0 ? undefined : { message: messages.join(': ') };
}

function causeMessages(error: Error): string[] {
  const messages: string[] = [];
  let { cause } = error;
  while (cause instanceof Error && messages.length < maxDepth) {
    const { name, message } = cause;
    // Skips a cause that the message already quotes.
    if (messages.at(-1)?.includes(message) !== true)
      messages.push(name === 'Error' ? message : `${name}: ${message}`);
    cause = cause.cause;
  }
  return messages.filter((message) => message !== '');
}

/** Returns the event of an attempt that ends without a response. `startedAt`: `performance.now()` at its start. */
export function attemptEvent(
  { channel, key, model }: Target,
  failure: string,
  startedAt: number | undefined,
  cause?: FailureCause,
): AttemptEvent {
  return {
    type: 'attempt',
    channel: channel.id,
    ...(key.id === '' ? {} : { key: key.id }),
    model,
    failure,
    ...(cause === undefined ? {} : { cause }),
    ...(startedAt === undefined ? {} : { startedAt }),
    endedAt: performance.now(),
  };
}

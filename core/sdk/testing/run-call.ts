/** Sends one call of a test through plugins, and says what became of it. */
import type { CallKey } from '../call-key.ts';
import type { GatewayEvent } from '../../model/event.ts';
import type { EndedCalls } from '../../money/account/ended-calls.ts';
import type { createCatalog } from '../../routing/catalog.ts';
import type { CallOutcome } from '../author/outcome.ts';
import { toGatewayError, type GatewayError } from '../errors.ts';
import { replyHeaders } from '../reply-headers.ts';
import { makeCall, type CallOptions } from './call.ts';
import { received, textOf, type Received } from './client.ts';
import { consumed, leaving, underTest, usualReply, type composedAround, type Sent } from './pipeline.ts';
import type { Script } from './script.ts';

/**
 * Result of one call.
 *
 * @example
 * const { text, status, sent } = await tested.run('hello');
 */
export interface Outcome extends Received {
  /** Text of the first choice. */
  readonly text: string;
  /** Events of the response after all plugins, in order. */
  readonly events: readonly GatewayEvent[];
  /** Time of each event in milliseconds after the start of the call, by `Date`. */
  readonly times: readonly number[];
  /** Error that the client receives; undefined when there is none. */
  readonly error: GatewayError | undefined;
  /** The headers that plugins added to the reply. */
  readonly headers: Readonly<Record<string, string>>;
  /** The final state of the call, as `call.onOutcome` gives it. */
  readonly outcome: CallOutcome;
  /** Returns the value that plugins have set under a key: `left(caller)`. */
  left<T>(key: CallKey<T>): T | undefined;
  /** Calls that the channel received, one for each attempt; empty when a plugin answered or refused by itself. */
  readonly sent: readonly Sent[];
}

/**
 * Options of one call of a test, such as the response of the channel.
 *
 * @example
 * await tested.run({ messages: ['hello'], stream: true }, { reply: reply('Hi', cut()), leaveAfter: 2 });
 */
export interface RunOptions {
  /**
   * Response of the channel: the text of a whole response, a script, or a function that makes one for each attempt. Default `'Hello.'`; for
   * `list-models` the models of all channels.
   */
  readonly reply?: string | Script | ((sent: Sent, index: number) => Answer | Promise<Answer>);
  /** The client leaves after so many events. */
  readonly leaveAfter?: number;
  /** The client leaves when this aborts, also while it waits for a response. */
  readonly signal?: AbortSignal;
}

type Answer = string | Script;

/** Parts of plugins under test that a call needs. */
interface Tested {
  readonly composed: ReturnType<typeof composedAround>;
  readonly catalog: ReturnType<typeof createCatalog>;
  readonly ended: EndedCalls;
}

/** Sends one call through the plugins. */
export async function runCall(
  input: string | CallOptions,
  { reply, leaveAfter, signal }: RunOptions,
  { composed, catalog, ended }: Tested,
): Promise<Outcome> {
  const { call, exchange, read } = await makeCall(typeof input === 'string' ? { messages: [input] } : input);
  const left = leaving(signal);
  const sent: Sent[] = [];
  call.set(underTest, {
    read,
    async answer(arrived) {
      sent.push(arrived);
      const wanted = typeof reply === 'function' ? await reply(arrived, sent.length - 1) : reply;
      return typeof wanted === 'object' ? wanted : usualReply(arrived, wanted, catalog);
    },
  });
  const startedAt = Date.now();
  const events: GatewayEvent[] = [];
  const times: number[] = [];
  let failure: unknown;
  try {
    const stream = await Promise.race([composed.handle(call), left.beforeAnswer]);
    const take = (event: GatewayEvent): void => {
      events.push(event);
      times.push(Date.now() - startedAt);
    };
    await consumed(stream, exchange, take, leaveAfter, left.during);
  } catch (error) {
    failure = error;
  }
  const result = received(exchange, events, failure);
  const headers = call.get(replyHeaders) ?? {};
  exchange.end();
  ended.flush();
  return {
    ...result,
    text: textOf(events),
    events,
    times,
    error: failure === undefined ? undefined : toGatewayError(failure),
    headers,
    left: (wanted) => call.get(wanted),
    outcome: exchange.account.outcome,
    sent,
  };
}

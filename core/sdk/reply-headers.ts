import { callKey } from './call-key.ts';
import type { Call } from './author/call.ts';

/** What was added to the head of a call's reply, whether it succeeds or fails. */
export const replyHeaders = callKey<Readonly<Record<string, string>>>('reply headers');

/**
 * Adds headers to the head of the reply; lower-case names, and what was added under the same name before is replaced. What a format or an
 * error says itself wins. Before the first event of the reply: later they have gone out. A reply over a socket has none.
 * What no head can carry (letters beyond Latin-1, line breaks, the headers of the connection itself) is left out, and the log names it.
 *
 * @example
 * addReplyHeaders(call, { 'x-cache': 'hit' });
 */
export function addReplyHeaders(call: Call, headers: Readonly<Record<string, string>>): void {
  call.set(replyHeaders, { ...call.get(replyHeaders), ...headers });
}

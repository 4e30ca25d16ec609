/** Headers that plugins add to a reply. */
import { callKey } from './call-key.ts';
import type { Call } from './author/call.ts';

type Headers = Readonly<Record<string, string>>;

/** Headers that were added to the response of a call, whether it succeeds or fails. */
export const replyHeaders = callKey<Headers>('reply headers');

/** Functions that compute further headers when the head is written. */
export const computedHeaders = callKey<readonly (() => Headers)[]>('computed reply headers');

/** Trailers of a call's reply, in the order in which they were added. */
export const replyTrailers = callKey<readonly ReplyTrailers[]>('reply trailers');

/**
 * Adds headers to the head of the reply; lower-case names, and what was added under the same name before is replaced. What a format or an
 * error says itself wins. Before the first event of the reply: later they have gone out. A reply over a socket has none.
 * A function is called when the head is written: at the first event of a stream, at the end of a whole reply that fits into one piece. Its
 * headers win over the others, and none are sent if it throws.
 * What no head can carry (letters beyond Latin-1, line breaks, the headers of the connection itself) is left out, and the log names it.
 *
 * @example
 * addReplyHeaders(call, { 'x-cache': 'hit' });
 */
export function addReplyHeaders(call: Call, headers: Headers | (() => Headers)): void {
  if (typeof headers === 'function')
    call.set(computedHeaders, [...(call.get(computedHeaders) ?? []), headers]);
  else call.set(replyHeaders, { ...call.get(replyHeaders), ...headers });
}

/**
 * Headers that follow the body of a response.
 *
 * @example
 * const trailers: ReplyTrailers = { names: ['x-tokens'], values: () => ({ 'x-tokens': String(call.progress.usage?.output) }) };
 */
export interface ReplyTrailers {
  /** Lower-case names of all trailers that may come: the head lists them. */
  readonly names: readonly string[];
  /** Called when the body is complete. Trailers with other names are left out. */
  values(): Headers;
  /**
   * True: a stream of server-sent events also ends with a comment for each trailer (`: x-tokens: 12`), also for clients that do not accept
   * trailers, where the format tolerates comments. Default: false.
   */
  readonly comments?: boolean;
}

/**
 * Adds trailers to the reply, for figures that are known only at the end of a stream. They are sent to clients that accept trailers (`te:
 * trailers`), over HTTP/1.1, behind a body whose length the head does not tell. Before the first event of the reply.
 *
 * @example
 * addReplyTrailers(call, { names: ['x-tokens'], values: () => ({ 'x-tokens': String(call.progress.usage?.output ?? 0) }) });
 */
export function addReplyTrailers(call: Call, trailers: ReplyTrailers): void {
  call.set(replyTrailers, [...(call.get(replyTrailers) ?? []), trailers]);
}

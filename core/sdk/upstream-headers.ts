/** Headers that plugins add to the requests that a call sends to providers. */
import { callKey } from './call-key.ts';
import type { Call, Target } from './author/call.ts';
import { isRequestHeader, isSendable } from './header-fields.ts';

/** Returns the headers that a plugin adds to one request. */
type MakeHeaders = (target: Target) => Readonly<Record<string, string>> | undefined;

/** Functions of plugins that return headers. */
const upstreamHeaders = callKey<readonly MakeHeaders[]>('upstream headers');

/**
 * Adds headers to the requests that a call sends to providers. `make` runs for each HTTP request of each attempt, right before it is sent, and
 * must not wait; undefined adds nothing. Names in lower case. Headers that the channel sets win, and so do those of its option `headers`.
 * Headers of the connection, and invalid names or values, are left out. A session over a WebSocket has none.
 *
 * @example
 * addUpstreamHeaders(call, ({ channel }) => (channel.id === 'own-vllm' ? { 'x-request-id': call.id } : undefined));
 */
export function addUpstreamHeaders(call: Call, make: MakeHeaders): void {
  call.set(upstreamHeaders, [...(call.get(upstreamHeaders) ?? []), make]);
}

/** Returns the headers of a request with those that plugins add; the same object where they add none. */
export function withUpstreamHeaders(
  call: Call,
  headers: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const makers = call.get(upstreamHeaders);
  const { target } = call;
  if (makers === undefined || target === undefined) return headers;
  const added: Record<string, string> = {};
  for (const make of makers)
    for (const [name, value] of Object.entries(make(target) ?? {}))
      if (isRequestHeader(name) && isSendable(name, value)) added[name.toLowerCase()] = value;
  return { ...added, ...headers };
}

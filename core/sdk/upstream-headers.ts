import { callKey } from './call-key.ts';
import type { Call, Target } from './author/call.ts';

// An import of node:http would load the second HTTP client that it exports: see core/upstream/node-http.ts.
const { validateHeaderName, validateHeaderValue } = process.getBuiltinModule('node:http');

/** Headers that a plugin adds to one request to a provider. */
type MakeHeaders = (target: Target) => Readonly<Record<string, string>> | undefined;

/** What plugins add to the requests that a call sends to providers. */
const upstreamHeaders = callKey<readonly MakeHeaders[]>('upstream headers');

/** Headers that belong to the connection or to the framing of a request. */
const reserved = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Adds headers to the requests that a call sends to providers. `make` runs for each HTTP request of each attempt, right before it is sent, and
 * must not wait; undefined adds nothing. Names in lower case. Headers that the channel sets win, and so do those of its option `headers`.
 * Headers of the connection, and what no header can carry, are left out. A session over a WebSocket has none.
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
      if (canCarry(name, value)) added[name.toLowerCase()] = value;
  return { ...added, ...headers };
}

function canCarry(name: string, value: string): boolean {
  if (reserved.has(name.toLowerCase())) return false;
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}

/** Writes the head of an answer, without what none can carry. */
import type { ServerResponse } from 'node:http';
import type { Exchange } from '../call/exchange.ts';
import type { Log } from '../log.ts';
import { isSendable } from '../sdk/header-fields.ts';
import { computedHeaders, replyHeaders } from '../sdk/reply-headers.ts';

type Headers = Readonly<Record<string, string>>;

/** Headers of the connection and of message framing, which plugins must not set. */
const reserved: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'keep-alive',
  'proxy-connection',
  'sec-websocket-accept',
  'sec-websocket-extensions',
  'sec-websocket-protocol',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Returns the headers that plugins have added to the response of a call. Drops invalid ones and logs their names. */
export function addedHeaders({ id, values }: Exchange, log: Log): Headers | undefined {
  const computed = values.get(computedHeaders);
  const added = values.get(replyHeaders);
  if (computed === undefined) return added === undefined ? undefined : soundHeaders(added, id, log);
  const all: Record<string, string> = { ...added };
  for (const compute of computed) {
    try {
      Object.assign(all, compute());
    } catch (error) {
      log.error({ id, error }, 'headers of a response could not be computed');
    }
  }
  return soundHeaders(all, id, log);
}

/** Returns the valid headers of plugins. Drops invalid ones and logs their names. */
export function soundHeaders(headers: Headers, id: string, log: Log): Headers {
  const isUsable = (name: string, value: string): boolean =>
    !reserved.has(name.toLowerCase()) && isSendable(name, value);
  for (const name in headers)
    if (!isUsable(name, headers[name] ?? '')) return without(headers, isUsable, id, log);
  return headers;
}

/**
 * Writes the status and headers of a response. Drops invalid headers and logs their names, because the exception would end the process and
 * all its calls.
 */
export function writeHead(
  response: ServerResponse,
  status: number,
  headers: Headers,
  id: string,
  log: Log,
): void {
  try {
    response.writeHead(status, headers);
  } catch (error) {
    if (response.headersSent) throw error;
    const sendable = Number.isInteger(status) && status >= 200 && status <= 599;
    if (!sendable) log.error({ id, status }, 'a response had an invalid status: 500 is sent');
    response.writeHead(sendable ? status : 500, without(headers, isSendable, id, log));
  }
}

function without(
  headers: Headers,
  isUsable: (name: string, value: string) => boolean,
  id: string,
  log: Log,
): Headers {
  const all = Object.entries(headers);
  const dropped = all.filter(([name, value]) => !isUsable(name, value)).map(([name]) => name.slice(0, 100));
  // Logs no values, because they may contain secrets.
  if (dropped.length > 0)
    log.error({ id, headers: dropped.slice(0, 20) }, 'invalid response headers were dropped');
  return Object.fromEntries(all.filter(([name, value]) => isUsable(name, value)));
}

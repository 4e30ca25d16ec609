/** Status and headers of successful responses, including those that pass a provider's bytes through. */
import type { Exchange } from '../call/exchange.ts';
import { describeLosses } from '../formats/_shared/losses.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { Loss } from '../model/extra.ts';
import type { Framing } from '../sdk/format.ts';
import { contentTypes } from './framing.ts';

/** Event with the status and headers of a provider's response. */
export type Answered = Extract<GatewayEvent, { type: 'answer' }>;

/** Returns the headers of a response in a framing; `added` are those of plugins. */
export function headersOf(
  { format, id }: Exchange,
  framing: Framing,
  losses: readonly Loss[],
  added: Readonly<Record<string, string>> | undefined,
): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': contentTypes[framing],
    ...added,
    ...format.replyHeaders(id),
  };
  if (framing === 'sse' || framing === 'event-stream') {
    headers['cache-control'] = 'no-cache';
    headers['x-accel-buffering'] = 'no';
  }
  if (losses.length > 0) headers['x-sluice-loss'] = describeLosses(losses);
  return headers;
}

/** Returns status and headers of a response whose body is a provider's bytes. Changes `headers`, those of every whole response. */
export function bytesHead(
  { operation, codec, wire }: Exchange,
  headers: Record<string, string>,
  answer: Answered | undefined,
): { readonly status: number; readonly headers: Record<string, string> } {
  if (operation === 'state' && answer !== undefined)
    return { status: answer.status, headers: { ...headers, ...passedHeaders(answer) } };
  if (codec.replyKind?.(wire.body ?? {}) !== undefined)
    headers['content-type'] = mediaType(answer?.headers['content-type']);
  const length = answer?.headers['content-length'];
  const encoding = answer?.headers['content-encoding'];
  if (typeof length === 'string') headers['content-length'] = length;
  // Present where the gateway does not know the compression: the client gets the compressed bytes.
  if (typeof encoding === 'string') headers['content-encoding'] = encoding;
  return { status: 200, headers };
}

/** Returns the provider's media type where it is a medium, plain text or JSON, because a browser must not run the bytes as a page or a script. */
function mediaType(type: string | string[] | undefined): string {
  return typeof type === 'string' &&
    /^(audio|video|image)\/(?!svg)[\w.+-]+|^text\/(plain|vtt)\b|^application\/json\b/i.test(type)
    ? type
    : 'application/octet-stream';
}

/** Headers of a provider's response that a client of its bytes needs. The others are not forwarded. */
const passed = [
  'content-type',
  'content-length',
  'content-encoding',
  'content-range',
  'accept-ranges',
  'etag',
  'last-modified',
  'location',
];

function passedHeaders({ headers }: Answered): Record<string, string> {
  return Object.fromEntries(
    passed.flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );
}

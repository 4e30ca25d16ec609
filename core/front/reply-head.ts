import type { Exchange } from '../call/exchange.ts';
import { toldLosses } from '../formats/_shared/losses.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { Loss } from '../model/extra.ts';
import type { Framing } from '../sdk/format.ts';
import { contentTypes } from './framing.ts';

/** The head of a provider's answer. */
export type Answered = Extract<GatewayEvent, { type: 'answer' }>;

/** The headers of a reply in this framing; `added` are those of plugins. */
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
  if (losses.length > 0) headers['x-sluice-loss'] = toldLosses(losses);
  return headers;
}

/** The head of a reply of which a provider's bytes are the body, from the headers that every whole reply has. */
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
  // Still there where the gateway does not know the compression: the client gets the bytes as they are.
  if (typeof encoding === 'string') headers['content-encoding'] = encoding;
  return { status: 200, headers };
}

/** A provider's word for what its bytes are, where it names a medium or plain text: a browser must not take them for a page or a script. */
function mediaType(type: string | string[] | undefined): string {
  return typeof type === 'string' &&
    /^(audio|video|image)\/(?!svg)[\w.+-]+|^text\/(plain|vtt)\b|^application\/json\b/i.test(type)
    ? type
    : 'application/octet-stream';
}

/** Headers of somebody's bytes that their reader needs; none of the others is the client's business. */
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

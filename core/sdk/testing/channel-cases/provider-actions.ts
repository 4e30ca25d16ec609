/** Scripted behaviour of the fake provider in tests of channels: whole responses, error statuses, and streams sent piece by piece. */
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { setTimeout as wait } from 'node:timers/promises';
import type { GatewayEvent } from '../../../model/event.ts';
import type { SeenRequest } from '../provider.ts';
import type { Script } from '../script.ts';
import { streamHeaders, type ReceivedRequest, type Voice } from '../voice.ts';
import type { ChannelUnderTest } from './tested.ts';

/** Response of the fake provider to a request. */
export type ProviderAction =
  /** A whole response with its length; `compressed`: with gzip, although the request did not accept it. */
  | { readonly says: Script | ((received: ReceivedRequest) => Script); readonly compressed?: true }
  | { readonly status: number }
  /** A stream: each piece is sent when the `step` before it has resolved. */
  | { readonly streams: Script; step(index: number): Promise<'on' | 'cut' | 'stay'> };

/** Milliseconds after which written bytes have arrived. */
const arrival = 20;

/** `step` that sends every piece at once. */
export const going = async (): Promise<'on'> => 'on';

const eventsOf = (script: Script): readonly GatewayEvent[] =>
  script.filter((step): step is GatewayEvent => 'type' in step);

/** Responds to requests for lists that the provider has. Returns false for other requests. */
export function listed(
  { lists }: ChannelUnderTest,
  { method, url }: SeenRequest,
  response: ServerResponse,
): boolean {
  const list = method === 'GET' ? lists?.(url) : undefined;
  if (list === undefined) return false;
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(list));
  return true;
}

/** Sends the scripted response. */
export async function perform(
  action: ProviderAction,
  voice: Voice,
  request: SeenRequest,
  response: ServerResponse,
): Promise<void> {
  const json = { 'content-type': 'application/json' };
  if (request.method === 'GET') {
    response.writeHead(404, json).end('{}');
    return;
  }
  if ('status' in action) {
    response.writeHead(action.status, { ...json, ...voice.errorHeaders?.(action.status) });
    response.end(voice.error(action.status, 'The provider says no.'));
    return;
  }
  if ('says' in action) {
    const script = typeof action.says === 'function' ? action.says(voice.hear(request)) : action.says;
    writeWhole(response, voice.whole(eventsOf(script), request), action.compressed);
    return;
  }
  const { pieces, end } = voice.stream(eventsOf(action.streams), request);
  response.writeHead(200, streamHeaders(voice));
  for (const [index, piece] of pieces.entries()) {
    // oxlint-disable no-await-in-loop -- one after the other is what a stream is
    const goes = await action.step(index);
    if (goes === 'stay') return;
    if (goes === 'cut') {
      // The bytes written so far must arrive before the connection is closed.
      await wait(arrival);
      response.destroy();
      return;
    }
    response.write(piece);
    // oxlint-enable no-await-in-loop
  }
  response.end(end);
}

/**
 * Writes a body with the headers that real providers send with one: a length and a validator, both of the bytes on the wire. It goes out in
 * several writes because no reader may rely on where a body is cut.
 */
function writeWhole(response: ServerResponse, body: string, compressed = false): void {
  const bytes = compressed ? gzipSync(body) : Buffer.from(body);
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': String(bytes.length),
    etag: `"${bytes.length}"`,
    ...(compressed ? { 'content-encoding': 'gzip' } : {}),
  });
  const half = Math.ceil(bytes.length / 2);
  response.write(bytes.subarray(0, half));
  // Delayed, so that the second half arrives in a read of its own.
  setTimeout(() => response.end(bytes.subarray(half)), arrival);
}

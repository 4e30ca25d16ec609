import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Subject } from 'rxjs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Reply } from '../../../core/front/reply.ts';
import { createLog } from '../../../core/log.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { makeCall, type MadeCall } from '../../../core/sdk/testing/call.ts';

const hour = 3_600_000;
const frames: GatewayEvent = {
  type: 'frames',
  format: 'chat-completions',
  bytes: Buffer.from(`data: ${JSON.stringify({ text: 'x'.repeat(4_000) })}\n\n`),
};

let server: Server;
let made: MadeCall;
let response: ServerResponse;
let reply: Reply;
let events: Subject<GatewayEvent>;
let client: IncomingMessage;

/** A stream to a client over a socket, which has read nothing but its head. */
beforeEach(async () => {
  made = await makeCall({ stream: true });
  made.read();
  events = new Subject();
  const arrived = Promise.withResolvers<ServerResponse>();
  server = createServer((_request, one) => arrived.resolve(one));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const request = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', agent: false });
  request.on('error', () => {});
  response = await arrived.promise;
  const log = createLog('silent');
  const options = { log, endErrors: () => {}, keepAlive: hour * 1_000, stalled: hour };
  reply = new Reply(made.exchange, response, options, () => {});
  reply.send(events);
  events.next(frames);
  [client] = (await once(request, 'response')) as [IncomingMessage];
  client.on('error', () => {});
});
afterEach(async () => {
  client.destroy();
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

/** Writes more than the client's buffers hold. */
function fill(): void {
  while (!made.exchange.gate.closed) events.next(frames);
}

describe('a client that does not read its stream', () => {
  test('is cut when its buffer was full for longer than it may be', () => {
    fill();
    reply.tick(performance.now() + hour / 2);
    expect(response.destroyed).toBe(false);
    reply.tick(performance.now() + 2 * hour);
    expect(response.destroyed).toBe(true);
  });

  test('is not cut later when it has read what waited for it', async () => {
    fill();
    client.resume();
    await expect.poll(() => made.exchange.gate.closed).toBe(false);
    reply.tick(performance.now() + 2 * hour);
    expect(response.destroyed).toBe(false);
    events.next(frames);
    events.complete();
    await once(client, 'end');
  });

  test('is given the whole time anew when its buffer is full again', async () => {
    fill();
    client.resume();
    await expect.poll(() => made.exchange.gate.closed).toBe(false);
    client.pause();
    fill();
    reply.tick(performance.now() + hour / 2);
    expect(response.destroyed).toBe(false);
    reply.tick(performance.now() + 2 * hour);
    expect(response.destroyed).toBe(true);
  });
});

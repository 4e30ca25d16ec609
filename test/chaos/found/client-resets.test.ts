import { request as send, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { voices } from '../../flows/_wire.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;
// Its paths are patterns, which the router of the front end matches.
const voice = voices['generate-content'];

beforeAll(async () => {
  upstream = await startUpstream((_request, response) => void pour(response));
  gateway = await startGateway({ channels: [voice.channel(upstream.url)] });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** Sends frame after frame until the gateway hangs up. */
async function pour(response: ServerResponse): Promise<void> {
  const frames = voice.frames(['x'.repeat(2000)]);
  response.writeHead(200, { 'content-type': 'text/event-stream' });

  while (!response.destroyed) {
    response.write(frames[0] ?? '');
    await new Promise((go) => setTimeout(go, 1));
  }
}

test('a client that resets its connection is no failure of the gateway in its log', async () => {
  for (let count = 0; count < 20; count += 1) {
    await new Promise<void>((left) => {
      const request = send(new URL(voice.path(voice.model, true), gateway.url), {
        method: 'POST',
        agent: false,
        headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      });
      request.on('error', () => left());
      request.on('response', (response) => {
        response.on('error', () => {});
        response.once('data', () => {
          response.socket.resetAndDestroy();
          left();
        });
      });
      request.end(JSON.stringify(voice.body(voice.model, true)));
    });
  }
  const ended = (): number => gateway.lines.filter(({ plugin }) => plugin === 'logging').length;
  await expect.poll(ended).toBe(20);
  expect(gateway.lines.filter(({ level }) => level === 'error')).toEqual([]);
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import { openUsageLog } from '../../../core/money/usage-log/open.ts';
import { call, voices } from '../../flows/_wire.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream(({ url }, response) => {
    if (url.includes('stream') || url.includes('/chat/')) {
      const [opening = ''] = voices['chat-completions'].frames(['word']);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(opening, () => setTimeout(() => response.end(), 20));
    } else {
      const text = JSON.stringify(voices['generate-content'].whole('word'));
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write(text.slice(0, text.length / 2), () => setTimeout(() => response.end(), 20));
    }
  });
  gateway = await startGateway({
    channels: [
      voices['chat-completions'].channel(upstream.url),
      voices['generate-content'].channel(upstream.url),
      // Where two accounts speak it, the end of a reply waits until its proofs are kept.
      voices['generate-content'].channel(upstream.url, { id: 'other', models: ['other'] }),
    ],
    prices: { '*': { input: 1, output: 1 } },
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** The record of a call, once it has been written. */
async function recordOf(id: unknown) {
  const log = openUsageLog(gateway.stores);
  await expect.poll(() => log.find(String(id))).toBeDefined();
  return log.find(String(id));
}

test('a whole reply that breaks while its bytes are held back is recorded with the status that its client saw', async () => {
  const answer = await call(gateway, 'generate-content', voices['generate-content'].model, false);
  expect(answer.status).toBe(502);
  expect(await recordOf(answer.headers['x-request-id'])).toMatchObject({ status: 502, ended: 'error' });
});

test('a stream that breaks before its client could see anything of it is recorded with the status that it saw', async () => {
  const answer = await call(gateway, 'generate-content', voices['chat-completions'].model, true);
  expect(answer.status).toBe(502);
  expect(await recordOf(answer.headers['x-request-id'])).toMatchObject({ status: 502, ended: 'error' });
});

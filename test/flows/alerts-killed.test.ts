import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { secret, startReceiver } from '../plugins/alerts/_receiver.ts';
import { eventually } from '../support/eventually.ts';
import { startUpstream } from '../support/upstream.ts';
import { startProcess, type GatewayProcess } from './_process.ts';

const plugin = fileURLToPath(new URL('../../plugins/alerts/index.ts', import.meta.url));

test('an alert whose sender is killed while it sends is sent again by the next, with the same id', async () => {
  const receiver = await startReceiver((index) => (index === 0 ? 'hang' : 204));
  const provider = await startUpstream((_request, response) => {
    response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"no"}}');
  });
  onTestFinished(() => provider.close());
  const folder = mkdtempSync(join(tmpdir(), 'sluice-alerts-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const members = `
    workers: 2,
    database: ${JSON.stringify(`sqlite:${join(folder, 'one.db')}`)},
    channels: [openai({ id: 'main', key: 'k', baseUrl: ${JSON.stringify(provider.url)}, models: ['gpt-x'] })],
    health: { failures: 2, rest: 600_000 },
    routing: { attempts: 1 },
    plugins: [(await import(${JSON.stringify(plugin)})).default({
      interval: 200, backoff: 200, timeout: 60_000, errorRate: false,
      destinations: { hook: { type: 'webhook', url: ${JSON.stringify(receiver.url)}, secret: ${JSON.stringify(secret)} } },
    })]`;
  const start = async (): Promise<GatewayProcess> => {
    const gateway = await startProcess(members);
    onTestFinished(() => gateway.end());
    return gateway;
  };
  const first = await start();
  for (let calls = 0; calls < 3; calls += 1)
    await fetch(`${first.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${first.key}`, 'content-type': 'application/json' },
      body: '{"model":"gpt-x","messages":[{"role":"user","content":"Hi"}]}',
    }).then((response) => response.arrayBuffer());
  await eventually(() => expect(receiver.seen).toHaveLength(1));
  await first.end();
  await start();
  await eventually(() => expect(receiver.alerts().some(({ state }) => state === 'resolved')).toBe(true));
  const ids = receiver.seen
    .filter(({ body }) => body.type === 'alert.firing')
    .map(({ headers }) => headers['webhook-id']);
  expect(ids).toHaveLength(2);
  expect(ids[0]).toBe(ids[1]);
}, 90_000);

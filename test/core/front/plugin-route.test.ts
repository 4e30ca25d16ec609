import { request } from 'node:http';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { definePlugin } from 'sluice';
import { readerSignal } from '../../../core/state/waiting-reader.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway | undefined;
afterEach(() => gateway?.close());

/** A gateway with a route that answers when the test says so; `seen` resolves with the signal of its reads. */
async function start() {
  const seen = Promise.withResolvers<AbortSignal | undefined>();
  const done = Promise.withResolvers<undefined>();
  const plugin = definePlugin({
    name: 'reads',
    stage: 'observe',
    setup(_options, tools) {
      for (const method of ['GET', 'POST'] as const)
        tools.route(method, '/reads', async (ctx) => {
          seen.resolve(readerSignal());
          await done.promise;
          ctx.body = 'read';
        });
      return (call, next) => next(call);
    },
  });
  gateway = await startGateway({ plugins: [plugin()], channels: [] });
  return { url: `${gateway.url}/reads`, seen: seen.promise, answer: () => done.resolve(undefined) };
}

test('reads of a page are given up when its client leaves', async () => {
  const { url, seen, answer } = await start();
  const asking = request(url).on('error', () => {});
  asking.end();
  const signal = await seen;
  expect(signal?.aborted).toBe(false);
  asking.destroy();
  if (signal?.aborted === false) await once(signal, 'abort');
  expect(signal?.reason).toMatchObject({ code: 'client_closed_request' });
  answer();
});

test('reads of a page that was sent are not given up afterwards', async () => {
  const { url, seen, answer } = await start();
  const asking = fetch(url, { headers: { connection: 'close' } });
  const signal = await seen;
  answer();
  expect(await (await asking).text()).toBe('read');
  await gateway?.close();
  expect(signal?.aborted).toBe(false);
});

test('reads of a change are not given up', async () => {
  const { url, seen, answer } = await start();
  const asking = fetch(url, { method: 'POST' });
  expect(await seen).toBeUndefined();
  answer();
  expect(await (await asking).text()).toBe('read');
});

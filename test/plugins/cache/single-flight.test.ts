import { describe, expect, onTestFinished, test } from 'vitest';
import cache from '../../../plugins/cache/index.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway } from '../../support/gateway.ts';
import { call, wordsIn, type RunningCall } from './_calls.ts';
import { sendAndRead } from './_clients.ts';
import { running, startedByHand as started } from './_held.ts';
import { formats, startProvider, usual } from './_provider.ts';

/** A promise that the test fulfils. */
const held = () => Promise.withResolvers<void>();

const failing = (status: number) => (response: import('node:http').ServerResponse) =>
  void response
    .writeHead(status, { 'content-type': 'application/json' })
    .end('{"error":{"message":"no luck"}}');

describe('equal calls at once', () => {
  test('1,000 of them, whole and streamed, make one request and all are answered', async () => {
    const release = held();
    const { gateway, provider } = await started({}, async () => {
      await release.promise;
      return usual('The same for all.');
    });
    const calls: RunningCall[] = [];
    // As many as the system lets wait for a connection: it has others try again, later and later.
    for (let count = 250; count <= 1_000; count += 250) {
      while (calls.length < count) calls.push(call(gateway, { stream: calls.length % 2 === 0 }));
      // oxlint-disable-next-line no-await-in-loop -- see above
      await running(gateway, count);
    }
    release.resolve();
    const bodies = await Promise.all(calls.map(({ body }) => body));
    expect(provider.requests).toHaveLength(1);
    for (const [index, body] of bodies.entries()) {
      if (index % 2 === 0) expect(wordsIn(body)).toBe('The same for all.');
      else expect(body).toContain('"content":"The same for all."');
    }
    const cacheKinds = await Promise.all(
      calls.map(async ({ response }) => (await response).headers['x-sluice-cache']),
    );
    expect(cacheKinds.filter((kind) => kind === 'miss')).toHaveLength(1);
    expect(cacheKinds.filter((kind) => kind === 'hit')).toHaveLength(999);
  });

  test('clients of all formats share one request', async () => {
    const release = held();
    const { gateway, provider } = await started({}, async () => {
      await release.promise;
      return usual();
    });
    const reads = formats.flatMap((format) =>
      [true, false].map((stream) => sendAndRead(format, gateway, { stream })),
    );
    await running(gateway, reads.length);
    release.resolve();
    for (const { text } of await Promise.all(reads)) expect(text).toBe('Hello there.');
    expect(provider.requests).toHaveLength(1);
  });

  test('without singleFlight each makes a request of its own', async () => {
    const { gateway, provider } = await started({ singleFlight: false }, () => usual());
    const calls = Array.from({ length: 5 }, () => call(gateway));
    await Promise.all(calls.map(({ body }) => body));
    expect(provider.requests.length).toBeGreaterThan(1);
  });

  test('a call that comes in the middle of a stream reads its beginning, and then what comes', async () => {
    const { gateway, provider, taps } = await started();
    const first = call(gateway, { stream: true });
    await eventually(() => taps.length === 1);
    taps[0]?.emit('One ');
    await eventually(() => wordsIn(first.text()) === 'One ');
    const second = call(gateway, { stream: true });
    await eventually(() => wordsIn(second.text()) === 'One ');
    taps[0]?.emit('two.');
    await eventually(() => wordsIn(second.text()) === 'One two.');
    taps[0]?.end();
    expect(wordsIn(await first.body)).toBe('One two.');
    expect(wordsIn(await second.body)).toBe('One two.');
    expect(provider.requests).toHaveLength(1);
    const third = call(gateway, { stream: true });
    expect(wordsIn(await third.body)).toBe('One two.');
  });
});

describe('clients that leave', () => {
  test('when the first leaves in the middle, the others get all of it', async () => {
    const { gateway, provider, taps } = await started();
    const first = call(gateway, { stream: true });
    await eventually(() => taps.length === 1);
    const others = [call(gateway, { stream: true }), call(gateway)];
    taps[0]?.emit('One ');
    await eventually(() => wordsIn(others[0]?.text() ?? '') === 'One ');
    await running(gateway, 3);
    first.leave();
    await running(gateway, 2);
    taps[0]?.emit('two.');
    taps[0]?.end();
    expect(wordsIn((await others[0]?.body) ?? '')).toBe('One two.');
    expect(await others[1]?.body).toContain('"content":"One two."');
    expect(provider.requests).toHaveLength(1);
  });

  test('when another one leaves, the first gets all of it', async () => {
    const { gateway, taps } = await started();
    const first = call(gateway, { stream: true });
    await eventually(() => taps.length === 1);
    taps[0]?.emit('One ');
    const second = call(gateway, { stream: true });
    await eventually(() => wordsIn(second.text()) === 'One ');
    second.leave();
    await running(gateway, 1);
    taps[0]?.emit('two.');
    taps[0]?.end();
    expect(wordsIn(await first.body)).toBe('One two.');
  });

  test('when the last leaves, the request to the provider ends and nothing is kept', async () => {
    const { gateway, provider, taps } = await started();
    const calls = [call(gateway, { stream: true }), call(gateway, { stream: true })];
    await eventually(() => taps.length === 1);
    taps[0]?.emit('One ');
    await eventually(() => calls.every(({ text }) => wordsIn(text()) === 'One '));
    for (const one of calls) one.leave();
    await eventually(() => taps[0]?.closed === true);
    const again = call(gateway, { stream: true });
    await eventually(() => taps.length === 2);
    taps[1]?.end();
    await again.body;
    expect(provider.requests).toHaveLength(2);
  });

  test('the first leaves before there is an answer: the others are answered', async () => {
    const release = held();
    const { gateway, provider } = await started({}, async () => {
      await release.promise;
      return usual();
    });
    const first = call(gateway);
    await eventually(() => provider.requests.length === 1);
    const second = call(gateway);
    await running(gateway, 2);
    first.leave();
    await running(gateway, 1);
    release.resolve();
    expect(await second.body).toContain('Hello there.');
    expect(provider.requests).toHaveLength(1);
  });
});

describe('providers that fail', () => {
  test('a failure meets the first call alone where the next request succeeds', async () => {
    const release = held();
    const provider = await startProvider(
      'chat-completions',
      async (_request, count) => {
        if (count > 1) return usual();
        await release.promise;
        return 'by itself' as const;
      },
      failing(500),
    );
    onTestFinished(() => provider.close());
    const gateway = await startGateway({ plugins: [cache()], channels: [provider.channel] });
    onTestFinished(() => gateway.close());
    const first = call(gateway);
    await eventually(() => provider.requests.length === 1);
    const others = Array.from({ length: 20 }, (_, index) => call(gateway, { stream: index % 2 === 0 }));
    await running(gateway, 21);
    release.resolve();
    expect((await first.response).statusCode).toBe(502);
    for (const { response } of others) expect((await response).statusCode).toBe(200);
    expect(provider.requests).toHaveLength(2);
  });

  test('a provider that stays down is asked a few times, not once for each call', async () => {
    const release = held();
    const provider = await startProvider(
      'chat-completions',
      async () => {
        await release.promise;
        return 'by itself' as const;
      },
      failing(500),
    );
    onTestFinished(() => provider.close());
    const gateway = await startGateway({
      plugins: [cache()],
      channels: [provider.channel],
      health: { failures: 1_000 },
    });
    onTestFinished(() => gateway.close());
    const calls = Array.from({ length: 50 }, () => call(gateway));
    await running(gateway, 50);
    release.resolve();
    for (const { response } of calls) expect((await response).statusCode).toBe(502);
    expect(provider.requests.length).toBeLessThanOrEqual(3);
  });

  test('what the provider finds wrong with the request is told to all, after one request', async () => {
    const release = held();
    const provider = await startProvider(
      'chat-completions',
      async () => {
        await release.promise;
        return 'by itself' as const;
      },
      failing(400),
    );
    onTestFinished(() => provider.close());
    const gateway = await startGateway({ plugins: [cache()], channels: [provider.channel] });
    onTestFinished(() => gateway.close());
    const calls = Array.from({ length: 10 }, () => call(gateway));
    await running(gateway, 10);
    release.resolve();
    for (const { response } of calls) expect((await response).statusCode).toBe(400);
    expect(provider.requests).toHaveLength(1);
  });

  test('a stream that breaks off is not kept, and a client that wants no stream is answered all the same', async () => {
    const { gateway, provider, taps } = await started();
    const first = call(gateway, { stream: true });
    await eventually(() => taps.length === 1);
    taps[0]?.emit('One ');
    await eventually(() => wordsIn(first.text()) === 'One ');
    const whole = call(gateway);
    await running(gateway, 2);
    taps[0]?.cut();
    await first.body;
    await eventually(() => taps.length === 2);
    taps[1]?.cut();
    expect((await whole.response).statusCode).toBe(502);
    expect(provider.requests).toHaveLength(2);
  });
});

describe('slow readers', () => {
  const piece = 'x'.repeat(1_000);

  test('one that does not read keeps nobody else from a response that fits', async () => {
    const { gateway, taps } = await started({ maxEntryBytes: 32 * 1024 * 1024 });
    const slow = call(gateway, { stream: true, slowly: true });
    await eventually(() => taps.length === 1);
    const fast = call(gateway, { stream: true });
    await running(gateway, 2);
    for (let at = 0; at < 10_000; at += 1) taps[0]?.emit(piece);
    taps[0]?.end();
    expect(wordsIn(await fast.body)).toHaveLength(10_000_000);
    slow.leave();
  });

  test('of a response that is too long the provider is not read ahead of the slowest, and nothing is kept', async () => {
    const { gateway, provider, taps } = await started({ maxEntryBytes: 64 * 1024 });
    const slow = call(gateway, { stream: true, slowly: true });
    await eventually(() => taps.length === 1);
    const fast = call(gateway, { stream: true });
    await running(gateway, 2);
    const count = 40_000;
    let emitted = 0;
    const pour = setInterval(() => {
      for (let round = 0; round < 500 && emitted < count; round += 1) {
        emitted += 1;
        if (taps[0]?.emit(piece) === false) break;
      }
      if (emitted < count) return;
      clearInterval(pour);
      taps[0]?.end();
    }, 1);
    onTestFinished(() => clearInterval(pour));
    const response = await slow.response;
    let read = '';
    response.on('data', (chunk: string) => (read += chunk));
    response.resume();
    expect(wordsIn(await fast.body)).toHaveLength(count * piece.length);
    await eventually(() => wordsIn(read).length === count * piece.length);
    const again = call(gateway, { stream: true });
    await eventually(() => taps.length === 2);
    taps[1]?.end();
    await again.body;
    expect(provider.requests).toHaveLength(2);
  });
});

/* oxlint-disable vitest/no-conditional-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { call, formatNames, read, readError, voices } from './_wire.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;

/** Each request says in its model name which words it wants back, so that a mixed-up answer is noticed. */
beforeAll(async () => {
  upstream = await startUpstream(async (request, response) => {
    const voice =
      voices[
        request.url.includes('/chat/')
          ? 'chat-completions'
          : request.url.includes('/messages')
            ? 'messages'
            : 'generate-content'
      ];
    const asStream = request.url.includes('stream') || /"stream":\s*true/.test(request.body.toString());
    const name = /call-(\d+)-(\w+)/.exec(request.url + request.body.toString());
    const [number, fate] = [Number(name?.[1]), name?.[2]];
    const words = Array.from({ length: 20 }, (_, index) => ` ${number}.${index}`);
    if (fate === 'refused') {
      response
        .writeHead(400, { 'content-type': 'application/json' })
        .end(`{"error":{"message":"number ${number}","type":"invalid_request_error"}}`);
      return;
    }
    response.writeHead(200, { 'content-type': asStream ? 'text/event-stream' : 'application/json' });
    const bytes = Buffer.from(
      asStream ? voice.frames(words).join('') : JSON.stringify(voice.whole(words.join(''))),
    );
    for (let at = 0; at < bytes.length; at += 173) {
      response.write(bytes.subarray(at, at + 173));
      if ((at + number) % 3 === 0) await new Promise((resolve) => setTimeout(resolve, number % 7));
    }
    if (fate === 'cut') response.socket?.destroy();
    else response.end();
  });
  gateway = await startGateway({
    channels: formatNames.map((name) => voices[name].channel(upstream.url, { models: [`${name}-*`] })),
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

test('200 mixed calls at once all get their own answer', async () => {
  const calls = Array.from({ length: 200 }, (_, number) => {
    const client = formatNames[number % 3] ?? 'messages';
    const channel = formatNames[Math.floor(number / 3) % 3] ?? 'messages';
    const stream = number % 2 === 0;
    const fate = number % 11 === 5 ? 'refused' : 'fine';
    return { number, client, channel, stream, fate, model: `${channel}-call-${number}-${fate}` };
  });
  const answers = await Promise.all(
    calls.map(({ client, model, stream }) => call(gateway, client, model, stream)),
  );
  for (const [index, { number, client, stream, fate }] of calls.entries()) {
    const answer = answers[index];
    if (answer === undefined) throw new Error('No answer.');
    if (fate === 'refused') {
      expect(readError(client, answer)).toEqual({ status: 400, message: `number ${number}` });
      continue;
    }
    expect(answer.status, answer.text).toBe(200);
    const { text, complete } = read(client, stream, answer);
    expect({ text, complete }).toEqual({
      text: Array.from({ length: 20 }, (_, word) => ` ${number}.${word}`).join(''),
      complete: true,
    });
  }
  expect(upstream.requests).toHaveLength(200);
  await expect.poll(() => gateway.lines.filter(({ plugin }) => plugin === 'logging').length).toBe(200);
  expect(new Set(gateway.lines.flatMap(({ plugin, id }) => (plugin === 'logging' ? [id] : []))).size).toBe(
    200,
  );
  expect(gateway.lines.filter(({ level }) => level === 'error')).toEqual([]);
});

test('a thousand calls one after the other leave no listener and no timer behind', async () => {
  const before = process.getActiveResourcesInfo().length;
  const warnings: string[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning.name);
  process.on('warning', onWarning);
  for (let number = 0; number < 1000; number += 1) {
    const client = formatNames[number % 3] ?? 'messages';
    const answer = await call(
      gateway,
      client,
      `${formatNames[Math.floor(number / 3) % 3]}-call-0-refused`,
      number % 2 === 0,
    );
    expect(answer.status).toBe(400);
  }
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
  await expect.poll(() => process.getActiveResourcesInfo().length).toBeLessThan(before + 50);
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import type { ApiKeys } from '../../core/state/api-keys/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { SocketClient } from '../support/websocket.ts';
import { fetchRaw, formatNames, read, readError, voices, type FormatName } from './_wire.ts';
import { eventually } from '../support/eventually.ts';

type Json = Record<string, unknown>;

/** Begins what it is asked for in its own format, and never ends it. */
let endless: ScriptedUpstream;
/** The gateway where keys are changed, and the one that serves: two processes on one database. */
let office: TestGateway;
let gateway: TestGateway;
const folder = mkdtempSync(join(tmpdir(), 'sluice-key-ends-'));

const formatOf = (url: string): FormatName =>
  url.includes('/messages')
    ? 'messages'
    : url.includes('enerateContent')
      ? 'generate-content'
      : 'chat-completions';

function begin(response: ServerResponse, format: FormatName): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const voice = voices[format];
  for (const frame of voice.frames(['so ', 'far']).slice(0, -voice.ending)) response.write(frame);
}

beforeAll(async () => {
  endless = await startUpstream(({ url, body }, response) => {
    // A whole answer never comes.
    if (body.toString().includes('"stream":true') || url.includes('streamGenerateContent'))
      begin(response, formatOf(url));
  });
  const start = () =>
    startGateway({
      database: `sqlite:${join(folder, 'shared.db')}`,
      channels: formatNames.map((format) => voices[format].channel(endless.url)),
    });
  office = await start();
  gateway = await start();
});
afterAll(async () => {
  await gateway.close();
  await office.close();
  await endless.close();
  rmSync(folder, { recursive: true, force: true });
});

const ways: readonly (readonly [string, (keys: ApiKeys, id: string) => Promise<unknown>, RegExp])[] = [
  ['deleted', (keys, id) => keys.revoke(id), /deleted/],
  ['switched off', (keys, id) => keys.update(id, { enabled: false }), /switched off/],
  ['expired', (keys, id) => keys.update(id, { expiresAt: Date.now() - 1 }), /expired/],
];

/** A key that the serving gateway knows. */
async function known(): Promise<{ readonly id: string; readonly key: string }> {
  const { record, value } = await office.apiKeys.create({ name: 'brief' });
  expect((await gateway.apiKeys.lookUp(value))?.state).toBe('valid');
  return { id: record.id, key: value };
}

/** Waits until the provider has one more request than before. */
async function nextRequest(before: number) {
  return eventually(() => {
    const request = endless.requests.at(before);
    if (request === undefined) throw new Error('Nobody has asked the provider.');
    return request;
  });
}

async function beginCall(format: FormatName, model: string, stream: boolean, key: string) {
  const voice = voices[format];
  const before = endless.requests.length;
  const body = voice.body(model, stream);
  const path = voice.path(model, stream);
  const { promise: begins, resolve: begun } = Promise.withResolvers<void>();
  const answer = fetchRaw({ url: gateway.url, key }, path, { body, headers: voice.headers, begun });
  const request = await nextRequest(before);
  // Before its first word a stream could still be answered with a status.
  if (stream) await begins;
  return { answer, request };
}

const outcomes = async (keyId: string) => {
  const records = await eventually(async () => {
    const { records: found } = await openUsageLog(gateway.stores).page({ keyId }, 10);
    expect(found).not.toEqual([]);
    return found;
  });
  return records.map(({ ended, code }) => ({ ended, code }));
};

describe.each(ways)('a key that is %s at another gateway while calls of it run', (how, end, sentence) => {
  const combinations = formatNames.flatMap((format) =>
    formatNames
      .filter((channel) => how === 'deleted' || channel === format)
      .map((channel) => ({ format, model: voices[channel].model })),
  );

  test.each(combinations)(
    'ends a stream in the format of its client: $format over $model',
    async ({ format, model }) => {
      const { id, key } = await known();
      const { answer, request } = await beginCall(format, model, true, key);
      await end(office.apiKeys, id);
      const response = await answer;
      expect(response.status).toBe(200);
      const { text, complete, error } = read(format, true, response);
      expect({ complete, text }).toEqual({ complete: false, text: 'so far' });
      expect(JSON.stringify(error)).toMatch(sentence);
      await request.closed;
      expect(await outcomes(id)).toEqual([
        { ended: 'interrupted', code: expect.stringMatching(/^(invalid|disabled|expired)_api_key$/) },
      ]);
    },
  );

  test.each(formatNames)(
    'answers a call with 401 whose provider has said nothing yet: %s',
    async (format) => {
      const { id, key } = await known();
      const { answer, request } = await beginCall(format, voices[format].model, false, key);
      await end(office.apiKeys, id);
      const { status, message } = readError(format, await answer);
      expect(status).toBe(401);
      expect(message).toMatch(sentence);
      await request.closed;
    },
  );

  test('ends a Responses stream with an error, and then response.failed', async () => {
    const { id, key } = await known();
    const { promise: begins, resolve: begun } = Promise.withResolvers<void>();
    const answer = fetchRaw({ url: gateway.url, key }, '/v1/responses', {
      body: { model: 'via-messages', input: 'hi', stream: true },
      begun,
    });
    await begins;
    await end(office.apiKeys, id);
    const frames = parseSse((await answer).text);
    expect(frames.pop()?.data).toBe('[DONE]');
    const events = frames.map(({ data }) => JSON.parse(data) as Json);
    expect(events.at(-1)).toMatchObject({ type: 'response.failed' });
    expect(JSON.stringify(events.at(-1))).toMatch(sentence);
    expect(events.at(-2)).toMatchObject({ type: 'error' });
  });

  test('ends a response that is made in the background', async () => {
    const { id, key } = await known();
    const before = endless.requests.length;
    const answer = await fetchRaw({ url: gateway.url, key }, '/v1/responses', {
      body: { model: 'via-chat', input: 'hi', background: true },
    });
    expect(answer.status).toBe(200);
    const { closed } = await nextRequest(before);
    await end(office.apiKeys, id);
    await closed;
  });

  test('ends a call over a WebSocket with an error, and the connection with 1008', async () => {
    const { id, key } = await known();
    const before = endless.requests.length;
    const client = await SocketClient.open(`${gateway.url}/v1/responses`, {
      headers: { authorization: `Bearer ${key}` },
    });
    client.send({ type: 'response.create', model: 'via-chat', input: 'hi' });
    const { closed } = await nextRequest(before);
    await end(office.apiKeys, id);
    expect((await client.closed).code).toBe(1008);
    expect(JSON.stringify(client.messages)).toMatch(sentence);
    await closed;
  });
});

test('a key that is only changed leaves its streams alone', async () => {
  const { id, key } = await known();
  const { answer, request } = await beginCall('chat-completions', 'via-chat', true, key);
  await office.apiKeys.update(id, { name: 'renamed', models: ['via-*'] });
  await eventually(() => expect(gateway.apiKeys.find(key)?.key.name).toBe('renamed'));
  await new Promise((resolve) => setTimeout(resolve, 600));
  let open = true;
  void request.closed.then(() => (open = false));
  await new Promise((resolve) => setImmediate(resolve));
  expect(open).toBe(true);
  await office.apiKeys.revoke(id);
  await answer;
});

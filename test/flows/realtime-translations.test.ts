import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import xai from '../../channels/xai/index.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startRealtimeUpstream, type RealtimeUpstream } from '../support/realtime-upstream.ts';
import { refusedSocket, SocketClient } from '../support/websocket.ts';

type Json = Record<string, unknown>;

const model = 'gpt-realtime-translate';
/** Dollars of a second: 0.034 a minute. */
const perSecond = 0.034 / 60;
const append = (seconds: number): Json => ({
  type: 'session.input_audio_buffer.append',
  audio: Buffer.alloc(seconds * 48_000).toString('base64'),
});
const dollars = (amount: number) =>
  ({ unit: 'micro-dollar', period: 'total', amount: Math.round(amount * 1e6) }) as const;

let provider: RealtimeUpstream;
let gateway: TestGateway;

/** Answers as https://developers.openai.com/api/docs/guides/realtime-translation says. */
beforeAll(async () => {
  provider = await startRealtimeUpstream((session, message) => {
    if (message === undefined) {
      session.send({
        type: 'session.created',
        event_id: 'e1',
        session: { id: 's', type: 'translation', model },
      });
      return;
    }
    const { type } = JSON.parse(message.data.toString()) as Json;
    if (type === 'session.input_audio_buffer.append')
      session.send({
        type: 'session.output_transcript.delta',
        event_id: 'e2',
        delta: 'Hallo',
        elapsed_ms: 200,
      });
    if (type === 'session.close') {
      session.send({
        type: 'session.closed',
        event_id: 'e3',
        usage: { input_seconds: 10.2, output_seconds: 8 },
      });
      session.socket.close(1000);
    }
  });
  gateway = await startGateway({
    channels: [
      openai({ key: 'sk-upstream', baseUrl: provider.url, models: { [model]: model, interpreter: model } }),
      xai({ key: 'xai-key', baseUrl: provider.url, models: ['grok-voice-latest'] }),
      gemini({ key: 'g', baseUrl: provider.url, models: ['gemini-live'] }),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await provider.close();
});

async function keyed(...budgets: object[]): Promise<{ value: string; spent: () => Promise<number> }> {
  const { value, record } = await gateway.apiKeys.create({ name: 'speaker', budgets: budgets as never });
  return {
    value,
    spent: async () => {
      const [state] = await openLedger(gateway.stores).states(record.id, [dollars(1)]);
      return (state?.spent ?? 0) / 1e6;
    },
  };
}

const address = (query: string): string => `${gateway.url}/v1/realtime/translations${query}`;
const open = (key: string, name = model): Promise<SocketClient> =>
  SocketClient.open(address(`?model=${name}`), { headers: { authorization: `Bearer ${key}` } });

describe('a session that translates', () => {
  test('passes through at its own path, under the name that the client knows', async () => {
    const { value } = await keyed();
    const client = await open(value, 'interpreter');
    const [created] = await client.until(({ type }) => type === 'session.created');
    expect(created).toMatchObject({ session: { model: 'interpreter' } });
    expect(provider.sessions.at(-1)?.url).toBe(`/v1/realtime/translations?model=${model}`);
    expect(provider.sessions.at(-1)?.headers.authorization).toBe('Bearer sk-upstream');
    client.send({ type: 'session.update', event_id: 'mine', session: { model: 'another' } });
    const [error] = await client.until(({ type }) => type === 'error');
    expect(error).toMatchObject({ error: { param: 'session.model', event_id: 'mine' } });
    client.vanish();
  });

  test('costs the seconds that the provider counts in the end', async () => {
    const { value, spent } = await keyed(dollars(1));
    const client = await open(value);
    client.send(append(10));
    client.send({ type: 'session.close' });
    expect((await client.closed).code).toBe(1000);
    expect(client.messages.at(-1)).toMatchObject({ type: 'session.closed' });
    await expect.poll(spent).toBeCloseTo(10.2 * perSecond, 5);
  });

  test('costs the seconds that were sent where the client leaves without a word', async () => {
    const { value, spent } = await keyed(dollars(1));
    const client = await open(value);
    client.send(append(10));
    await client.until(({ type }) => type === 'session.output_transcript.delta');
    client.vanish();
    await expect.poll(spent).toBeCloseTo(10 * perSecond, 5);
  });

  test('ends when its budget is spent, before which nothing more is heard', async () => {
    const { value, spent } = await keyed(dollars(0.1));
    const client = await open(value);
    for (let count = 0; count < 40; count += 1) client.send(append(10));
    expect((await client.closed).code).toBe(1008);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', error: { code: 'insufficient_quota' } });
    expect(await spent()).toBeGreaterThan(0.03);
    expect(await spent()).toBeLessThanOrEqual(0.1);
    const headers = { authorization: `Bearer ${(await keyed(dollars(0.001))).value}` };
    expect(await refusedSocket(address(`?model=${model}`), { headers })).toMatchObject({ status: 429 });
  });

  test.each([
    ['', 400, { param: 'model' }],
    [`?model=${model}&intent=transcription`, 400, { param: 'intent' }],
    [`?call_id=c`, 400, { param: 'call_id' }],
    // Their sessions are conversations.
    ['?model=grok-voice-latest', 503, { param: 'model', code: 'endpoint_not_supported' }],
    ['?model=gemini-live', 503, { param: 'model', code: 'endpoint_not_supported' }],
  ])('is refused at %j: %d', async (query, status, error) => {
    const before = provider.sessions.length;
    const headers = { authorization: `Bearer ${gateway.key}` };
    expect(await refusedSocket(address(query), { headers })).toMatchObject({ status, body: { error } });
    expect(provider.sessions).toHaveLength(before);
  });
});

import { connect } from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { inWordsOfXai } from '../../channels/xai/sessions.ts';
import { XaiSessionWatch } from '../../channels/xai/session-watch.ts';
import xai from '../../channels/xai/index.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import {
  startRealtimeUpstream,
  type RealtimeUpstream,
  type SeenSession,
} from '../support/realtime-upstream.ts';
import { refusedSocket, SocketClient } from '../support/websocket.ts';

type Json = Record<string, unknown>;

/** Seconds of 16-bit sound with 24,000 samples each, in base64. */
const sound = (seconds: number): string => Buffer.alloc(seconds * 48_000).toString('base64');
const append = (seconds: number): Json => ({ type: 'input_audio_buffer.append', audio: sound(seconds) });
const textItem = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] };
const pushToTalk = { type: 'session.updated', session: { turn_detection: { type: null } } };
const dollars = (amount: number) =>
  ({ unit: 'micro-dollar', period: 'total', amount: Math.round(amount * 1e6) }) as const;

let provider: RealtimeUpstream;
let gateway: TestGateway;

/**
 * A session as xAI has it: `turn_detection` and `voice` in the session itself, and usage in tokens that cost nothing.
 * https://docs.x.ai/voice-realtime.ws.json
 */
function asXai(session: SeenSession, message: { readonly data: Buffer } | undefined): void {
  if (message === undefined) {
    session.send({
      type: 'session.created',
      session: { model: 'grok-voice-3.0', turn_detection: { type: null } },
    });
    session.send({ type: 'ping', timestamp: 1 });
    return;
  }
  const event = JSON.parse(message.data.toString()) as Json;
  if (event['type'] === 'session.update') {
    const { audio = {}, ...rest } = event['session'] as { audio?: Json };
    const { input = {}, output = {} } = audio as { input?: Json; output?: Json };
    if ('turn_detection' in input || 'voice' in output)
      session.send({ type: 'error', error: { type: 'invalid_request_error', message: 'unknown field' } });
    else session.send({ type: 'session.updated', session: { ...rest, audio } });
  }
  if (event['type'] === 'response.create') {
    session.send({ type: 'response.created', response: { id: 'r1', usage: {} } });
    session.send({
      type: 'response.output_audio.delta',
      response_id: 'r1',
      delta: sound(6),
      audio_duration_ms: 6000,
    });
    session.send({
      type: 'response.done',
      response: {
        id: 'r1',
        status: 'completed',
        usage: { input_tokens: 70, output_tokens: 30, total_tokens: 100 },
      },
    });
  }
}

beforeAll(async () => {
  provider = await startRealtimeUpstream(asXai);
  gateway = await startGateway({ channels: [xai({ key: 'xai-key', baseUrl: provider.url })] });
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

const open = (key: string, model = 'grok-voice-latest'): Promise<SocketClient> =>
  SocketClient.open(`${gateway.url}/v1/realtime?model=${model}`, {
    headers: { authorization: `Bearer ${key}` },
  });
const isDone = ({ type }: Json): boolean => type === 'response.done';

describe('a session at xAI', () => {
  test('takes the settings of the official OpenAI client', async () => {
    const { port } = new URL(gateway.url);
    const realtime = new OpenAIRealtimeWS(
      {
        model: 'grok-voice-latest',
        options: { createConnection: () => connect(Number(port), '127.0.0.1') },
      },
      new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1` }),
    );
    const events: Json[] = [];
    realtime.on('event', (event) => events.push(event as unknown as Json));
    realtime.on('error', (error) => events.push({ type: 'failure', error }));
    await expect.poll(() => events.map(({ type }) => type)).toContain('session.created');
    realtime.send({
      type: 'session.update',
      session: {
        type: 'realtime',
        audio: { input: { turn_detection: { type: 'server_vad' } }, output: { voice: 'eve' } },
      },
    });
    await expect.poll(() => events.map(({ type }) => type)).toContain('session.updated');
    expect(events.find(({ type }) => type === 'session.updated')).toMatchObject({
      session: { voice: 'eve', turn_detection: { type: 'server_vad', create_response: true } },
    });
    expect(events.map(({ type }) => type)).not.toContain('failure');
    const session = provider.sessions.at(-1);
    expect(session?.url).toBe('/v1/realtime?model=grok-voice-latest');
    expect(session?.headers.authorization).toBe('Bearer xai-key');
    realtime.close();
  });

  test('costs the audio of both sides and a fee for each item of text, tokens nothing', async () => {
    const { value, spent } = await keyed(dollars(1));
    const client = await open(value);
    client.send(append(3));
    client.send({ type: 'conversation.item.create', item: textItem });
    client.send({
      type: 'conversation.item.create',
      item: { type: 'function_call_output', call_id: 'c', output: '{}' },
    });
    client.send({
      type: 'conversation.item.create',
      item: { type: 'message', role: 'user', content: [{ type: 'input_audio', audio: sound(3) }] },
    });
    client.send({ type: 'response.create' });
    await client.until(isDone);
    client.socket.close(1000);
    await client.closed;
    // 3 s + 3 s sent, 6 s received at 0.08 dollars a minute, and 0.004 for the one item of text.
    await expect.poll(spent).toBeCloseTo((12 * 0.08) / 60 + 0.004, 5);
  });

  test('is charged for audio that nothing answers, and ended when that spends the budget', async () => {
    const { value, spent } = await keyed(dollars(0.2));
    const client = await open(value);
    for (let count = 0; count < 40; count += 1) client.send(append(10));
    expect((await client.closed).code).toBe(1008);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', error: { code: 'insufficient_quota' } });
    const cost = await spent();
    expect(cost).toBeGreaterThan(0.05);
    expect(cost).toBeLessThanOrEqual(0.2);
  });

  test('reserves what is charged for at once', async () => {
    const { value } = await keyed(dollars(0.01));
    const url = `${gateway.url}/v1/realtime?model=grok-voice-latest`;
    const refused = await refusedSocket(url, { headers: { authorization: `Bearer ${value}` } });
    expect(refused).toMatchObject({ status: 429, body: { error: { code: 'insufficient_quota' } } });
  });

  test('is refused for a model without a voice, which xAI would answer with one', async () => {
    const before = provider.sessions.length;
    const url = `${gateway.url}/v1/realtime?model=grok-4.3`;
    const refused = await refusedSocket(url, { headers: { authorization: `Bearer ${gateway.key}` } });
    expect(refused.body).toMatchObject({ error: { param: 'model' } });
    expect(provider.sessions).toHaveLength(before);
  });

  test('is refused tools that cost more for a key with a budget', async () => {
    const { value } = await keyed(dollars(1));
    const client = await open(value);
    client.send({ type: 'session.update', event_id: 'mine', session: { tools: [{ type: 'web_search' }] } });
    const [error] = await client.until(({ type }) => type === 'error');
    expect(error).toMatchObject({ error: { event_id: 'mine' } });
    client.vanish();
  });
});

describe('the settings of a session', () => {
  const sent = (event: unknown): unknown => {
    const data = Buffer.from(JSON.stringify(event));
    return JSON.parse(inWordsOfXai({ data, binary: false }).data.toString());
  };

  test.each([
    [
      { audio: { input: { format: { type: 'audio/pcm', rate: 24_000 }, turn_detection: null } } },
      { audio: { input: { format: { type: 'audio/pcm', rate: 24_000 } } }, turn_detection: { type: null } },
    ],
    [{ audio: { output: { voice: 'ara' } } }, { voice: 'ara' }],
    [
      { voice: 'rex', turn_detection: { type: 'server_vad', create_response: false } },
      { voice: 'rex', turn_detection: { type: 'server_vad', create_response: false } },
    ],
    [{ instructions: 'Hi' }, { instructions: 'Hi' }],
  ])('%j become %j', (session, expected) => {
    expect(sent({ type: 'session.update', session })).toEqual({ type: 'session.update', session: expected });
  });

  test('modalities of a response have the name that xAI gives them', () => {
    expect(sent({ type: 'response.create', response: { output_modalities: ['text'] } })).toEqual({
      type: 'response.create',
      response: { modalities: ['text'] },
    });
  });

  test.each([append(1), { type: 'response.create' }, { type: 'session.update', session: 7 }, []])(
    'nothing else is changed',
    (event) => {
      const message = { data: Buffer.from(JSON.stringify(event)), binary: false };
      expect(inWordsOfXai(message)).toBe(message);
    },
  );
});

describe('the time of a session', () => {
  let now = 0;
  beforeEach(() => (now = 0));
  const text = (event: unknown) => ({ data: Buffer.from(JSON.stringify(event)), binary: false });
  const watch = () => new XaiSessionWatch({ read: () => undefined, unfinished: undefined }, () => now);
  const timed = text({ type: 'session.created', session: { turn_detection: { type: 'server_vad' } } });
  const ping = text({ type: 'ping' });

  test('counts with turn detection, whatever is said', () => {
    const one = watch();
    expect(one.read(timed)).toBeUndefined();
    now = 29_000;
    expect(one.read(ping)).toBeUndefined();
    now = 31_000;
    expect(one.read(ping)).toMatchObject({ input: 0, units: { seconds: 31, calls: 0 } });
    now = 36_000;
    expect(one.unreported).toMatchObject({ units: { seconds: 5 } });
    expect(one.unreported).toBeUndefined();
  });

  test('is that of the audio where more of it is sent than time passes', () => {
    const one = watch();
    one.read(timed);
    now = 5_000;
    expect(one.sent(text(append(40)))?.units?.seconds).toBeCloseTo(40, 3);
    now = 35_000;
    expect(one.sent(text(append(1)))).toBeUndefined();
    now = 50_000;
    expect(one.unreported?.units?.seconds).toBeCloseTo(10, 1);
  });

  test('does not count without turn detection, where audio does, in the format of the session', () => {
    const one = watch();
    one.read(text(pushToTalk));
    now = 100_000;
    expect(one.read(ping)).toBeUndefined();
    expect(one.unreported).toBeUndefined();
    one.sent(
      text({ type: 'session.update', session: { audio: { input: { format: { type: 'audio/pcmu' } } } } }),
    );
    one.sent(text({ audio: Buffer.alloc(16_000).toString('base64'), type: 'input_audio_buffer.append' }));
    one.read({ data: Buffer.alloc(48_000), binary: true });
    expect(one.unreported?.units?.seconds).toBeCloseTo(3, 3);
  });

  test('does not become cheaper by the word of the client alone', () => {
    const one = watch();
    one.read(timed);
    one.sent(text({ type: 'session.update', session: { turn_detection: null } }));
    now = 20_000;
    expect(one.unreported).toMatchObject({ units: { seconds: 20 } });
    one.read(text(pushToTalk));
    now = 90_000;
    expect(one.unreported).toBeUndefined();
  });

  test('hides in no other member', () => {
    const one = watch();
    one.read(text(pushToTalk));
    one.sent(text({ type: 'input_audio_buffer.append', x: { audio: 'AAAA' }, audio: sound(2) }));
    expect(one.unreported?.units?.seconds).toBeCloseTo(2, 2);
  });

  test('and ten items of text are told together', () => {
    const one = watch();
    one.read(text(pushToTalk));
    const item = text({ type: 'conversation.item.create', item: textItem });
    for (let count = 0; count < 9; count += 1) expect(one.sent(item)).toBeUndefined();
    expect(one.sent(item)).toMatchObject({ units: { calls: 10 } });
  });
});

import { connect } from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeTranslationWS } from 'openai/realtime/translations/ws';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import type { RealtimeServerEvent, RealtimeTranslationServerEvent } from 'openai/resources/realtime/realtime';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import demo from '../../channels/demo/index.ts';
import openai from '../../channels/openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

let behind: TestGateway;
let gateway: TestGateway;

beforeAll(async () => {
  behind = await startGateway({ channels: [demo()] });
  gateway = await startGateway({
    channels: [
      demo(),
      openai({ key: behind.key, baseUrl: `${behind.url}/v1`, models: { 'over the wire': 'demo' } }),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await behind.close();
});

/** Answered by the gateway itself, and by a provider behind a socket. */
const models = ['demo', 'over the wire'];

/** The official client. It insists on wss, which ends at the operator's proxy: here it is given the connection behind that. */
async function session(model = 'demo'): Promise<{
  readonly realtime: OpenAIRealtimeWS;
  until(type: RealtimeServerEvent['type']): Promise<RealtimeServerEvent>;
  types(): string[];
}> {
  const { port } = new URL(gateway.url);
  const client = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1` });
  const realtime = new OpenAIRealtimeWS(
    { model, options: { createConnection: () => connect(Number(port), '127.0.0.1') } },
    client,
  );
  const events: RealtimeServerEvent[] = [];
  const errors: Error[] = [];
  realtime.on('event', (event) => events.push(event));
  realtime.on('error', (error) => errors.push(error));
  return {
    realtime,
    types: () => events.map(({ type }) => type),
    async until(type) {
      await expect
        .poll(() => [events.some((event) => event.type === type), ...errors], { interval: 2 })
        .toEqual([true]);
      const found = events.findLast((event) => event.type === type);
      if (found === undefined) throw new Error('It went away.');
      return found;
    },
  };
}

test.each(models)('the official client gets a text (%s)', async (model) => {
  const { realtime, until, types } = await session(model);
  await until('session.created');
  realtime.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } });
  await until('session.updated');
  realtime.send({
    type: 'conversation.item.create',
    item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
  });
  realtime.send({ type: 'response.create' });
  const text = await until('response.output_text.done');
  expect(text).toMatchObject({ text: 'You said: Hi' });
  expect(await until('response.done')).toMatchObject({ response: { status: 'completed' } });
  expect(types()).toContain('response.output_text.delta');
  realtime.close();
});

test.each(models)(
  'the official client calls a tool, gives its result, and gets an answer (%s)',
  async (model) => {
    const { realtime, until } = await session(model);
    await until('session.created');
    const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    realtime.send({
      type: 'session.update',
      session: {
        type: 'realtime',
        output_modalities: ['text'],
        tools: [{ type: 'function', name: 'weather', parameters }],
      },
    });
    realtime.send({
      type: 'conversation.item.create',
      item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'call weather' }] },
    });
    realtime.send({ type: 'response.create' });
    const called = await until('response.function_call_arguments.done');
    expect(called).toMatchObject({ name: 'weather', arguments: expect.stringContaining('"city"') });
    if (called.type !== 'response.function_call_arguments.done') throw new Error('It was another event.');
    realtime.send({
      type: 'conversation.item.create',
      item: { type: 'function_call_output', call_id: called.call_id, output: 'sunny' },
    });
    realtime.send({ type: 'response.create' });
    expect(await until('response.output_text.done')).toMatchObject({ text: 'The tool returned: sunny' });
    realtime.close();
  },
);

test.each(models)('the official client sends sound and gets sound (%s)', async (model) => {
  const { realtime, until } = await session(model);
  await until('session.created');
  realtime.send({
    type: 'session.update',
    session: {
      type: 'realtime',
      audio: { input: { transcription: { model: 'demo' }, turn_detection: null } },
    },
  });
  const second = Buffer.alloc(48_000).toString('base64');
  for (let count = 0; count < 3; count += 1)
    realtime.send({ type: 'input_audio_buffer.append', audio: second });
  realtime.send({ type: 'input_audio_buffer.commit' });
  expect(await until('conversation.item.input_audio_transcription.completed')).toMatchObject({
    transcript: '144000 bytes of sound',
  });
  realtime.send({ type: 'response.create' });
  await until('response.output_audio.delta');
  expect(await until('response.done')).toMatchObject({
    response: { usage: { input_token_details: { audio_tokens: 60 } } },
  });
  realtime.close();
});

test.each(models)('the official client has its speech translated, to the end (%s)', async (model) => {
  const { port } = new URL(gateway.url);
  const client = new OpenAI({ apiKey: gateway.key, baseURL: gateway.url.replace('http', 'https') + '/v1' });
  const createConnection = () => connect(Number(port), '127.0.0.1');
  const translation = await OpenAIRealtimeTranslationWS.create(client, {
    model,
    options: { createConnection } as object,
  });
  const events: RealtimeTranslationServerEvent[] = [];
  translation.on('event', (event) => events.push(event as RealtimeTranslationServerEvent));
  const types = () => events.map(({ type }) => type);
  await expect.poll(types).toEqual(['session.created']);
  expect(events[0]).toMatchObject({ session: { type: 'translation', model } });
  translation.send({ type: 'session.update', session: { audio: { output: { language: 'de' } } } });
  const audio = Buffer.alloc(9600, 1).toString('base64');
  translation.send({ type: 'session.input_audio_buffer.append', audio });
  await translation.finish({ timeoutMs: 5000 });
  expect(events.slice(1)).toMatchObject([
    { type: 'session.updated', session: { model, audio: { output: { language: 'de' } } } },
    { type: 'session.output_transcript.delta', delta: '9600 bytes of sound ', elapsed_ms: 200 },
    { type: 'session.output_audio.delta', delta: audio, sample_rate: 24_000, format: 'pcm16' },
    { type: 'session.closed' },
  ]);
});

test('the official client hears of an error, and its session goes on', async () => {
  const { realtime, until } = await session();
  await until('session.created');
  const failure = new Promise((resolve) => realtime.on('error', resolve));
  realtime.send({ type: 'response.cancel' });
  expect(await failure).toMatchObject({ error: { code: 'response_cancel_not_active' } });
  expect(realtime.socket.readyState).toBe(WebSocket.OPEN);
  realtime.close();
});

test('a browser, which can only offer subprotocols, is let in by one and told the other', async () => {
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/realtime?model=demo`, [
    'realtime',
    `openai-insecure-api-key.${gateway.key}`,
  ]);
  const first = await new Promise<string>((resolve, reject) => {
    socket.once('message', (data: Buffer) => resolve(data.toString()));
    socket.once('error', reject);
  });
  expect(socket.protocol).toBe('realtime');
  expect(JSON.parse(first)).toMatchObject({ type: 'session.created', session: { model: 'demo' } });
  socket.terminate();
});

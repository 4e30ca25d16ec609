import { connect } from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import gemini from '../../../channels/gemini.ts';
import vertex from '../../../channels/vertex/index.ts';
import { openLedger } from '../../../core/money/ledger/open.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startLive, type LiveConnection, type LiveUpstream } from '../../support/live-upstream.ts';
import { refusedSocket, SocketClient } from '../../support/websocket.ts';

type Json = Record<string, unknown>;

const model = 'gemini-3.8-live';
const sound = Buffer.alloc(4800, 1).toString('base64');
const usageMetadata = {
  promptTokenCount: 100,
  responseTokenCount: 40,
  thoughtsTokenCount: 10,
  totalTokenCount: 150,
  promptTokensDetails: [
    { modality: 'TEXT', tokenCount: 30 },
    { modality: 'AUDIO', tokenCount: 70 },
  ],
  responseTokensDetails: [{ modality: 'AUDIO', tokenCount: 40 }],
};
const audioOf = (data: string): Json => ({
  serverContent: { modelTurn: { parts: [{ inlineData: { mimeType: 'audio/pcm;rate=24000', data } }] } },
});
const transcriptionOf = (text: string): Json => ({ serverContent: { outputTranscription: { text } } });
const complete: Json = { serverContent: { turnComplete: true }, usageMetadata };

let provider: LiveUpstream;
let gateway: TestGateway;
/** Handler of the provider's messages. */
let act: (connection: LiveConnection, message: Json) => void;

/** Answers each turn with a sound and its transcript. */
function answers({ send }: LiveConnection, message: Json): void {
  const { clientContent, realtimeInput, toolResponse } = message as Record<string, Json | undefined>;
  const isTurnComplete =
    clientContent?.['turnComplete'] === true ||
    realtimeInput?.['activityEnd'] !== undefined ||
    toolResponse !== undefined;
  if (isTurnComplete)
    for (const one of [
      audioOf(sound),
      transcriptionOf('Hel'),
      transcriptionOf('lo'),
      { serverContent: { generationComplete: true } },
      complete,
    ])
      send(one);
}

beforeEach(async () => {
  act = answers;
  provider = await startLive((connection, message) => act(connection, message));
  gateway = await startGateway({
    channels: [gemini({ key: 'google-key', baseUrl: `${provider.url}/v1beta`, models: ['gemini-*'] })],
  });
});
afterEach(async () => {
  await gateway.close();
  await provider.close();
});

const open = (name = model, key = gateway.key): Promise<SocketClient> =>
  SocketClient.open(`${gateway.url}/v1/realtime?model=${name}`, {
    headers: { authorization: `Bearer ${key}` },
  });
const text = (value: string): Json => ({
  type: 'conversation.item.create',
  item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: value }] },
});
const respond = { type: 'response.create' };
const of =
  (...types: string[]) =>
  ({ type }: Json): boolean =>
    types.includes(String(type));
const sent = (): Json[] => provider.connections.at(-1)?.messages ?? [];
const setup = (): Json => provider.connections.at(-1)?.setup ?? {};

describe('a session over the Live API', () => {
  test('gives the official client sound, its transcript, and tokens by what they stand for', async () => {
    const { port } = new URL(gateway.url);
    const realtime = new OpenAIRealtimeWS(
      { model, options: { createConnection: () => connect(Number(port), '127.0.0.1') } },
      new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1` }),
    );
    const events: Json[] = [];
    realtime.on('event', (event) => events.push(event as unknown as Json));
    realtime.on('error', (error) => events.push({ type: 'failure', error }));
    const until = async (type: string): Promise<void> => {
      await expect.poll(() => events.map((event) => event['type'])).toContain(type);
    };
    await until('session.created');
    realtime.send({
      type: 'session.update',
      session: {
        type: 'realtime',
        instructions: 'Be short.',
        audio: {
          input: { transcription: { model: 'whisper-1', language: 'en' } },
          output: { voice: 'Kore' },
        },
        tools: [
          {
            type: 'function',
            name: 'look',
            parameters: { type: 'object', properties: { at: { type: 'string' } } },
          },
        ],
      },
    });
    await until('session.updated');
    realtime.send({
      type: 'conversation.item.create',
      item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
    });
    realtime.send({ type: 'response.create' });
    await until('response.done');
    expect(events.map(({ type }) => type)).toEqual([
      'session.created',
      'session.updated',
      'conversation.item.added',
      'conversation.item.done',
      'response.created',
      'response.output_item.added',
      'conversation.item.added',
      'response.content_part.added',
      'response.output_audio.delta',
      'response.output_audio_transcript.delta',
      'response.output_audio_transcript.delta',
      'response.output_audio.done',
      'response.output_audio_transcript.done',
      'response.content_part.done',
      'conversation.item.done',
      'response.output_item.done',
      'response.done',
    ]);
    expect(events.find(of('response.output_audio.delta'))).toMatchObject({ delta: sound });
    expect(events.at(-1)).toMatchObject({
      response: {
        status: 'completed',
        output: [{ role: 'assistant', content: [{ type: 'output_audio', transcript: 'Hello' }] }],
        usage: {
          input_tokens: 100,
          output_tokens: 50,
          total_tokens: 150,
          input_token_details: { text_tokens: 30, audio_tokens: 70, cached_tokens: 0 },
          output_token_details: { text_tokens: 10, audio_tokens: 40, reasoning_tokens: 10 },
        },
      },
    });
    const [connection] = provider.connections;
    expect(connection?.url).toBe(
      '/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=google-key',
    );
    expect(connection?.setup).toEqual({
      model: `models/${model}`,
      generationConfig: {
        responseModalities: ['AUDIO'],
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
      },
      systemInstruction: { parts: [{ text: 'Be short.' }] },
      tools: [
        {
          functionDeclarations: [
            {
              name: 'look',
              parameters: { type: 'OBJECT', properties: { at: { type: 'STRING' } } },
              behavior: 'BLOCKING',
            },
          ],
        },
      ],
      realtimeInputConfig: { automaticActivityDetection: {} },
      inputAudioTranscription: { languageCodes: ['en'] },
      outputAudioTranscription: {},
      contextWindowCompression: { slidingWindow: {} },
      sessionResumption: {},
    });
    expect(connection?.messages).toEqual([
      { clientContent: { turns: [{ role: 'user', parts: [{ text: 'Hi' }] }], turnComplete: true } },
    ]);
    realtime.close();
  });

  test('takes sound in the rate of the client, and a turn that the client ends', async () => {
    const client = await open();
    client.send({ type: 'session.update', session: { audio: { input: { turn_detection: null } } } });
    client.send({ type: 'input_audio_buffer.append', audio: sound });
    client.send({ type: 'input_audio_buffer.append', audio: sound });
    client.send({ type: 'input_audio_buffer.commit' });
    client.send(respond);
    await client.until(of('response.done'));
    const piece = { realtimeInput: { audio: { data: sound, mimeType: 'audio/pcm;rate=24000' } } };
    expect(sent()).toEqual([
      { realtimeInput: { activityStart: {} } },
      piece,
      piece,
      { realtimeInput: { activityEnd: {} } },
    ]);
    const types = client.messages.map(({ type }) => type);
    expect(types.indexOf('input_audio_buffer.committed')).toBeLessThan(types.indexOf('response.created'));
    client.vanish();
  });

  test('takes and gives G.711 at 8,000 samples a second', async () => {
    const client = await open();
    const format = { type: 'audio/pcmu' };
    client.send({
      type: 'session.update',
      session: { audio: { input: { format, turn_detection: null }, output: { format } } },
    });
    client.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(160, 0xff).toString('base64') });
    client.send(respond);
    await client.until(of('response.done'));
    expect(sent()[1]).toEqual({
      realtimeInput: {
        audio: { data: Buffer.alloc(320).toString('base64'), mimeType: 'audio/pcm;rate=8000' },
      },
    });
    const [delta] = await client.until(of('response.output_audio.delta'));
    expect(Buffer.from(String(delta?.['delta']), 'base64')).toHaveLength(800);
    client.vanish();
  });

  test('takes images, and sound that stands in a message, in the rate that a turn has', async () => {
    const client = await open();
    client.send({
      type: 'conversation.item.create',
      item: {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_image', image_url: 'data:image/png;base64,aGk=' },
          { type: 'input_audio', audio: sound },
        ],
      },
    });
    client.send(text('And this?'));
    client.send(respond);
    await client.until(of('response.done'));
    expect(sent()).toEqual([
      {
        clientContent: {
          turns: [
            {
              role: 'user',
              parts: [
                { inlineData: { mimeType: 'image/png', data: 'aGk=' } },
                { inlineData: { mimeType: 'audio/pcm;rate=16000', data: expect.any(String) } },
              ],
            },
          ],
          turnComplete: false,
        },
      },
      { clientContent: { turns: [{ role: 'user', parts: [{ text: 'And this?' }] }], turnComplete: true } },
    ]);
    client.vanish();
  });

  test('writes where the client wants text', async () => {
    act = ({ send }, { clientContent }) => {
      if (clientContent === undefined) return;
      send({
        serverContent: { modelTurn: { parts: [{ text: 'thinking', thought: true }, { text: 'Hi' }] } },
      });
      send(complete);
    };
    const client = await open();
    client.send({ type: 'session.update', session: { output_modalities: ['text'], max_output_tokens: 50 } });
    client.send(text('Hi'));
    client.send(respond);
    const [done] = await client.until(of('response.done'));
    expect(done).toMatchObject({
      response: { output: [{ content: [{ type: 'output_text', text: 'Hi' }] }] },
    });
    expect(setup()['generationConfig']).toEqual({ responseModalities: ['TEXT'], maxOutputTokens: 50 });
    client.vanish();
  });

  test('calls functions, and goes on with their results, without a further wish', async () => {
    act = (connection, message) => {
      if (message['clientContent'] !== undefined)
        connection.send({ toolCall: { functionCalls: [{ id: 'f1', name: 'look', args: { at: 'me' } }] } });
      else answers(connection, message);
    };
    const client = await open();
    client.send({ type: 'session.update', session: { tools: [{ type: 'function', name: 'look' }] } });
    client.send(text('Look'));
    client.send(respond);
    const [first] = await client.until(of('response.done'));
    expect(first).toMatchObject({
      response: {
        output: [{ type: 'function_call', name: 'look', call_id: 'f1', arguments: '{"at":"me"}' }],
      },
    });
    client.send({
      type: 'conversation.item.create',
      item: { type: 'function_call_output', call_id: 'f1', output: 'seen' },
    });
    client.send(respond);
    const [, second] = await client.until(of('response.done'), 2);
    expect(second).toMatchObject({ response: { status: 'completed', usage: { input_tokens: 100 } } });
    expect(sent().slice(1)).toEqual([
      { toolResponse: { functionResponses: [{ id: 'f1', name: 'look', response: { output: 'seen' } }] } },
    ]);
    client.send({
      type: 'conversation.item.create',
      item: { type: 'function_call_output', call_id: 'f1', output: 'again' },
    });
    const [error] = await client.until(of('error'));
    expect(error).toMatchObject({ error: { param: 'item.call_id' } });
    client.vanish();
  });

  test('tells of speech that interrupts, and transcribes what is said', async () => {
    act = ({ send }, { realtimeInput }) => {
      if (realtimeInput === undefined) return;
      for (const one of [
        { serverContent: { inputTranscription: { text: 'How ' } } },
        { serverContent: { inputTranscription: { text: 'are you?', finished: true } } },
        audioOf(sound),
        transcriptionOf('I'),
        { serverContent: { interrupted: true } },
        complete,
      ])
        send(one);
    };
    const client = await open();
    client.send({
      type: 'session.update',
      session: { audio: { input: { transcription: { model: 'any' } } } },
    });
    client.send({ type: 'input_audio_buffer.append', audio: sound });
    const [done] = await client.until(of('response.done'));
    expect(done).toMatchObject({
      response: { status: 'cancelled', status_details: { type: 'cancelled', reason: 'turn_detected' } },
    });
    const [transcription] = await client.until(of('conversation.item.input_audio_transcription.completed'));
    expect(transcription).toMatchObject({ transcript: 'How are you?' });
    const types = client.messages.map(({ type }) => type);
    expect(types.indexOf('input_audio_buffer.speech_started')).toBeLessThan(types.indexOf('response.done'));
    client.vanish();
  });

  test('that is cancelled is silent, and what was used of it is charged', async () => {
    act = ({ send }, { clientContent }) => {
      if (clientContent !== undefined) send(audioOf(sound));
    };
    const client = await open();
    client.send(text('Talk'));
    client.send(respond);
    await client.until(of('response.output_audio.delta'));
    client.send({ type: 'response.cancel' });
    const [done] = await client.until(of('response.done'));
    expect(done).toMatchObject({ response: { status: 'cancelled', usage: { input_tokens: 0 } } });
    provider.connections[0]?.send(audioOf(sound));
    provider.connections[0]?.send(complete);
    act = answers;
    client.send(text('Go on'));
    client.send(respond);
    await client.until(of('response.done'), 2);
    expect(client.messages.filter(of('response.output_audio.delta'))).toHaveLength(2);
    client.vanish();
  });
});

describe('what there is no counterpart for', () => {
  test.each([
    [
      { audio: { output: { voice: 'alloy', speed: 1.5 } } },
      ['session.audio.output.voice', 'session.audio.output.speed'],
    ],
    [{ tool_choice: 'required', prompt: { id: 'p' } }, ['session.prompt', 'session.tool_choice']],
    [{ tools: [{ type: 'mcp', server_label: 'x' }] }, ['session.tools']],
    [
      { audio: { input: { noise_reduction: { type: 'near_field' } } } },
      ['session.audio.input.noise_reduction'],
    ],
  ])('%j is named in an error, and the rest holds', async (session, lost) => {
    const client = await open();
    client.send({
      type: 'session.update',
      event_id: 'mine',
      session: { ...session, instructions: 'Still.' },
    });
    const [error] = await client.until(of('error'));
    expect(error).toMatchObject({
      error: { code: 'unsupported_parameter', param: lost[0], event_id: 'mine' },
    });
    for (const name of lost) expect(JSON.stringify(error)).toContain(name);
    const [updated] = await client.until(of('session.updated'));
    expect(updated).toMatchObject({ session: { instructions: 'Still.' } });
    client.vanish();
  });

  test.each([
    { type: 'conversation.item.delete', item_id: 'x' },
    { type: 'session.update', session: { output_modalities: ['text', 'audio'] } },
    { type: 'session.update', session: { audio: { input: { format: { type: 'audio/opus' } } } } },
    {
      type: 'conversation.item.create',
      item: {
        type: 'message',
        role: 'user',
        content: [{ type: 'input_image', image_url: 'https://x/y.png' }],
      },
    },
    { type: 'response.create', response: { conversation: 'none' } },
    { type: 'input_audio_buffer.append', audio: 7 },
    { type: 'input_audio_buffer.commit' },
    { type: 'response.cancel' },
    [],
  ])('%j is an error, and the session goes on', async (message) => {
    const client = await open();
    client.send(message);
    await client.until(of('error'));
    client.send(text('Hi'));
    client.send(respond);
    expect(await client.until(of('response.done'))).toHaveLength(1);
    client.vanish();
  });

  test('settings that come when the conversation has begun are refused, unless they are the same', async () => {
    const client = await open();
    client.send(text('Hi'));
    client.send(respond);
    await client.until(of('response.done'));
    client.send({ type: 'session.update', session: { instructions: '' } });
    await client.until(of('session.updated'));
    client.send({ type: 'session.update', session: { instructions: 'Other.' } });
    const [error] = await client.until(of('error'));
    expect(error).toMatchObject({ error: { param: 'session' } });
    client.vanish();
  });

  test('sessions of the beta protocol, and those that only transcribe, are refused', async () => {
    for (const [query, headers] of [
      [`model=${model}`, { 'openai-beta': 'realtime=v1' }],
      [`intent=transcription&model=${model}`, {}],
    ] as const) {
      const refused = await refusedSocket(`${gateway.url}/v1/realtime?${query}`, {
        headers: { authorization: `Bearer ${gateway.key}`, ...headers },
      });
      expect(refused.status).toBe(400);
    }
    expect(provider.connections).toHaveLength(0);
  });
});

describe('a connection that ends', () => {
  test('because the provider knows no such model: an error event, and its close', async () => {
    const client = await open('gemini-nothing');
    client.send(text('Hi'));
    client.send(respond);
    expect((await client.closed).code).toBe(1008);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', error: { code: 'invalid_value' } });
  });

  test('because of the key of the channel: clients are not told of it', async () => {
    act = ({ close }) => close(1007, 'API key not valid. Please pass a valid API key.');
    const client = await open();
    client.send(text('Hi'));
    client.send(respond);
    const { reason } = await client.closed;
    expect(reason + JSON.stringify(client.messages)).not.toMatch(/API key/);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error' });
  });

  test('because its time is over: the session goes on over a new one', async () => {
    act = (connection, message) => {
      answers(connection, message);
      if (message['clientContent'] === undefined || provider.connections.length > 1) return;
      connection.send({ sessionResumptionUpdate: { newHandle: 'h1', resumable: true } });
      connection.send({ goAway: { timeLeft: '5s' } });
    };
    const client = await open();
    client.send(text('Hi'));
    client.send(respond);
    await client.until(of('response.done'));
    client.send(text('Still there?'));
    client.send(respond);
    await client.until(of('response.done'), 2);
    expect(provider.connections).toHaveLength(2);
    expect(setup()).toMatchObject({ model: `models/${model}`, sessionResumption: { handle: 'h1' } });
    expect(sent()).toHaveLength(1);
    await provider.connections[0]?.closed;
    client.socket.close(1000);
    expect((await client.closed).code).toBe(1000);
    await provider.connections[1]?.closed;
  });
});

describe('a provider that ends each connection at once', () => {
  /** Ends every connection when it has accepted the settings, and after each answer. */
  function leaves(connection: LiveConnection): void {
    connection.send({
      sessionResumptionUpdate: { newHandle: `h${provider.connections.length}`, resumable: true },
    });
    connection.send({ goAway: { timeLeft: '5s' } });
  }

  test('is not dialled for ever: the session ends with an error', async () => {
    act = (connection, message) => {
      if (message['setup'] === undefined) return;
      leaves(connection);
      connection.close(1001, 'The time limit was reached.');
    };
    const client = await open();
    client.send(text('Hi'));
    client.send(respond);
    await client.closed;
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', error: { code: 'upstream_error' } });
    const { length } = provider.connections;
    expect(length).toBeGreaterThan(1);
    expect(length).toBeLessThanOrEqual(5);
  });

  test('goes on as long as it answers', async () => {
    act = (connection, message) => {
      answers(connection, message);
      if (message['clientContent'] !== undefined) leaves(connection);
    };
    const client = await open();
    for (let round = 1; round <= 8; round += 1) {
      client.send(text('Hi'));
      client.send(respond);
      // oxlint-disable-next-line no-await-in-loop -- one turn after the other
      await client.until(of('response.done'), round);
    }
    expect(provider.connections.length).toBeGreaterThanOrEqual(8);
    client.socket.close(1000);
    expect((await client.closed).code).toBe(1000);
  });
});

describe('what it costs', () => {
  const budget = (amount: number) => ({ unit: 'micro-dollar', period: 'total', amount }) as const;

  test('tokens at the price of what they stand for, for each response', async () => {
    const { value, record } = await gateway.apiKeys.create({ name: 'k', budgets: [budget(1_000_000)] });
    const client = await open(model, value);
    client.send(text('Hi'));
    client.send(respond);
    await client.until(of('response.done'));
    client.socket.close(1000);
    await client.closed;
    const spent = async (): Promise<number> => {
      const [state] = await openLedger(gateway.stores).states(record.id, [budget(1_000_000)]);
      return state?.spent ?? 0;
    };
    // 30 of text at 0.75, 70 of sound at 3, 10 of thoughts at 12 as they have no price of their own, 40 of sound at 12 dollars a million.
    await expect.poll(spent).toBeGreaterThan(0);
    expect(await spent()).toBe(Math.ceil(30 * 0.75 + 70 * 3 + 10 * 12 + 40 * 12));
  });

  test('a client that leaves with the calls, before it gives their results, pays too', async () => {
    act = ({ send }, { clientContent }) => {
      if (clientContent !== undefined)
        send({ toolCall: { functionCalls: [{ id: 'f', name: 'look', args: {} }] } });
    };
    const { value, record } = await gateway.apiKeys.create({
      name: 'k',
      budgets: [{ unit: 'token', period: 'total', amount: 100_000 }],
    });
    const client = await open(model, value);
    client.send(text('Look'));
    client.send(respond);
    await client.until(of('response.done'));
    client.vanish();
    await expect
      .poll(async () => {
        const [state] = await openLedger(gateway.stores).states(record.id, [
          { unit: 'token', period: 'total', amount: 100_000 },
        ]);
        return state?.spent ?? 0;
      })
      .toBeGreaterThan(0);
  });

  test('a budget that is spent ends the session', async () => {
    const { value } = await gateway.apiKeys.create({
      name: 'k',
      budgets: [{ unit: 'token', period: 'total', amount: 8_200 }],
    });
    const client = await open(model, value);
    client.send(text('Hi'));
    client.send(respond);
    expect((await client.closed).code).toBe(1008);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', error: { code: 'insufficient_quota' } });
  });
});

test('Vertex AI is asked at its own address, for its own name of the model, and gets no ids of calls', async () => {
  const there = await startLive(
    (connection, message) => {
      if (message['clientContent'] !== undefined)
        connection.send({ toolCall: { functionCalls: [{ id: 'f1', name: 'look', args: {} }] } });
      else answers(connection, message);
    },
    { vertex: true },
  );
  const other = await startGateway({ channels: [vertex({ key: 'express', baseUrl: `${there.url}/v1` })] });
  const client = await SocketClient.open(`${other.url}/v1/realtime?model=gemini-live-2.5-flash`, {
    headers: { authorization: `Bearer ${other.key}` },
  });
  client.send(text('Look'));
  client.send(respond);
  await client.until(of('response.done'));
  client.send({
    type: 'conversation.item.create',
    item: { type: 'function_call_output', call_id: 'f1', output: '{"a":1}' },
  });
  await client.until(of('response.done'), 2);
  const [connection] = there.connections;
  expect(connection?.url).toBe('/ws/google.cloud.aiplatform.v1.LlmBidiService/BidiGenerateContent');
  expect(connection?.headers['x-goog-api-key']).toBe('express');
  expect(connection?.setup['model']).toBe('publishers/google/models/gemini-live-2.5-flash');
  expect(connection?.messages.at(-1)).toEqual({
    toolResponse: { functionResponses: [{ name: 'look', response: { a: 1 } }] },
  });
  client.vanish();
  await other.close();
  await there.close();
});

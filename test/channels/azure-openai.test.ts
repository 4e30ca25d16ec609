import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import azureOpenai from '../../channels/azure-openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startRealtimeUpstream, type RealtimeUpstream } from '../support/realtime-upstream.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { SocketClient } from '../support/websocket.ts';

const answer = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});

describe('where a resource is asked', () => {
  let chats: ScriptedUpstream;
  let sessions: RealtimeUpstream;
  let gateway: TestGateway;

  beforeAll(async () => {
    chats = await startUpstream((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
    });
    sessions = await startRealtimeUpstream(() => {});
    const at = (url: string): string => new URL(url).origin;
    gateway = await startGateway({
      channels: [
        azureOpenai({
          id: 'chat v1',
          key: 'k1',
          baseUrl: `${chats.url}/openai/v1/`,
          models: { now: 'my chat' },
        }),
        azureOpenai({
          id: 'chat old',
          key: 'k2',
          baseUrl: chats.url,
          models: { before: 'my chat' },
          apiVersion: '2024-10-21',
        }),
        azureOpenai({ id: 'talk v1', key: 'k3', baseUrl: at(sessions.url), models: { talk: 'my talk' } }),
        azureOpenai({
          id: 'talk preview',
          key: 'k4',
          baseUrl: at(sessions.url),
          models: ['preview'],
          apiVersion: 'preview',
        }),
        azureOpenai({
          id: 'talk old',
          key: 'k5',
          baseUrl: at(sessions.url),
          models: { 'old talk': 'my talk' },
          apiVersion: '2025-04-01-preview',
        }),
      ],
    });
  });
  afterAll(async () => {
    await gateway.close();
    await chats.close();
    await sessions.close();
  });

  it.each([
    ['now', '/openai/v1/chat/completions', 'k1'],
    ['before', '/openai/deployments/my%20chat/chat/completions?api-version=2024-10-21', 'k2'],
  ])('chat with "%s"', async (model, url, key) => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }] }),
    });
    expect(response.status).toBe(200);
    const seen = chats.requests.at(-1);
    expect(seen?.url).toBe(url);
    expect(seen?.headers['api-key']).toBe(key);
    expect(seen?.headers.authorization).toBeUndefined();
    expect(JSON.parse(seen?.body.toString() ?? '')).toMatchObject({ model: 'my chat' });
  });

  it.each([
    ['talk', '/openai/v1/realtime?model=my+talk', 'k3'],
    ['preview', '/openai/v1/realtime?api-version=preview&model=preview', 'k4'],
    ['old talk', '/openai/realtime?api-version=2025-04-01-preview&deployment=my+talk', 'k5'],
  ])('a session with "%s"', async (model, url, key) => {
    const client = await SocketClient.open(`${gateway.url}/v1/realtime?model=${encodeURIComponent(model)}`, {
      headers: { authorization: `Bearer ${gateway.key}` },
    });
    const seen = sessions.sessions.at(-1);
    expect(seen?.url).toBe(url);
    expect(seen?.headers['api-key']).toBe(key);
    expect(seen?.headers.authorization).toBeUndefined();
    client.vanish();
  });
});

it('a resource that nobody has named is an error at the start', async () => {
  await expect(startGateway({ channels: [azureOpenai({ key: 'k', models: ['m'] })] })).rejects.toThrow(
    /"resource" is missing/,
  );
});

describe('what the content filter says', () => {
  const safe = {
    hate: { filtered: false, severity: 'safe' },
    violence: { filtered: false, severity: 'low' },
  };
  const prompt = [{ prompt_index: 0, content_filter_results: { ...safe, jailbreak: { detected: false } } }];
  const offsets = { check_offset: 44, start_offset: 44, end_offset: 198 };
  const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'gpt-4o' };
  const nameless = { id: '', object: '', created: 0, model: '' };
  /** https://learn.microsoft.com/en-us/azure/foundry/openai/concepts/content-streaming, with the filter that does not hold text back. */
  const chunks = [
    { ...nameless, choices: [], prompt_filter_results: prompt },
    {
      ...chunk,
      choices: [
        {
          index: 0,
          content_filter_results: {},
          delta: { role: 'assistant', content: '' },
          finish_reason: null,
        },
      ],
    },
    {
      ...chunk,
      choices: [{ index: 0, content_filter_results: safe, delta: { content: 'Hi' }, finish_reason: null }],
    },
    {
      ...nameless,
      choices: [
        { index: 0, content_filter_results: safe, content_filter_offsets: offsets, finish_reason: null },
      ],
    },
    { ...chunk, choices: [{ index: 0, content_filter_results: {}, delta: {}, finish_reason: 'stop' }] },
  ];
  const whole = {
    ...(JSON.parse(answer) as object),
    prompt_filter_results: prompt,
    choices: [
      {
        index: 0,
        content_filter_results: safe,
        message: { role: 'assistant', content: 'Hi' },
        finish_reason: 'stop',
      },
    ],
  };
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;

  beforeAll(async () => {
    upstream = await startUpstream(({ body }, response) => {
      const { stream } = JSON.parse(String(body)) as { stream?: boolean };
      response.writeHead(200, { 'content-type': stream === true ? 'text/event-stream' : 'application/json' });
      response.end(
        stream === true
          ? `${chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')}data: [DONE]\n\n`
          : JSON.stringify(whole),
      );
    });
    const dated = { key: 'k', baseUrl: upstream.url, apiVersion: '2024-10-21' };
    gateway = await startGateway({
      channels: [
        azureOpenai({ ...dated, id: 'passed', models: ['passed'] }),
        // Instructions of the operator's own: replies are decoded and encoded.
        azureOpenai({ ...dated, id: 'read', models: ['read'], systemPrompt: 'Be brief.' }),
      ],
    });
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  const post = (path: string, body: object): Promise<Response> =>
    fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.key}`,
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
      },
      body: JSON.stringify(body),
    });
  const messages = [{ role: 'user', content: 'hi' }];

  it.each(['passed', 'read'])('reaches a client of chat completions, reply %s', async (model) => {
    const reply = await post('/v1/chat/completions', { model, messages });
    expect(await reply.json()).toMatchObject({
      prompt_filter_results: prompt,
      choices: [{ content_filter_results: safe, message: { content: 'Hi' } }],
    });
  });

  it.each(['passed', 'read'])('reaches it in a stream, with what comes after the text, %s', async (model) => {
    const text = await (await post('/v1/chat/completions', { model, messages, stream: true })).text();
    const frames = [...text.matchAll(/^data: (\{.*\})$/gm)].map(
      ([, json = '']) => JSON.parse(json) as object,
    );
    expect(frames).toContainEqual(expect.objectContaining({ choices: [], prompt_filter_results: prompt }));
    for (const choice of [
      { delta: { content: 'Hi' }, content_filter_results: safe },
      { content_filter_results: safe, content_filter_offsets: offsets },
    ]) {
      const choices = [expect.objectContaining(choice)];
      expect(frames).toContainEqual(expect.objectContaining({ choices }));
    }
    expect(text).toMatch(/data: \[DONE\]\s*$/);
  });

  it.each([
    ['messages', '/v1/messages', { model: 'read', max_tokens: 10, messages }],
    ['responses', '/v1/responses', { model: 'read', input: 'hi' }],
    ['converse', '/model/read/converse', { messages: [{ role: 'user', content: [{ text: 'hi' }] }] }],
    [
      'generateContent',
      '/v1beta/models/read:generateContent',
      { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
    ],
    ['text completions', '/v1/completions', { model: 'read', prompt: 'hi' }],
  ])('is told as lost to a client of %s', async (_format, path, body) => {
    const reply = await post(path, body);
    expect(reply.status).toBe(200);
    expect(reply.headers.get('x-sluice-loss')).toBe('prompt_filter_results, content_filter_results');
  });
});

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
    /resource is missing/,
  );
});

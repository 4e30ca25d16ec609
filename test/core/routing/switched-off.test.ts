import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import openai from '../../../channels/openai.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: request.url.split('/')[1] },
            finish_reason: 'stop',
          },
        ],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
    );
  });
  const channel = (id: string, priority: number, models: string[]) =>
    openai({ id, key: 'k', baseUrl: `${upstream.url}/${id}`, priority, models });
  gateway = await startGateway({
    channels: [channel('one', 2, ['both']), channel('two', 1, ['both', 'two'])],
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

async function sendChat(model: string): Promise<unknown> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
  });
  const body = (await response.json()) as {
    error?: { code: string };
    choices?: { message: { content: string } }[];
  };
  return body.error?.code ?? body.choices?.[0]?.message.content;
}

async function listed(): Promise<string[]> {
  const response = await fetch(`${gateway.url}/v1/models`, {
    headers: { authorization: `Bearer ${gateway.key}` },
  });
  const { data } = (await response.json()) as { data: { id: string }[] };
  return data.map(({ id }) => id);
}

describe('a channel that is switched off', () => {
  test('gets no calls, and others take its place, until it is on again', async () => {
    const { catalog } = gateway.gateway;
    expect(await sendChat('both')).toBe('one');
    catalog.switchOff(new Set(['one']));
    expect(catalog.isOn('one')).toBe(false);
    expect(await sendChat('both')).toBe('two');
    catalog.switchOff(new Set());
    expect(await sendChat('both')).toBe('one');
  });

  test('leaves models that nobody else serves without a channel, and out of the lists', async () => {
    const { catalog } = gateway.gateway;
    expect(await listed()).toEqual(['both', 'two']);
    catalog.switchOff(new Set(['two']));
    expect(await sendChat('two')).toBe('no_available_channel');
    expect(await listed()).toEqual(['both']);
    catalog.switchOff(new Set());
    expect(await listed()).toEqual(['both', 'two']);
  });
});

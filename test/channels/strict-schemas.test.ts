import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import azureOpenai from '../../channels/azure-openai.ts';
import groq from '../../channels/groq.ts';
import mistral from '../../channels/mistral/index.ts';
import openai from '../../channels/openai.ts';
import { Provider } from './_provider.ts';

let provider: Provider;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    channels: [
      openai({ key: 'k', baseUrl: url, models: ['gpt-4o'] }),
      azureOpenai({ key: 'k', baseUrl: url, models: ['gpt-4.1'] }),
      groq({ key: 'k', baseUrl: url, models: ['openai/gpt-oss-120b'] }),
      anthropic({ key: 'k', baseUrl: url, models: ['claude-sonnet-4-5'] }),
      mistral({ key: 'k', baseUrl: url, models: ['mistral-large-latest'] }),
    ],
  }));
});
afterAll(() => provider.close());

const chat = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  choices: [{ index: 0, message: { role: 'assistant', content: '{}' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
};
const response = {
  id: 'r',
  object: 'response',
  created_at: 1,
  status: 'completed',
  output: [],
  usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
};
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'fine' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 4 },
};

const loose = {
  type: 'object',
  properties: { city: { type: 'string' }, note: { type: 'string' } },
  required: ['city'],
};
const closed = {
  type: 'object',
  properties: { city: { type: 'string' }, note: { type: ['string', 'null'] } },
  required: ['city', 'note'],
  additionalProperties: false,
};
const messages = [{ role: 'user', content: 'Where?' }];
const formOf = (schema: object) => ({
  type: 'json_schema',
  json_schema: { name: 'answer', strict: true, schema },
});
const toolOf = (parameters: object, strict: boolean) => ({
  type: 'function',
  function: { name: 'look', parameters, strict },
});

async function sent(path: string, body: object, headers: Record<string, string> = {}) {
  provider.says(({ url }) => ({
    body: url.includes('/responses') ? response : url.includes('/messages') ? message : chat,
  }));
  const answer = await fetch(provider.gateway.url + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${provider.gateway.key}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      ...headers,
    },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  const bytes = provider.requests.at(-1)?.body.toString() ?? '';
  return { status: answer.status, text, bytes, loss: answer.headers.get('x-sluice-loss') ?? '' };
}

describe.each(['gpt-4o', 'gpt-4.1', 'openai/gpt-oss-120b'])('strict schemas for %s', (model) => {
  test('are closed, and optional properties may be null; what changes is named', async () => {
    const { status, bytes, loss } = await sent('/v1/chat/completions', {
      model,
      messages,
      response_format: formOf(loose),
    });
    expect(status).toBe(200);
    expect(JSON.parse(bytes)).toMatchObject({ response_format: formOf(closed) });
    expect(loss).toContain('response_format.schema.required');
  });

  test('of tools, too', async () => {
    const { status, bytes, loss } = await sent('/v1/chat/completions', {
      model,
      messages,
      tools: [toolOf(loose, true)],
    });
    expect(status).toBe(200);
    expect(JSON.parse(bytes)).toMatchObject({ tools: [toolOf(closed, true)] });
    expect(loss).toContain('tools[0]');
  });

  test('that are taken as they are, and others that are not strict, pass byte for byte', async () => {
    for (const members of [
      { response_format: formOf(closed), tools: [toolOf(closed, true)] },
      { tools: [toolOf(loose, false)] },
    ]) {
      const body = { model, messages, ...members };
      const { status, bytes, loss } = await sent('/v1/chat/completions', body);
      expect([status, loss, bytes]).toEqual([200, '', JSON.stringify(body)]);
    }
  });

  test('that would change are 400 for a strict client', async () => {
    const body = { model, messages, response_format: formOf(loose) };
    const { status, text } = await sent('/v1/chat/completions', body, { 'x-sluice-strict': 'true' });
    expect([status, provider.requests.length]).toEqual([400, 0]);
    expect(text).toContain('schema.required');
  });
});

test('strict schemas for Mistral are closed, and stay as they are otherwise', async () => {
  const model = 'mistral-large-latest';
  const request = { response_format: formOf(loose), tools: [toolOf(loose, true)] };
  const { status, bytes, loss } = await sent('/v1/chat/completions', { model, messages, ...request });
  expect(status).toBe(200);
  const shut = { ...loose, additionalProperties: false };
  expect(JSON.parse(bytes)).toMatchObject({ response_format: formOf(shut), tools: [toolOf(shut, true)] });
  expect(loss).toBe('');
});

test('a record that a strict schema for Mistral has is named, because its names are lost', async () => {
  const record = { type: 'object', additionalProperties: { type: 'string' } };
  const response_format = formOf(record);
  const { bytes, loss } = await sent('/v1/chat/completions', {
    model: 'mistral-large-latest',
    messages,
    response_format,
  });
  expect(bytes).toContain('"additionalProperties":false');
  expect(loss).toContain('response_format.schema.additionalProperties');
});

test('schemas of messages clients are adapted to those of OpenAI', async () => {
  const { status, bytes } = await sent('/v1/messages', {
    model: 'gpt-4o',
    max_tokens: 100,
    messages,
    tools: [{ name: 'look', strict: true, input_schema: { ...loose, additionalProperties: false } }],
  });
  expect(status).toBe(200);
  expect(JSON.parse(bytes)).toMatchObject({ tools: [toolOf(closed, true)] });
});

test('keywords and formats that OpenAI refuses move to the description', async () => {
  const url = { type: 'string', format: 'uri' };
  const schema = { ...closed, properties: { city: url, note: { not: { type: 'number' } } } };
  const { status, bytes } = await sent('/v1/responses', {
    model: 'gpt-4o',
    input: 'Where?',
    text: { format: { type: 'json_schema', name: 'answer', strict: true, schema } },
  });
  expect(status).toBe(200);
  expect(JSON.parse(bytes)).toMatchObject({
    text: {
      format: {
        schema: {
          properties: {
            city: { type: 'string', description: '{format: "uri"}' },
            note: { description: '{not: {"type":"number"}}' },
          },
        },
      },
    },
  });
});

describe('log probabilities where the model has none', () => {
  test.each(['claude-sonnet-4-5', 'openai/gpt-oss-120b'])('are dropped for %s and named', async (model) => {
    const { status, bytes, loss } = await sent('/v1/chat/completions', {
      model,
      messages,
      logprobs: true,
      top_logprobs: 2,
    });
    expect(status).toBe(200);
    expect(bytes).not.toContain('logprobs');
    expect(loss.split(', ')).toEqual(expect.arrayContaining(['logprobs', 'top_logprobs']));
  });

  test.each(['claude-sonnet-4-5', 'openai/gpt-oss-120b'])(
    'are 400 for a strict client of %s, which names them',
    async (model) => {
      const body = { model, messages, logprobs: true };
      const { status, text } = await sent('/v1/chat/completions', body, { 'x-sluice-strict': 'true' });
      expect([status, provider.requests.length]).toEqual([400, 0]);
      expect(JSON.parse(text)).toMatchObject({ error: { param: 'logprobs', code: 'unsupported_parameter' } });
    },
  );
});

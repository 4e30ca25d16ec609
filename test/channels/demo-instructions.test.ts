import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

const formats = ['chat-completions', 'messages', 'generate-content', 'responses', 'converse'] as const;

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    channels: formats.map((format) => demo({ id: format, speaks: [format], models: [format] })),
  });
});
afterAll(() => gateway.close());

interface Reply {
  readonly choices: readonly {
    readonly message: { readonly content: string; readonly tool_calls?: readonly object[] };
  }[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
}

async function sendChat(body: object): Promise<Reply> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  return (await response.json()) as Reply;
}

const user = (content: string): object => ({ role: 'user', content });
const tool = (name: string): object => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { city: { type: 'string' } } } },
});

describe.each(formats)('the demo over %s', (model) => {
  test('answers in JSON, by a schema and without one, also when it thinks', async () => {
    const schema = { type: 'object', properties: { age: { type: 'integer' } }, required: ['age'] };
    for (const reasoning_effort of ['none', 'medium']) {
      const request = { model, reasoning_effort, messages: [user('Invent a person, as JSON.')] };
      const plain = await sendChat({ ...request, response_format: { type: 'json_object' } });
      expect(JSON.parse(plain.choices[0]?.message.content ?? '')).toBeTypeOf('object');
      const shaped = await sendChat({
        ...request,
        response_format: { type: 'json_schema', json_schema: { name: 'person', schema } },
      });
      expect(JSON.parse(shaped.choices[0]?.message.content ?? '')).toMatchObject({ age: 1 });
    }
  });

  test('calls both tools when it is told to', async () => {
    const { choices } = await sendChat({
      model,
      messages: [user('What is the weather AND the time in Tokyo? Call both tools.')],
      tools: [tool('get_weather'), tool('get_time')],
    });
    expect(choices[0]?.message.tool_calls).toHaveLength(2);
  });

  test('knows a name that it was told', async () => {
    const messages = [
      user('My name is Ada.'),
      { role: 'assistant', content: 'Hi!' },
      user('What is my name?'),
    ];
    expect((await sendChat({ model, messages })).choices[0]?.message.content).toBe('Your name is Ada.');
    expect(
      (await sendChat({ model, messages: messages.slice(2) })).choices[0]?.message.content,
    ).not.toContain('Ada');
  });

  test('reads the beginning of a long prompt from its cache the second time, and short prompts never', async () => {
    const system = {
      role: 'system',
      content: `You work over ${model}. ${'You are a patient archivist. '.repeat(200)}`,
    };
    const first = { model, messages: [system, user('What are you?')] };
    expect((await sendChat(first)).usage.prompt_tokens_details.cached_tokens).toBe(0);
    const { prompt_tokens, prompt_tokens_details } = (await sendChat(first)).usage;
    expect(prompt_tokens_details.cached_tokens).toBeGreaterThan(prompt_tokens / 2);
    expect(prompt_tokens_details.cached_tokens).toBeLessThan(prompt_tokens);
    const short = { model, messages: [user('Hello')] };
    await sendChat(short);
    expect((await sendChat(short)).usage.prompt_tokens_details.cached_tokens).toBe(0);
  });
});

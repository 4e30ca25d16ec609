import { afterAll, beforeAll, expect, test } from 'vitest';
import openaiCompatible from '../../channels/openai-compatible.ts';
import { Provider } from './_provider.ts';

const fractionalTime = 1_760_000_000.75;
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
const answers = {
  chat: {
    id: 'c',
    object: 'chat.completion',
    created: fractionalTime,
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
    usage,
  },
  responses: {
    id: 'r',
    object: 'response',
    created_at: fractionalTime,
    status: 'completed',
    output: [
      { id: 'm', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello.' }] },
    ],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  },
};

let provider: Provider;
beforeAll(async () => {
  provider = await Provider.start((url) => ({
    channels: [
      openaiCompatible({
        name: 'elsewhere',
        key: 'k',
        baseUrl: url,
        models: ['chat', 'responses'],
        speaks: { chat: ['chat-completions', 'responses'] },
        traits: { chat: { formats: ['chat-completions'] }, responses: { formats: ['responses'] } },
      }),
    ],
  }));
  provider.says(({ url }) => ({ body: url.includes('/responses') ? answers.responses : answers.chat }));
});
afterAll(() => provider.close());

const chatBody = { messages: [{ role: 'user', content: 'Hi.' }] };
test.each([
  ['/v1/responses', 'chat', { input: 'Hi.' }, 'created_at'],
  ['/v1/chat/completions', 'responses', chatBody, 'created'],
  ['/v1/completions', 'chat', { prompt: 'Hi.' }, 'created'],
] as const)(
  'a client of %s, whose times are whole seconds, is told one where the provider tells parts of it (%s)',
  async (path, model, body, member) => {
    const answer = await provider.post(path, { model, ...body });
    expect(answer.status).toBe(200);
    expect(((await answer.json()) as Record<string, unknown>)[member]).toBe(1_760_000_000);
  },
);

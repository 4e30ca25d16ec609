import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import cerebras from '../../channels/cerebras.ts';
import groq from '../../channels/groq.ts';
import xai from '../../channels/xai/index.ts';
import { Provider, sse } from './_provider.ts';

let provider: Provider;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    channels: [
      groq({ key: 'k', baseUrl: url, models: ['qwen/qwen3-32b'] }),
      cerebras({ key: 'k', baseUrl: url, models: ['qwen-3-32b'] }),
      xai({ key: 'k', baseUrl: url, models: ['grok-4.3', 'grok-4'] }),
    ],
  }));
});
afterAll(() => provider.close());

const messages = [{ role: 'user', content: 'Well?' }];
const base = { id: 'c', created: 1, model: 'm' };
const usage = { prompt_tokens: 1, completion_tokens: 9, total_tokens: 10 };

beforeEach(() => {
  provider.says(({ body }) =>
    body.includes('"stream":true')
      ? sse(
          ['<thi', 'nk>\nHm.\n</thi', 'nk>\n\nYes.', ''].map((content) => ({
            ...base,
            object: 'chat.completion.chunk',
            choices: [{ index: 0, delta: { content }, finish_reason: content === '' ? 'stop' : null }],
          })),
          'data: [DONE]\n\n',
        )
      : {
          body: {
            ...base,
            object: 'chat.completion',
            usage,
            choices: [
              {
                index: 0,
                message: { role: 'assistant', content: '<think>\nHm.\n</think>\n\nYes.' },
                finish_reason: 'stop',
              },
            ],
          },
        },
  );
});

test.each(['qwen/qwen3-32b', 'qwen-3-32b'])(
  'what %s thinks before its answer is thinking to clients of other formats',
  async (model) => {
    const answer = await provider.post('/v1/messages', { model, max_tokens: 99, messages });
    expect(await answer.json()).toMatchObject({
      content: [
        { type: 'thinking', thinking: expect.stringContaining('Hm.') as string },
        { type: 'text', text: expect.stringMatching(/^\s*Yes\.$/) as string },
      ],
    });
    const streamed = await provider.post('/v1/messages', { model, max_tokens: 99, messages, stream: true });
    const text = await streamed.text();
    expect(text).toContain('"type":"thinking_delta"');
    expect(text).not.toMatch(/think>/);
  },
);

test('a client of Groq’s own words has its thinking as it asked for it', async () => {
  const body = { model: 'qwen/qwen3-32b', messages, reasoning_format: 'parsed', reasoning_effort: 'none' };
  const answer = await provider.post('/v1/chat/completions', body);
  expect(provider.posted()).toEqual(body);
  expect(await answer.text()).toContain('<think>');
});

test.each([
  [{ type: 'disabled' }, 'none'],
  [{ type: 'enabled', budget_tokens: 32_000 }, 'high'],
])('Grok 4.3 is told how much to think: %j', async (thinking, effort) => {
  const body = { max_tokens: 64_000, messages, thinking };
  await provider.post('/v1/messages', { model: 'grok-4.3', ...body });
  expect(provider.posted()).toMatchObject({ reasoning_effort: effort });
  await provider.post('/v1/messages', { model: 'grok-4', ...body });
  expect(provider.posted(-1)).not.toHaveProperty('reasoning_effort');
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import dashscope from '../../channels/dashscope/index.ts';
import minimax from '../../channels/minimax/index.ts';
import openai from '../../channels/openai.ts';
import openrouter from '../../channels/openrouter.ts';
import vercel from '../../channels/vercel.ts';
import { Provider } from './_provider.ts';

let provider: Provider;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    channels: [
      openai({ key: 'k', baseUrl: url }),
      openrouter({ key: 'k', baseUrl: url, models: ['anthropic/*'] }),
      vercel({ key: 'k', baseUrl: url, models: ['minimax/*'] }),
      dashscope({ key: 'k', baseUrl: url }),
      minimax({ key: 'k', baseUrl: url }),
    ],
  }));
});
afterAll(() => provider.close());

const reply = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
};
const control = { cache_control: { type: 'ephemeral' } };
const breakpoint = { prompt_cache_breakpoint: { mode: 'explicit' } };

async function sentFor(path: string, model: string, mark: object) {
  provider.says(() => ({ body: reply }));
  const answer = await provider.post(path, {
    model,
    ...(path === '/v1/messages' ? { max_tokens: 100 } : {}),
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Well?', ...mark }] }],
  });
  await answer.text();
  const sent = JSON.stringify(provider.posted()['messages']);
  return { status: answer.status, sent, loss: answer.headers.get('x-sluice-loss') ?? '' };
}

test.each(['anthropic/claude-sonnet-4.5', 'minimax/minimax-m2', 'qwen-plus', 'MiniMax-M2'])(
  'marks reach %s as cache_control, from clients of messages and of chat completions',
  async (model) => {
    for (const [path, mark] of [
      ['/v1/messages', control],
      ['/v1/chat/completions', control],
      ['/v1/chat/completions', breakpoint],
    ] as const) {
      const { status, sent, loss } = await sentFor(path, model, mark);
      expect([status, loss]).toEqual([200, expect.not.stringMatching(/cache/)]);
      expect(sent).toContain('"cache_control":{"type":"ephemeral"}');
      expect(sent).not.toContain('prompt_cache_breakpoint');
    }
  },
);

test.each(['gpt-4o', 'gpt-4.1', 'gpt-5-mini'])('marks are dropped for %s and reported', async (model) => {
  for (const [path, mark] of [
    ['/v1/messages', control],
    ['/v1/chat/completions', control],
    ['/v1/chat/completions', breakpoint],
  ] as const) {
    const { status, sent, loss } = await sentFor(path, model, mark);
    expect([status, sent]).toEqual([200, expect.not.stringMatching(/cache/)]);
    expect(loss).toMatch(/messages\[0\]\.content\[0\]\.(cache_control|prompt_cache_breakpoint)/);
  }
});

test('marks reach GPT-5.6 as prompt_cache_breakpoint', async () => {
  for (const [path, mark] of [
    ['/v1/messages', control],
    ['/v1/chat/completions', control],
    ['/v1/chat/completions', breakpoint],
  ] as const) {
    const { status, sent } = await sentFor(path, 'gpt-5.6-sol', mark);
    expect([status, sent]).toEqual([
      200,
      expect.stringContaining('"prompt_cache_breakpoint":{"mode":"explicit"}'),
    ]);
    expect(sent).not.toContain('cache_control');
  }
});

test.each([
  ['anthropic/claude-sonnet-4.5', true],
  ['qwen-plus', false],
])('marks on what tools gave reach %s, and those on tools where it takes them', async (model, takesTools) => {
  provider.says(() => ({ body: reply }));
  const answer = await provider.post('/v1/messages', {
    model,
    max_tokens: 100,
    tools: [{ name: 'look', input_schema: { type: 'object' }, ...control }],
    messages: [
      { role: 'user', content: 'Well?' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'seen', ...control }],
      },
    ],
  });
  expect(answer.status).toBe(200);
  const { tools, messages } = provider.posted() as { tools: object[]; messages: object[] };
  expect(messages.at(-1)).toMatchObject({
    role: 'tool',
    content: [{ type: 'text', text: 'seen', cache_control: { type: 'ephemeral' } }],
  });
  expect(tools).toEqual([expect.objectContaining(takesTools ? control : {})]);
  expect(JSON.stringify(tools).includes('cache_control')).toBe(takesTools);
  const loss = answer.headers.get('x-sluice-loss') ?? '';
  expect(loss.includes('tools[0].cache_control')).toBe(!takesTools);
  expect(loss).not.toContain('messages');
});

test('a mark on what a tool gave is reported where the model takes none', async () => {
  provider.says(() => ({ body: reply }));
  const answer = await provider.post('/v1/messages', {
    model: 'gpt-4o',
    max_tokens: 100,
    tools: [{ name: 'look', input_schema: { type: 'object' } }],
    messages: [
      { role: 'user', content: 'Well?' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'seen', ...control }],
      },
    ],
  });
  expect(answer.status).toBe(200);
  expect(JSON.stringify(provider.posted())).not.toContain('cache');
  expect(answer.headers.get('x-sluice-loss')).toContain('messages[2].content[0].cache_control');
});

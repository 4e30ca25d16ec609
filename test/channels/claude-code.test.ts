import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import dashscope from '../../channels/dashscope/index.ts';
import deepseek from '../../channels/deepseek.ts';
import fireworks from '../../channels/fireworks/index.ts';
import minimax from '../../channels/minimax/index.ts';
import moonshot from '../../channels/moonshot.ts';
import openaiCompatible from '../../channels/openai-compatible.ts';
import openrouter from '../../channels/openrouter.ts';
import { Provider } from './_provider.ts';

let provider: Provider;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    channels: [
      deepseek({ key: 'k', baseUrl: `${url}/v1`, models: { deepseek: 'deepseek-v4-pro' } }),
      moonshot({ key: 'k', baseUrl: `${url}/v1`, models: { 'kimi-k2.7': 'kimi-k2.7-code' } }),
      dashscope({ key: 'k', baseUrl: `${url}/compatible-mode/v1`, models: { qwen: 'qwen3.7-plus' } }),
      minimax({ key: 'k', baseUrl: `${url}/v1`, models: { minimax: 'MiniMax-M3' } }),
      fireworks({ key: 'k', baseUrl: `${url}/v1`, models: { glm: 'accounts/fireworks/models/glm-5p2' } }),
      openrouter({
        key: 'k',
        baseUrl: `${url}/v1`,
        models: { sonnet: 'anthropic/claude-sonnet-4.5', opus: 'anthropic/claude-opus-4.8' },
        discover: false,
      }),
      openaiCompatible({
        name: 'turns',
        key: 'k',
        baseUrl: `${url}/v1`,
        models: ['alternating'],
        traits: { '*': { alternates: true } },
      }),
    ],
  }));
});
afterAll(() => provider.close());

const recorded = JSON.parse(
  readFileSync(new URL('../fixtures/messages/requests/coding-agent.json', import.meta.url), 'utf8'),
) as { readonly body: Record<string, unknown> & { readonly messages: readonly object[] } };
const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'end_turn' };
const answer = {
  ...message,
  content: [{ type: 'text', text: 'fine' }],
  usage: { input_tokens: 1, output_tokens: 1 },
};

/** Sends what Claude Code sends; returns what the provider got, and what the client is told was lost. */
async function sent(model: string, more: object = {}): Promise<{ body: unknown; loss: string | null }> {
  provider.says(() => ({ body: answer }));
  const body = { ...recorded.body, stream: false, max_tokens: 4000, ...more };
  const { status, headers } = await provider.post('/v1/messages', { ...body, model });
  expect(status).toBe(200);
  return { body: provider.posted(), loss: headers.get('x-sluice-loss') };
}

test.each([
  ['kimi-k2.7', { type: 'enabled', budget_tokens: 3999, display: 'omitted' }],
  ['qwen', { type: 'enabled', budget_tokens: 3999, display: 'omitted' }],
])('adaptive thinking becomes a budget at %s, which has no such word', async (model, thinking) => {
  const { body } = await sent(model);
  expect(body).toMatchObject({ thinking });
  expect(body).not.toHaveProperty('output_config');
});

test.each(['deepseek', 'glm'])('adaptive thinking is switched on at %s, with its effort', async (model) => {
  const { body } = await sent(model);
  expect(body).toMatchObject({
    thinking: { type: 'enabled', display: 'omitted' },
    output_config: { effort: 'high' },
  });
});

test('an agent that shall not think names no effort to DeepSeek', async () => {
  const { body, loss } = await sent('deepseek', { thinking: { type: 'disabled' } });
  expect(body).toMatchObject({ thinking: { type: 'disabled' } });
  expect(body).not.toHaveProperty('output_config');
  expect(loss).toContain('output_config.effort');
});

test('a model that cannot stop thinking is not told to, and the client hears of it', async () => {
  const { body, loss } = await sent('kimi-k2.7', { thinking: { type: 'disabled' }, output_config: {} });
  expect(body).not.toHaveProperty('thinking');
  expect(loss).toContain('thinking');
});

const calls = [
  { role: 'user', content: 'Fix it.' },
  { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'Read', input: {} }] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'seen' }] },
];

test.each(['deepseek', 'kimi-k2.7'])('%s finds a thought in each turn that called tools', async (model) => {
  const { body } = await sent(model, { messages: calls });
  const thought = { type: 'thinking', thinking: expect.stringMatching(/\w/) as string };
  expect(body).toMatchObject({ messages: [{}, { content: [thought, { type: 'tool_use' }] }, {}] });
});

test('turns with calls stay as they are where DeepSeek shall not think', async () => {
  const { body } = await sent('deepseek', { messages: calls, thinking: { type: 'disabled' } });
  expect(body).toMatchObject({ messages: [{}, { content: [{ type: 'tool_use' }] }, {}] });
});

test('instructions in the middle of the history are the user’s words where only two roles are known', async () => {
  const { body } = await sent('sonnet');
  expect(JSON.stringify(body)).toContain('<system>Tools were changed.</system>');
  expect(body).toMatchObject({ thinking: { type: 'enabled' } });
});

test('newer Claude gets the request as it is, through OpenRouter too', async () => {
  const { body, loss } = await sent('opus');
  expect(body).toEqual({
    ...recorded.body,
    stream: false,
    max_tokens: 4000,
    model: 'anthropic/claude-opus-4.8',
  });
  expect(loss).toBeNull();
});

test('MiniMax gets a temperature above zero', async () => {
  const { body, loss } = await sent('minimax', { temperature: 0 });
  expect(body).toMatchObject({ temperature: 0.01 });
  expect(loss).toContain('temperature');
});

test('Fireworks gets no marks on tools', async () => {
  const [tool] = recorded.body['tools'] as readonly object[];
  const { body, loss } = await sent('glm', { tools: [{ ...tool, cache_control: { type: 'ephemeral' } }] });
  expect(JSON.stringify((body as { readonly tools: unknown }).tools)).not.toContain('cache_control');
  expect(loss).toContain('tools[0].cache');
});

test.each(['/v1/messages', '/v1/chat/completions'])(
  'words behind what a tool gave reach a model whose turns must alternate in one turn with it, from clients of %s',
  async (path) => {
    provider.says(() => ({
      body: {
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
      },
    }));
    const chat = [
      { role: 'user', content: 'Fix it.' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'toolu_1', type: 'function', function: { name: 'Read', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'toolu_1', content: 'seen' },
      { role: 'user', content: 'And now?' },
    ];
    const native = [...calls, { role: 'user', content: 'And now?' }];
    const messages = path === '/v1/messages' ? native : chat;
    const { status } = await provider.post(path, { model: 'alternating', max_tokens: 100, messages });
    expect(status).toBe(200);
    expect(provider.posted()).toMatchObject({
      messages: [
        { role: 'user' },
        { role: 'assistant' },
        { role: 'tool', content: expect.stringMatching(/^seen\s+And now\?$/) as string },
      ],
    });
  },
);

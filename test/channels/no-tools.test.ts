import { afterAll, beforeAll, expect, test } from 'vitest';
import bedrock from '../../channels/bedrock/index.ts';
import translation from '../../plugins/translation/index.ts';
import { Provider } from './_provider.ts';

const start = async (drops: boolean): Promise<Provider> =>
  Provider.start((url) => ({
    plugins: drops ? [translation({ unsupported: 'drop' })] : [],
    channels: [
      bedrock({ key: 'k', region: 'us-east-1', baseUrl: url, models: { r1: 'us.deepseek.r1-v1:0' } }),
    ],
  }));
let refusing: Provider;
let dropping: Provider;
beforeAll(async () => {
  [refusing, dropping] = await Promise.all([start(false), start(true)]);
});
afterAll(async () => {
  await Promise.all([refusing.close(), dropping.close()]);
});

const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const tools = [{ type: 'function', function: { name: 'weather', parameters } }];
const hello = [{ role: 'user', content: 'The weather in Oslo?' }];
const called = [
  ...hello,
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
  { role: 'user', content: 'And now?' },
];
const reply = {
  output: { message: { role: 'assistant', content: [{ text: 'Rain.' }] } },
  stopReason: 'end_turn',
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
};

test.each([
  ['tools', { messages: hello, tools }, 'tools'],
  ['what a tool gave', { messages: called }, 'messages'],
])('%s for a model without tools is 400 before the provider is asked', async (_, body, param) => {
  refusing.says(() => ({ body: reply }));
  const answer = await refusing.post('/v1/chat/completions', { model: 'r1', ...body });
  expect([answer.status, refusing.requests.length]).toEqual([400, 0]);
  expect(await answer.json()).toMatchObject({ error: { code: 'unsupported_tool', param } });
});

test('the same model answers calls without tools', async () => {
  refusing.says(() => ({ body: reply }));
  const answer = await refusing.post('/v1/chat/completions', { model: 'r1', messages: hello });
  expect([answer.status, refusing.requests.length]).toEqual([200, 1]);
});

test('they are dropped and named where the operator wants that', async () => {
  dropping.says(() => ({ body: reply }));
  const answer = await dropping.post('/v1/chat/completions', {
    model: 'r1',
    messages: called,
    tools,
    tool_choice: 'required',
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('x-sluice-loss')).toContain('tools');
  expect(dropping.posted()).not.toHaveProperty('toolConfig');
  expect(JSON.stringify(dropping.posted())).not.toMatch(/toolUse|toolResult/);
});

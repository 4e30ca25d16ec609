import { afterAll, beforeAll, expect, test } from 'vitest';
import iflytek from '../../channels/iflytek.ts';
import { Provider } from './_provider.ts';

let provider: Provider;
beforeAll(async () => {
  provider = await Provider.start((url) => ({
    channels: [iflytek({ key: 'k', baseUrl: `${url}/v1`, models: ['4.0Ultra'] })],
  }));
});
afterAll(() => provider.close());

const tool = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } };
const messages = [{ role: 'user', content: 'Hi.' }];
const answer = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: '4.0Ultra',
  choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

test.each([
  ['a request with tools asks Spark for calls as a list', { tools: [tool] }, true],
  ['what the client says of it stays', { tools: [tool], tool_calls_switch: false }, false],
  ['a request without tools says nothing of it', {}, undefined],
])('%s', async (_, members, expected) => {
  provider.says(() => ({ body: answer }));
  const got = await provider.post('/v1/chat/completions', { model: '4.0Ultra', messages, ...members });
  expect(got.status).toBe(200);
  expect(provider.posted()['tool_calls_switch']).toBe(expected);
});

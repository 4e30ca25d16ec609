import { expect, it } from 'vitest';
import openai from '../../channels/openai.ts';
import { channelSuite } from '../suites/channel-suite.ts';

const thinks = {
  reasoning: 'effort',
  systemRole: 'developer',
  refuses: expect.arrayContaining(['temperature', 'topP', 'topK', 'logprobs']),
};

channelSuite(openai, {
  format: 'chat-completions',
  path: '/chat/completions',
  url: '/chat/completions',
  credentials: { authorization: 'Bearer KEY' },
  baseUrl: 'https://api.openai.com/v1',
  models: {
    'gpt-4o-mini': { reasoning: 'none', refuses: ['topK'] },
    'gpt-4.1': { reasoning: 'none', outputLimit: 32_768 },
    'o4-mini': { ...thinks, efforts: ['low', 'medium', 'high'] },
    'gpt-5-mini-2025-08-07': { ...thinks, efforts: ['minimal', 'low', 'medium', 'high'] },
    'gpt-5.1': { ...thinks, efforts: ['none', 'low', 'medium', 'high'] },
    'gpt-5.4': { ...thinks, efforts: ['none', 'low', 'medium', 'high', 'xhigh'] },
    'gpt-5-chat-latest': { reasoning: 'none', refuses: ['topK'] },
  },
});

it('leaves the output limit to max_completion_tokens', () => {
  expect(openai.spec.setup({}, undefined as never).traits?.('gpt-4o')?.outputLimitField).toBeUndefined();
});

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
    'gpt-4o-mini': { reasoning: 'none', refuses: ['topK', 'customTools'] },
    'gpt-4.1': { reasoning: 'none', outputLimit: 32_768 },
    'o4-mini': { ...thinks, efforts: ['low', 'medium', 'high'] },
    'gpt-5-mini-2025-08-07': { ...thinks, efforts: ['minimal', 'low', 'medium', 'high'] },
    'gpt-5.1': { ...thinks, efforts: ['none', 'low', 'medium', 'high'] },
    'gpt-5.4': { ...thinks, efforts: ['none', 'low', 'medium', 'high', 'xhigh'] },
    'gpt-5-chat-latest': { reasoning: 'none', refuses: ['topK'], formats: ['chat-completions', 'responses'] },
    'gpt-3.5-turbo-instruct-0914': { formats: ['text-completions'] },
    'babbage-002': { formats: ['text-completions'] },
    'gpt-3.5-turbo': { formats: ['chat-completions', 'responses'] },
    'o3-pro': { ...thinks, formats: ['responses'] },
    'gpt-5.2-pro': { ...thinks, formats: ['responses'] },
    'gpt-5.1-codex-max': { ...thinks, formats: ['responses'] },
    'o4-mini-deep-research': { ...thinks, formats: ['responses'] },
    'computer-use-preview': { formats: ['responses'] },
  },
});

it('leaves the output limit to max_completion_tokens', () => {
  expect(openai.spec.setup({}, { keys: [] } as never).traits?.('gpt-4o')?.outputLimitField).toBeUndefined();
});

import { expect, it } from 'vitest';
import ollama from '../../channels/ollama.ts';
import { channelSuite } from '../suites/channel-suite.ts';

channelSuite(ollama, {
  format: 'chat-completions',
  path: '/chat/completions',
  url: '/chat/completions',
  credentials: { authorization: 'Bearer KEY' },
  baseUrl: 'http://localhost:11434/v1',
  models: {
    'llama3.2': { reasoning: 'none', outputLimitField: 'max_tokens', fetchesUrls: false },
    'qwen3:8b': { reasoning: 'effort' },
  },
});

it('needs no key', () => {
  expect(ollama.spec.needsKey).toBe(false);
});

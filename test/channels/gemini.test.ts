import { expect, it } from 'vitest';
import gemini from '../../channels/gemini.ts';
import { channelSuite } from '../suites/channel-suite.ts';

channelSuite(gemini, {
  basePath: '/v1beta',
  format: 'generate-content',
  path: '/models/m:streamGenerateContent',
  query: { alt: 'sse' },
  url: '/models/m:streamGenerateContent?alt=sse',
  credentials: { 'x-goog-api-key': 'KEY' },
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
  models: {
    'gemini-2.5-pro': { reasoning: 'budget', efforts: ['minimal', 'low', 'medium', 'high', 'xhigh'] },
    'gemini-2.5-flash': { reasoning: 'budget', efforts: ['none', 'minimal', 'low', 'medium', 'high'] },
    'gemini-3-pro-preview': { reasoning: 'level', efforts: ['low', 'high'] },
    'gemini-3.1-pro-preview': { reasoning: 'level', efforts: ['low', 'medium', 'high'] },
    'gemini-3.5-flash': { reasoning: 'level', efforts: ['minimal', 'low', 'medium', 'high'] },
  },
});

it('counts tokens as well', () => {
  expect(gemini.spec.setup({}, { keys: [] } as never).speaks['count-tokens']).toEqual(['generate-content']);
});

import { expect, it } from 'vitest';
import anthropic, { generationOf } from '../../channels/anthropic.ts';
import { channelSuite } from '../suites/channel-suite.ts';

const refuses = ['temperature', 'topP', 'topK'];

channelSuite(anthropic, {
  format: 'messages',
  path: '/messages',
  url: '/messages',
  credentials: { 'x-api-key': 'KEY' },
  headers: { 'anthropic-version': '2023-06-01' },
  baseUrl: 'https://api.anthropic.com/v1',
  models: {
    'claude-3-5-haiku-20241022': { reasoning: 'none', outputLimit: 8192 },
    'claude-opus-4-1-20250805': { reasoning: 'budget', outputLimit: 32_000 },
    'claude-sonnet-4-5': { reasoning: 'budget', outputLimit: 64_000, jsonSchema: true },
    'claude-sonnet-4-6': {
      reasoning: 'adaptive',
      efforts: ['none', 'low', 'medium', 'high', 'max'],
      midSystem: false,
    },
    'claude-opus-4-7': { reasoning: 'adaptive', refuses },
    'claude-fable-5-1': {
      reasoning: 'adaptive',
      refuses,
      efforts: ['low', 'medium', 'high', 'xhigh', 'max'],
    },
    'claude-newname': { reasoning: 'adaptive', refuses },
  },
});

it('counts tokens as well', () => {
  expect(anthropic.spec.setup({}, { keys: [] } as never).speaks['count-tokens']).toEqual(['messages']);
});

it.each([
  ['claude-3-opus-20240229', 3],
  ['claude-3-7-sonnet-latest', 3.7],
  ['claude-sonnet-4-20250514', 4],
  ['claude-haiku-4-5-20251001', 4.5],
  ['claude-opus-5', 5],
  ['claude-opus-5-5', 5.5],
  ['claude-mythos-preview', Infinity],
])('reads the generation of %s', (model, generation) => {
  expect(generationOf(model)).toBe(generation);
});

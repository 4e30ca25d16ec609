import { expect, it } from 'vitest';
import anthropic, { generationOf } from '../../channels/anthropic.ts';

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

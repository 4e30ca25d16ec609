import { expect, it } from 'vitest';
import openai from '../../channels/openai.ts';

it('leaves the output limit to max_completion_tokens', () => {
  expect(openai.spec.setup({}, { keys: [] } as never).traits?.('gpt-4o')?.outputLimitField).toBeUndefined();
});

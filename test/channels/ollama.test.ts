import { expect, it } from 'vitest';
import ollama from '../../channels/ollama/index.ts';

it('needs no key', () => {
  expect(ollama.spec.needsKey).toBe(false);
});

import { expect, test } from 'vitest';
import { z } from 'zod';
import { definePlugin } from '../../../core/sdk/index.ts';
import { mostRead } from '../../../core/sdk/reads.ts';

const recorder = definePlugin({
  name: 'recorder',
  stage: 'observe',
  reads: ({ texts }) => (texts ? 'content' : 'nothing'),
  options: z.object({ texts: z.boolean().default(false) }),
  setup: () => (call, next) => next(call),
});
const meter = definePlugin({
  name: 'meter',
  stage: 'observe',
  reads: 'usage',
  setup: () => (call, next) => next(call),
});

test('a plugin reads what its options need, and no more', () => {
  expect(mostRead([])).toBe('nothing');
  expect(mostRead([recorder()])).toBe('nothing');
  expect(mostRead([recorder({ texts: true }), meter()])).toBe('content');
  expect(mostRead([recorder(), meter()])).toBe('usage');
  // Options that do not fit are refused elsewhere.
  expect(mostRead([recorder({ texts: 'yes' } as never)])).toBe('nothing');
});

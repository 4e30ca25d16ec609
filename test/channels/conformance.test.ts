/* oxlint-disable vitest/expect-expect, vitest/valid-title -- the cases name themselves, and throw what is wrong. */
import { channelCases } from 'sluice/testing';
import { afterAll, describe, test } from 'vitest';
import { selectRotating } from '../support/tries.ts';
import { ownKinds } from './_kinds.ts';
import { startTokenServer } from './_tokens.ts';

const tokens = await startTokenServer();
afterAll(() => tokens.close());

// A kind of a provider's own is an options file beside the general ones: each case is tried with three of them, in turn.
const inOrder = Object.entries(ownKinds(tokens.url)).map(
  ([name, kind], index) => [name, kind, index] as const,
);
describe.each(inOrder)('%s', (_name, kind, position) => {
  const cases = channelCases(kind);
  for (const { name, run } of position === 0 ? cases : selectRotating(cases, position, 5)) test(name, run);
});

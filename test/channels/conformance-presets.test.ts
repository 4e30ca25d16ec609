/* oxlint-disable vitest/expect-expect, vitest/valid-title -- the cases name themselves, and throw what is wrong. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { channelCases } from 'sluice/testing';
import { describe, expect, test } from 'vitest';
import { importedAs, kindFiles } from '../support/kind-files.ts';
import { selectRotating } from '../support/tries.ts';
import { testedPresets } from './_presets.ts';

/** Kinds whose models take no schema and no tool that must be called: nothing makes them answer in a shape. */
const withoutSchemas: ReadonlySet<string> = new Set(['hunyuan', 'zai', 'zhipu']);

const inOrder = testedPresets.map((tested, index) => ({ ...tested, index }));
describe.each(inOrder)('$name with $model', ({ index, ...tested }) => {
  const cases = channelCases(tested).filter(
    ({ name }) => !(withoutSchemas.has(tested.name) && name.endsWith('live: structured output')),
  );
  // They have few lines of their own: of each a few cases, others of each.
  for (const { name, run } of selectRotating(cases, index, 22)) test(name, run);
});

test('every channel kind that chats is tried so, here or beside the general ones', () => {
  const others = readFileSync(join(import.meta.dirname, '_kinds.ts'), 'utf8');
  const kinds = new Set(testedPresets.map(({ name }) => name));
  // The demo, which calls nobody, has its own tests.
  const chats = [...kindFiles].filter(
    ([name, file]) => name !== 'demo' && /\bchat:|openaiLike\(/.test(readFileSync(file, 'utf8')),
  );
  expect(chats.length).toBeGreaterThan(60);
  expect(
    chats
      .filter(([name, file]) => !kinds.has(name) && !others.includes(importedAs(file)))
      .map(([name]) => name),
  ).toEqual([]);
});

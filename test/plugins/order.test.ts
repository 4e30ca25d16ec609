import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { orderPlugins } from '../../core/call/pipeline.ts';
import { discover } from '../../core/config/discover.ts';
import type { Plugin } from '../../core/sdk/define.ts';

const home = join(import.meta.dirname, '../..');
const { found } = await discover(join(home, 'plugins'));
const plugins = found.map(({ value }) => (value as Plugin<never>).spec);

/** The orders that plugins/README.md gives, each the names of plugins in one sentence. */
function documentedOrders(): readonly (readonly string[])[] {
  const page = readFileSync(join(home, 'plugins/README.md'), 'utf8');
  const names = new Set(plugins.map(({ name }) => name));
  return [...page.matchAll(/[Tt]he order(?: in `admit`)? is:\s([\s\S]*?)\.\s/g)].map(([, sentence = '']) =>
    [...sentence.matchAll(/`([a-z-]+)`/g)].map(([, name = '']) => name).filter((name) => names.has(name)),
  );
}

test('plugins admit a call in the order that the page for authors names, however an operator lists them', () => {
  const documented = documentedOrders();
  expect(documented.map((names) => names.at(-1))).toEqual(['quota', 'realtime-sessions']);
  fc.assert(
    fc.property(fc.shuffledSubarray(plugins, { minLength: plugins.length }), (listed) => {
      const { order, problems } = orderPlugins(listed);
      expect(problems).toEqual([]);
      for (const names of documented)
        expect(order.map(({ name }) => name).filter((name) => names.includes(name))).toEqual(names);
    }),
  );
});

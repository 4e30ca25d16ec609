import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { z } from 'zod';
import { orderPlugins } from '../../core/call/pipeline.ts';
import { discover } from '../../core/config/discover.ts';
import type { Plugin } from '../../core/sdk/define.ts';
import { commentAbove, optionComments, sourcesOf } from './_comments.ts';
import { generatedBy, optionLine, pageOf } from './_page.ts';
import { optionRows } from './_schema.ts';

const folder = join(import.meta.dirname, '../../plugins');
const { found } = await discover(folder);
const { order } = orderPlugins(found.map(({ value }) => (value as Plugin<z.ZodType>).spec));

test('the reference has every plugin in its order, with all of its options', async () => {
  const missing: string[] = [];
  const sections = order.map(({ name, stage, options, whenListed }) => {
    const path =
      ['.ts', ''].map((end) => join(folder, `${name}${end}`)).find((one) => existsSync(one)) ?? folder;
    const sources = sourcesOf(path);
    const text = sources
      .map((source) => commentAbove(source, 'export default'))
      .find((one) => one !== undefined);
    const rows = (options === undefined ? [] : optionRows(options, optionComments(sources))).filter(isOwn);
    if (text === undefined) missing.push(name);
    for (const row of rows) if (row.text === '') missing.push(`${name}: ${row.path}`);
    return [
      `## ${name}`,
      `Stage \`${stage}\`.${whenListed === true ? ' Off unless listed.' : ''} ${text}`,
      rows.length === 0 ? 'It has no options.' : rows.map(optionLine).join('\n'),
    ].join('\n\n');
  });
  expect(missing).toEqual([]);
  const page = pageOf(
    '# Plugins and their options',
    generatedBy('test/reference/plugins.test.ts', 'the plugins in [plugins](../../plugins)'),
    'Plugins that come with Sluice, in the order in which a call passes them. Each runs with its defaults, except those marked as off unless listed in `plugins`. `plugins: [quota({ lease: 60 })]` in `gateway.config.ts` sets options, and `quota.off()` switches a plugin off. [Plugins](../../plugins/README.md) says how to write your own.',
    ...sections,
  );
  await expect(page).toMatchFileSnapshot('../../docs/reference/plugins.md');
});

/** Members of entries of lists and of values by name are what the guide of a plugin is about. */
function isOwn({ path }: { readonly path: string }): boolean {
  return !/[*[]/.test(path);
}

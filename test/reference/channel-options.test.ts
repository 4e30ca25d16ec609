import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { commonOptions } from '../../core/config/channel-options.ts';
import { discover } from '../../core/config/discover.ts';
import type { ChannelKind } from '../../core/sdk/define.ts';
import { optionComments, sourcesOf } from './_comments.ts';
import { generatedBy, optionLine, pageOf } from './_page.ts';
import { optionRows, type OptionRow } from './_schema.ts';

const folder = join(import.meta.dirname, '../../channels');
const { found } = await discover(folder);
const kinds = found
  .map(({ value }) => (value as ChannelKind<z.ZodObject>).spec)
  .toSorted((one, other) => one.name.localeCompare(other.name));

/** Traits have a page of their own, and a service key is what SAP has made. */
const isShown = ({ path }: OptionRow): boolean => !/^(?:traits|serviceKey)\./.test(path);

test('the reference has the options of every channel kind', async () => {
  const common = optionRows(commonOptions).filter(isShown);
  const missing = common.filter(({ text }) => text === '').map(({ path }) => path);
  const sections: string[] = [];
  const plain: string[] = [];
  for (const { name, options } of kinds) {
    const path =
      ['.ts', ''].map((end) => join(folder, `${name}${end}`)).find((one) => existsSync(one)) ?? folder;
    const rows =
      options === undefined ? [] : optionRows(options, optionComments(sourcesOf(path))).filter(isShown);
    missing.push(...rows.filter(({ text }) => text === '').map((row) => `${name}: ${row.path}`));
    if (rows.length === 0) plain.push(`\`${name}\``);
    else sections.push(`## ${name}`, rows.map(optionLine).join('\n'));
  }
  expect(missing).toEqual([]);
  const page = pageOf(
    '# Options of channels',
    generatedBy('test/reference/channel-options.test.ts', 'the channel kinds in [channels](../../channels)'),
    'Options of the entries of `channels` in `gateway.config.ts`. [What can be changed for one channel](../../channels/README.md#what-can-be-changed-for-one-channel) shows them in use, [Traits of models](traits.md) lists the members of `traits`, and the [channel matrix](channels.md) what each kind serves.',
    '## Every channel',
    common.map(optionLine).join('\n'),
    ...sections,
    '## Kinds without further options',
    `${plain.join(', ')}.`,
  );
  await expect(page).toMatchFileSnapshot('../../docs/reference/channel-options.md');
});

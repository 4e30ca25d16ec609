import { expect, test } from 'vitest';
import { settingsSchema } from '../../core/settings/index.ts';
import { generatedBy, optionLine, pageOf } from './_page.ts';
import { optionRows } from './_schema.ts';

const rows = optionRows(settingsSchema);

test('the reference has every setting, each with what it does', async () => {
  expect(rows.filter(({ text }) => text === '').map(({ path }) => path)).toEqual([]);
  const groups = new Map<string, string[]>();
  for (const row of rows) {
    const [name = ''] = row.path.split('.');
    groups.set(name, [...(groups.get(name) ?? []), optionLine(row)]);
  }
  const page = pageOf(
    '# Settings',
    generatedBy('test/reference/settings.test.ts', 'the schemas in [core/settings](../../core/settings)'),
    'Members of what `defineConfig` takes in `gateway.config.ts`, beside `plugins` and `channels`. Times are in milliseconds and sizes in bytes unless a line says otherwise. [Configure the gateway](../guides/configure.md) shows them in use.',
    ...[...groups].map(([name, lines]) => [`## ${name}`, lines.join('\n')].join('\n\n')),
  );
  await expect(page).toMatchFileSnapshot('../../docs/reference/settings.md');
});

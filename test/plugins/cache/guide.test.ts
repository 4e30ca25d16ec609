import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { cacheOptions } from '../../../plugins/cache/options.ts';
import { sluice } from '../../core/cli/_process.ts';
import { operatorFolder } from '../../support/operator-folder.ts';

const page = readFileSync(new URL('../../../docs/guides/cache.md', import.meta.url), 'utf8');

describe('the page about the cache', () => {
  const configs = [...page.matchAll(/```ts\n(.*?)```/gs)].map(([, block = '']) => block);

  test.each(configs.map((config, index) => [index + 1, config] as const))(
    'has a sound configuration %i',
    async (_number, config) => {
      const outcome = await sluice(['check'], {}, operatorFolder({ 'gateway.config.ts': config }));
      expect(outcome).toMatchObject({ code: 0, stderr: '' });
    },
  );

  test('names every option with its default', () => {
    const defaults = cacheOptions.parse({});
    const rows = new Map(
      [...page.matchAll(/^\| `(\w+)` +\| (.*?) +\|/gm)].map(([, name = '', value = '']) => [name, value]),
    );
    for (const name of Object.keys(cacheOptions.shape)) expect([name, rows.has(name)]).toEqual([name, true]);
    for (const [name, value] of Object.entries(defaults)) {
      const documented = rows.get(name)?.replaceAll('`', '');
      const written =
        documented?.endsWith('MiB') === true ? Number.parseInt(documented, 10) * 1024 * 1024 : documented;
      expect([name, String(written).replaceAll("'", '')]).toEqual([
        name,
        Array.isArray(value) ? '[]' : String(value),
      ]);
    }
  });
});

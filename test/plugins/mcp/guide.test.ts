import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { defineConfig, env } from 'sluice';
import mcp from '../../../plugins/mcp/index.ts';

/* The examples of the guide are options that the plugin takes. */

const page = readFileSync(new URL('../../../docs/guides/mcp.md', import.meta.url), 'utf8');
const examples = [...page.matchAll(/^```js\n([\s\S]*?)^```$/gm)]
  .map(([, code = '']) => code.replaceAll(/^import .*$/gm, '').replace('export default ', ''))
  .filter((code) => code.includes('mcp('));

test('the guide has examples', () => {
  expect(examples.length).toBeGreaterThanOrEqual(2);
});

test.each(examples.map((code, index) => [index, code] as const))(
  'the plugin takes the options of example %i',
  (_, code) => {
    const taken: unknown[] = [];
    const recorded = (options: Parameters<typeof mcp>[0]) => {
      taken.push(mcp.spec.options?.parse(options));
      return mcp(options);
    };
    new Function('mcp', 'defineConfig', 'env', code)(recorded, defineConfig, env);
    expect(taken).toHaveLength(1);
  },
);

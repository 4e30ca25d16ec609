import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { settingsSchema } from '../../../core/settings/index.ts';

const page = readFileSync(new URL('../../../docs/guides/databases.md', import.meta.url), 'utf8');
const examples = [...page.matchAll(/^```js\n([\s\S]*?)^```/gm)].map(([, text = '']) => text);

describe('the examples of the page about databases', () => {
  test('are found', () => expect(examples.length).toBeGreaterThan(3));

  test.each(examples)('%s are settings that the gateway takes', (example) => {
    const pem = '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n';
    // oxlint-disable-next-line no-new-func -- text of our own page
    const read = new Function('env', 'readFileSync', `return {${example}};`) as (
      env: (name: string) => string,
      readFileSync: () => string,
    ) => unknown;
    const settings = read(
      (name) => (/URL/.test(name) ? 'postgres://user:password@host/sluice' : `value of ${name}`),
      () => pem,
    );
    expect(settingsSchema.safeParse(settings).error).toBeUndefined();
  });
});

import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { compiled } from '../support/compiled.ts';

test('a gateway that starts leaves out the HTTP client that Node would bring', () => {
  const script = `
    await import('./core/server.ts');
    console.log(process.moduleLoadList.filter((name) => /undici|node:http$|NativeModule http$/.test(name)).join());
  `;
  const loaded = execFileSync(
    process.execPath,
    ['--conditions=sluice-source', '--input-type=module', '--eval', script],
    { encoding: 'utf8', env: { PATH: process.env.PATH, ...compiled } },
  );
  expect(loaded.trim()).toBe('NativeModule http');
});

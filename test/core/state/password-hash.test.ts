import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { hashPassword, matchesPassword, type PasswordHash } from '../../../core/state/password-hash.ts';
import { passwordHashUrl } from '../../support/password-cost.ts';

/** Hashes a password in a process of its own, as a gateway of an operator does. */
function hashedByOperator(password: string): PasswordHash {
  const script = `import { hashPassword } from '${passwordHashUrl}'; console.log(JSON.stringify(await hashPassword('${password}')));`;
  const output = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
    encoding: 'utf8',
  });
  return JSON.parse(output) as PasswordHash;
}

test('a guess of a password costs 32 MiB and some 50 milliseconds, but in tests next to nothing', async () => {
  const stored = hashedByOperator('a long enough password');
  expect(stored.cost).toBe(2 ** 15);
  expect((await hashPassword('a long enough password')).cost).toBe(2 ** 4);
  expect(await matchesPassword('a long enough password', stored)).toBe(true);
  expect(await matchesPassword('another password', stored)).toBe(false);
});

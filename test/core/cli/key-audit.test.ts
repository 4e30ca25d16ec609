import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { AuditLog } from '../../../core/state/audit-log.ts';
import { openStores } from '../../../core/state/stores.ts';
import { operatorFolder } from '../../support/operator-folder.ts';
import { shell } from './_shell.ts';

const sluice = shell();

test('sluice key on the database notes in the audit log what it changes, without secrets', async () => {
  const folder = operatorFolder({
    'gateway.config.ts': `import demo from 'sluice/channels/demo'; export default { channels: [demo()] };`,
  });
  const key = (...args: string[]) => sluice(['key', ...args, '--config', join(folder, 'gateway.config.ts')]);
  const made = await key('create', '--name', 'ci', '--rpm', '7', '--json');
  const { key: record, value } = JSON.parse(made.stdout) as { key: { id: string }; value: string };
  const rotated = await key('rotate', 'ci', '--grace', '1d');
  await key('end-grace', 'ci');
  await key('list');
  await key('revoke', 'ci');

  const stores = openStores(`sqlite:${join(folder, 'data', 'sluice.db')}`);
  onTestFinished(() => stores.close());
  const entries = await Array.fromAsync(new AuditLog(stores).entries());
  const sorted = entries.toSorted((one, other) => (one.id < other.id ? -1 : 1));
  expect(sorted.map(({ action }) => action)).toEqual([
    'key-create',
    'key-rotate',
    'key-old-secret-end',
    'key-delete',
  ]);
  for (const entry of entries)
    expect(entry).toMatchObject({
      target: record.id,
      actor: { kind: 'command-line', id: 'command-line', name: expect.stringMatching(/^\S+@\S+$/) },
    });
  expect(sorted[0]?.after).toMatchObject({ name: 'ci', requestsPerMinute: 7 });
  for (const secret of [value, rotated.stdout.trim()]) expect(JSON.stringify(entries)).not.toContain(secret);
});

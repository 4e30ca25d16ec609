/** Saves the database of gateways under load, and compares what databases of both kinds hold that were restored from the file. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { administer, type Admin } from './admin.ts';
import { adminPassword, type TreeGateway } from './gateway.ts';
import { addUp, compareSums, sumsByKey, type KeySum } from './sums.ts';

/** Source and targets of backups. */
export interface BackupPlan {
  /** The gateway whose database is saved. */
  readonly gateway: TreeGateway;
  /** Ids of the keys that are compared. */
  readonly keys: readonly string[];
  /** Empty databases by what messages call them, and a way to a gateway on one of them. */
  readonly targets: readonly { readonly name: string; readonly database: string }[];
  prepare(database: string): Promise<TreeGateway>;
  print(line: string): void;
}

/**
 * Returns what is wrong. Each restored database must hold the state of one moment: what keys have spent equals the records, and these are at
 * least those from before the backup and at most those from after it.
 */
export async function backUpAndRestore(plan: BackupPlan): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-upgrade-backup-'));
  const file = join(folder, 'backup.sluice');
  try {
    const admin = await administer(plan.gateway.url, adminPassword);
    const least = await keySums(admin, plan.keys);
    await plan.gateway.run('backup', file);
    const most = await keySums(admin, plan.keys);
    plan.print(`the database is saved between ${addUp(least).calls} and ${addUp(most).calls} calls`);
    const problems: string[] = [];
    for (const { name, database } of plan.targets)
      // oxlint-disable-next-line no-await-in-loop -- one after the other, for the machine's sake
      problems.push(...(await restoreInto(plan, { name, database, file, least, most })));
    return problems;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Restored {
  readonly name: string;
  readonly database: string;
  readonly file: string;
  readonly least: readonly KeySum[];
  readonly most: readonly KeySum[];
}

async function restoreInto(plan: BackupPlan, { name, database, file, least, most }: Restored) {
  const restored = await plan.prepare(database);
  await restored.run('restore', file);
  await restored.start();
  const admin = await administer(restored.url, adminPassword);
  const sums = await keySums(admin, plan.keys);
  const used = sums.map(({ group, calls }) => ({ id: group, calls, owners: [] }));
  const compared = await compareSums((path) => admin('GET', path), used);
  // Calls that ran at that moment have their reservations until the lease ends.
  const problems = compared.problems.filter((problem) => !problem.endsWith('still reserved'));
  for (const [index, { group, calls }] of sums.entries())
    if (calls < (least[index]?.calls ?? 0) || calls > (most[index]?.calls ?? 0))
      problems.push(`key ${group}: ${calls} calls, of ${least[index]?.calls} to ${most[index]?.calls}`);
  plan.print(`restored into ${name}: ${compared.calls} calls, ${compared.spent} micro-dollars`);
  await restored.stop();
  return problems.map((problem) => `restored into ${name}: ${problem}`);
}

async function keySums(admin: Admin, keys: readonly string[]): Promise<readonly KeySum[]> {
  const sums = await sumsByKey((path) => admin('GET', path));
  return keys.map(
    (id) =>
      sums.find(({ group }) => group === id) ?? {
        group: id,
        calls: 0,
        input: 0,
        output: 0,
        microDollars: 0,
      },
  );
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { adminPassword } from '../plugins/admin/_client.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../support/postgres.ts';

/** New databases of one kind. `skip` says why there are none. */
interface Databases {
  readonly kind: 'SQLite' | 'PostgreSQL';
  url(): Promise<string>;
  readonly skip: string | undefined;
}

/** New databases that gateways may share, of both kinds. Called once by a file, which has its own folder and server. */
export function newDatabases(): readonly Databases[] {
  let postgres: TestPostgres | undefined;
  const missing = withoutPostgres();
  const folder = mkdtempSync(join(tmpdir(), 'sluice-shared-'));
  beforeAll(async () => {
    if (missing === undefined) postgres = await startPostgres();
  });
  afterAll(async () => {
    await postgres?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return [
    {
      kind: 'SQLite',
      url: () => Promise.resolve(`sqlite:${join(folder, `${Math.random()}.db`)}`),
      skip: undefined,
    },
    {
      kind: 'PostgreSQL',
      url: () => postgres?.createDatabaseWithTables() ?? Promise.reject(new Error('none')),
      skip: missing,
    },
  ];
}

/** Two gateways with an admin on one database. They are closed after the test. */
export async function twoGateways(database: string): Promise<readonly [TestGateway, TestGateway]> {
  const start = () => startGateway({ adminPassword, database, channels: [demo()] });
  const gateways = [await start(), await start()] as const;
  onTestFinished(async () => {
    await Promise.all(gateways.map((gateway) => gateway.close()));
  });
  return gateways;
}

/**
 * Writes databases as the gateway of a tree does, for the tests of upgrades: `npm run database -- NAME [--tree PATH]`.
 * See test/fixtures/databases/README.md.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { dumpPostgres, startPostgres } from '../support/postgres.ts';
import { fill } from './fill.ts';
import { startEveryObject } from './provider.ts';
import { startTree } from './tree.ts';
import { fixtures, type Written } from './written.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

const { values, positionals } = parseArgs({ allowPositionals: true, options: { tree: { type: 'string' } } });
const [name = ''] = positionals;
if (!/^[\d.-]+$/.test(name))
  throw new Error('Name the database by a version or a date: npm run database -- 0.1.0');
const tree = resolve(values.tree ?? root);
const folder = join(fixtures, name);
if (existsSync(folder)) throw new Error(`${folder} exists: a database that was written is never changed.`);

const work = mkdtempSync(join(tmpdir(), 'sluice-databases-'));
const provider = await startEveryObject();
const server = await startPostgres();
try {
  const file = join(work, 'sluice.db');
  const sqlite = await written(`sqlite:${file}`);
  const connection = new DatabaseSync(file);
  connection.exec('PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE');
  connection.close();
  const url = await server.createDatabase();
  const postgres = await written(url.replace(/\?.*/, ''));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'sqlite.db.gz'), gzipSync(readFileSync(file), { level: 9 }));
  writeFileSync(join(folder, 'postgres.sql.gz'), gzipSync(dumpPostgres(url), { level: 9 }));
  const { stdout = '' } = spawnSync('git', ['-C', tree, 'rev-parse', 'HEAD'], { encoding: 'utf8' });
  const about = { commit: stdout.trim(), sqlite, postgres };
  writeFileSync(join(folder, 'written.json'), `${JSON.stringify(about, undefined, 2)}\n`);
  console.log(`${folder} is written.`);
} finally {
  await server.close();
  await provider.close();
  rmSync(work, { recursive: true, force: true });
}

async function written(database: string): Promise<Written> {
  const gateway = await startTree(tree, database, provider.url);
  try {
    return await fill(gateway.url);
  } finally {
    await gateway.stop();
  }
}

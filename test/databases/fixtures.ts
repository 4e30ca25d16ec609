/** Databases as released versions wrote them, in test/fixtures/databases. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { hashPassword } from '../../core/state/password-hash.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { TestPostgres } from '../support/postgres.ts';
import { adminPassword } from './client.ts';
import { fixtures, type Written } from './written.ts';

/** Names of those that there are, oldest first. */
export const fixtureNames: readonly string[] = readdirSync(fixtures, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .toSorted();

/** Returns what a version had written into its database of this kind. */
export function writtenBy(name: string, kind: 'sqlite' | 'postgres'): Written {
  const all = JSON.parse(readFileSync(join(fixtures, name, 'written.json'), 'utf8')) as Record<
    string,
    Written
  >;
  const written = all[kind];
  if (written === undefined) throw new Error(`${name} has no ${kind}.`);
  return written;
}

/** Options for a copy of a database. */
export interface CopyOptions {
  /** Keeps the hash of the admin password as the version wrote it. Each check of it takes 50 milliseconds of CPU. */
  readonly keepPassword?: true;
}

/** Makes a copy of a database that a version wrote, in which checks of the admin password take no time. Returns its URL. */
export async function copyOf(
  name: string,
  server: TestPostgres | undefined,
  { keepPassword }: CopyOptions = {},
): Promise<string> {
  const read = async (file: string): Promise<Buffer> => {
    const bytes = gunzipSync(readFileSync(join(fixtures, name, file)));
    return keepPassword ? bytes : withCheapPassword(bytes);
  };
  if (server === undefined) {
    const file = join(temporaryFolder(), 'sluice.db');
    writeFileSync(file, await read('sqlite.db.gz'));
    return `sqlite:${file}`;
  }
  const url = await server.createDatabase();
  await server.run(url, (await read('postgres.sql.gz')).toString());
  return url;
}

/** Replaces the hash of the admin password by one of the same password and length, because the file of SQLite is not text. */
async function withCheapPassword(bytes: Buffer): Promise<Buffer> {
  const text = bytes.toString('latin1');
  const [entry] = /\{"value":\{"salt":"[^"]+","hash":"[^"]+","cost":32768\}\}/.exec(text) ?? [];
  if (entry === undefined) throw new Error('The database has no admin password.');
  const cheap = JSON.stringify({ value: await hashPassword(adminPassword) }).slice(0, -2);
  return Buffer.from(text.replace(entry, `${cheap.padEnd(entry.length - 2)}}}`), 'latin1');
}

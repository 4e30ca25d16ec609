/** Databases as released versions wrote them, in test/fixtures/databases. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { temporaryFolder } from '../support/temporary-folder.ts';
import type { TestPostgres } from '../support/postgres.ts';
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

/** Makes a copy of a database that a version wrote. Returns its URL. */
export async function copyOf(name: string, server: TestPostgres | undefined): Promise<string> {
  if (server === undefined) {
    const file = join(temporaryFolder(), 'sluice.db');
    writeFileSync(file, gunzipSync(readFileSync(join(fixtures, name, 'sqlite.db.gz'))));
    return `sqlite:${file}`;
  }
  const url = await server.createDatabase();
  await server.run(url, gunzipSync(readFileSync(join(fixtures, name, 'postgres.sql.gz'))).toString());
  return url;
}

/** Saves a database to a file while gateways run, and restores it from there: of one kind or the other. */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { isPostgres, urlOf, type DatabaseSettings } from '../../settings/database.ts';
import { openDatabase, pathIn } from '../database/index.ts';
import {
  ArchiveWriter,
  readArchive,
  syncFile,
  type ArchivePart,
  type Header,
  type TableCount,
} from './archive.ts';
import type { Target } from './ends.ts';
import { openPostgresSource, openPostgresTarget } from './postgres.ts';
import { openSqliteSource, openSqliteTarget } from './sqlite.ts';
import { savedTables, stepsNamed } from './tables.ts';

/** Contents of an archive. */
export interface Contents {
  readonly header: Header;
  readonly tables: readonly TableCount[];
}

/**
 * Saves a database to a new file, and reads the file to its end to check it. Rejects with an Error for the operator; then there is no file.
 */
export async function backUp(database: DatabaseSettings, file: string, version: string): Promise<Contents> {
  if (existsSync(file)) throw new Error(`${file} exists: choose another name, or remove it.`);
  const url = urlOf(database);
  const source = isPostgres(url) ? openPostgresSource(url) : openSqliteSource(pathIn(url));
  const partial = `${file}.partial-${process.pid}`;
  const { kind } = source;
  const writer = new ArchiveWriter(partial, { version, made: new Date().toISOString(), kind });
  try {
    await source.save(writer);
    await writer.close();
    const contents = await checkArchive(partial);
    await syncFile(partial);
    renameSync(partial, file);
    return contents;
  } catch (error) {
    await writer.destroy();
    rmSync(partial, { force: true });
    throw error;
  } finally {
    await source.close();
  }
}

/** Reads an archive to its end. Rejects with an Error for the operator where it cannot be restored by this version. */
export async function checkArchive(file: string): Promise<Contents> {
  let header: Header | undefined;
  /** By table: its columns. Others than those that the steps make are no names to put into a statement. */
  const wanted = new Map<string, string>();
  const tables: TableCount[] = [];
  for await (const part of readArchive(file)) {
    if (part.kind === 'header') {
      ({ header } = part);
      for (const { name, columns } of savedTables(stepsNamed(header.steps, file)))
        wanted.set(name, columns.join());
    } else if (part.kind === 'table' && wanted.get(part.table) !== part.columns.join())
      throw new Error(
        `${file} cannot be restored: it has a table that is not known, ${JSON.stringify(part.table)}.`,
      );
    if (part.kind === 'end') {
      tables.push({ table: part.table, rows: part.rows });
      wanted.delete(part.table);
    }
  }
  const [missing] = wanted.keys();
  if (header === undefined || missing !== undefined)
    throw new Error(
      `${file} cannot be restored: ${missing === undefined ? 'its beginning' : `the table ${missing}`} is missing.`,
    );
  return { header, tables };
}

/**
 * Fills a database from an archive that is checked before. Refuses one that has rows unless `replace` is set. Resolves when the tables are in
 * place and brought up to date, with where the old ones are kept.
 */
export async function restore(
  database: DatabaseSettings,
  file: string,
  { replace }: { readonly replace: boolean },
): Promise<Contents & { readonly before: string | undefined }> {
  const contents = await checkArchive(file);
  const url = urlOf(database);
  const target = isPostgres(url) ? openPostgresTarget(url) : openSqliteTarget(pathIn(url));
  try {
    if (!replace && !(await target.isEmpty()))
      throw new Error(
        'The database is not empty: restore into another one, or replace all that it has with --replace.',
      );
    await target.make(stepsNamed(contents.header.steps, file));
    await fillAll(target, readArchive(file));
    for (const { table, rows } of contents.tables) {
      // oxlint-disable-next-line no-await-in-loop -- one connection
      const count = await target.count(table);
      if (count !== rows)
        throw new Error(`The table ${table} has ${count} rows in place of ${rows}: nothing was changed.`);
    }
    const before = await target.finish();
    await bringUpToDate(database).catch((error: unknown) => {
      const kept = before === undefined ? '' : `; the database from before is kept as ${before}`;
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`${file} was restored${kept}. Its tables could not be brought up to date: ${reason}`, {
        cause: error,
      });
    });
    return { ...contents, before };
  } finally {
    await target.close();
  }
}

async function fillAll(target: Target, archive: AsyncGenerator<ArchivePart, void>): Promise<void> {
  let filling: Awaited<ReturnType<Target['fill']>> | undefined;
  for await (const part of archive) {
    if (part.kind === 'table') filling = await target.fill(part.table, part.columns);
    else if (part.kind === 'row') await filling?.add(part.values);
    else if (part.kind === 'end') await filling?.done();
  }
}

/** Makes the steps that are newer than the archive, as the next start would. */
async function bringUpToDate(settings: DatabaseSettings): Promise<void> {
  const database = openDatabase(settings);
  try {
    if (database.kind === 'postgres') await database.ready();
  } finally {
    await database.close();
  }
}

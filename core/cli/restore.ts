import { resolve } from 'node:path';
import { loadConfig } from '../config/load-config.ts';
import { databaseOf } from '../config/database-of.ts';
import { checkArchive, restore as restoreFrom } from '../state/backup/index.ts';
import { describeContents } from './backup.ts';
import { readArguments, UsageError, type Command } from './command.ts';

/** `sluice restore`: fills the database from a file. */
export const restore: Command = {
  summary: 'Restores the database from a file of "sluice backup".',
  help: `Usage: sluice restore FILE [--replace] [--check] [--config FILE]

Fills the config's database, SQLite or PostgreSQL, from a file that "sluice backup" made of a database of either kind. Verifies the
whole file first, and then replaces the database in one step: if restoring fails, the database is unchanged. Stop all gateways
that use this database before.

--replace  Replaces a database that has rows. Without this option such a database is an error. The old SQLite file is kept under
           another name; the old rows of PostgreSQL are deleted.
--check    Only verifies the file, and prints its contents.

A file of an older version of Sluice is upgraded. A file of a newer version is an error.`,
  async run(args) {
    const { values, positionals } = readArguments(args, {
      replace: { type: 'boolean' },
      check: { type: 'boolean' },
    });
    const [file] = positionals;
    if (file === undefined || positionals.length > 1)
      throw new UsageError('Name one file: sluice restore FILE.');
    if (values.check === true) {
      console.log(`${describeContents(await checkArchive(resolve(file)))}\n\n${file} is complete and valid.`);
      return 0;
    }
    const config = await loadConfig(values.config, { only: 'settings' });
    const contents = await restoreFrom(databaseOf(config), resolve(file), {
      replace: values.replace === true,
    });
    console.log(`${describeContents(contents)}\n\nRestored from ${file}.`);
    if (contents.before !== undefined) console.log(`The previous database is kept as ${contents.before}.`);
    return 0;
  },
};

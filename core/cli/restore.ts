import { resolve } from 'node:path';
import { loadConfig } from '../config/load-config.ts';
import { databaseOf } from '../config/database-of.ts';
import { checkArchive, restore as restoreFrom } from '../state/backup/index.ts';
import { describeContents } from './backup.ts';
import { readArguments, UsageError, type Command } from './command.ts';

/** `sluice restore`: fills the database from a file. */
export const restore: Command = {
  summary: 'Fills the database from a file of "sluice backup".',
  help: `Usage: sluice restore FILE [--replace] [--check] [--config FILE]

Fills the config's database, SQLite or PostgreSQL, from a file that "sluice backup" made of either kind.
The file is read to its end and checked before anything is written. The database is as before until the
very end, when all of it is in place. Stop all gateways on this database first.

--replace  Replaces all that the database has. An SQLite file is kept beside the new one, under another
           name; of PostgreSQL nothing is kept. Without it a database that has rows is refused.
--check    Only checks the file, and prints what it holds.

A file of an older version is brought up to date. One of a newer version is refused.`,
  async run(args) {
    const { values, positionals } = readArguments(args, {
      replace: { type: 'boolean' },
      check: { type: 'boolean' },
    });
    const [file] = positionals;
    if (file === undefined || positionals.length > 1)
      throw new UsageError('Say what from: sluice restore FILE.');
    if (values.check === true) {
      console.log(`${describeContents(await checkArchive(resolve(file)))}\n\n${file} is whole.`);
      return 0;
    }
    const config = await loadConfig(values.config, { only: 'settings' });
    const contents = await restoreFrom(databaseOf(config), resolve(file), {
      replace: values.replace === true,
    });
    console.log(`${describeContents(contents)}\n\nRestored from ${file}.`);
    if (contents.before !== undefined)
      console.log(`What the database had before is kept as ${contents.before}.`);
    return 0;
  },
};

/** `sluice backup`: saves the database to a file. Also describes an archive's contents for this command and `sluice restore`. */
import { resolve } from 'node:path';
import { loadConfig } from '../config/load-config.ts';
import { version } from '../config/installation/home.ts';
import { databaseOf } from '../config/database-of.ts';
import { backUp, type Contents } from '../state/backup/index.ts';
import { readArguments, UsageError, type Command } from './command.ts';
import { table } from './describe.ts';

/** The command. */
export const backup: Command = {
  summary: 'Saves the database to a file. The gateway may run meanwhile.',
  help: `Usage: sluice backup FILE [--config FILE]

Saves a consistent snapshot of the config's database, SQLite or PostgreSQL, to a new compressed file, and verifies the file.
Gateways may run meanwhile. "sluice restore" fills a database of either kind from the file.

The file contains API keys (as hashes), budgets and their spending, the usage log, stored responses, conversations, tasks, the
hash of the admin password, secrets of the run-time configuration (encrypted), and, unless SLUICE_SECRET is set, the key that
decrypts them. Only your user can read the file (mode 600). Protect it like the database.`,
  async run(args) {
    const { values, positionals } = readArguments(args, {});
    const [file] = positionals;
    if (file === undefined || positionals.length > 1)
      throw new UsageError('Name one file: sluice backup FILE.');
    const config = await loadConfig(values.config, { only: 'settings' });
    const contents = await backUp(databaseOf(config), resolve(file), version);
    console.log(`${describeContents(contents)}\n\nSaved to ${file}, and verified.`);
    return 0;
  },
};

/** Returns the kind of database, the version, the date and the row counts of an archive, for printing. */
export function describeContents({ header, tables }: Contents): string {
  const rows = tables
    .filter(({ rows: count }) => count > 0)
    .map(({ table: name, rows: count }) => [name, String(count)]);
  const kind = header.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL';
  return `${kind}, Sluice ${header.version}, ${header.made}\n\n${table([['table', 'rows'], ...rows]).join('\n')}`;
}

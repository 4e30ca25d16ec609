/** `sluice team`, `sluice budget` and the other commands on top of the admin API, each made from its rows of the table. */
import { parseArgs } from 'node:util';
import { UsageError, type Command } from '../command.ts';
import { fetchPublic, remoteAddress, remoteOptions, withRemote } from '../remote.ts';
import { withAccess, type AccessOptions } from './access.ts';
import { groupHelp, rowHelp } from './help.ts';
import { readOperations, type Operations } from './operations.ts';
import { perform } from './perform.ts';
import type { Row } from './row.ts';
import { groupSummaries, rows, type Group } from './rows.ts';

/** Returns the command of a group. */
export function adminCommand(group: Group): Command {
  return {
    summary: groupSummaries[group],
    help: groupHelp(group),
    async helpFor(args) {
      const row = rows.find((one) => one.group === group && one.verb === (args[0] ?? ''));
      const url = remoteAddress(accessOptions(args));
      return row === undefined || url === undefined ? undefined : rowHelp(row, await describe(url));
    },
    async run(given) {
      const args = given.map((text) => text.replace(/^--((?:clear-)?)organisation\b/, '--$1organization'));
      const { row, rest } = rowOf(group, args);
      return withAccess(accessOptions(args), describe, (access, operations) =>
        withRemote(access, (request, write) => perform(row, rest, { access, operations, request, write })),
      );
    },
  };
}

/** Returns the row that the arguments name, and the arguments behind its verb. */
function rowOf(
  group: Group,
  args: readonly string[],
): { readonly row: Row; readonly rest: readonly string[] } {
  const own = rows.filter((one) => one.group === group);
  const [verb = '', ...rest] = args;
  const named = own.find((one) => one.verb === verb && verb !== '');
  if (named !== undefined) return { row: named, rest };
  const [first, ...others] = own;
  const bare = own.find((one) => one.verb === '') ?? (others.length === 0 ? first : undefined);
  if (bare !== undefined && (verb === '' || verb.startsWith('-'))) return { row: bare, rest: args };
  const known = own.map((one) => one.verb).filter((one) => one !== '');
  throw new UsageError(
    verb === '' || verb.startsWith('-')
      ? `Name a subcommand: ${known.join(', ')}.`
      : `Unknown subcommand "${verb}". Use one of: ${known.join(', ')}.`,
  );
}

/** Parses the options that name the gateway. Ignores all other options. */
function accessOptions(args: readonly string[]): AccessOptions {
  const { values } = parseArgs({
    args: [...args],
    options: { ...remoteOptions, config: { type: 'string' } },
    strict: false,
    allowPositionals: true,
  });
  const text = (value: string | boolean | undefined): string | undefined =>
    typeof value === 'string' ? value : undefined;
  return { gateway: text(values.gateway), token: text(values.token), config: text(values.config) };
}

async function describe(url: string): Promise<Operations> {
  return readOperations(await fetchPublic(url, '/api/admin/openapi.json'));
}

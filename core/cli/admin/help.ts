/** Help for the commands on top of the admin API. */
import { valueHelp } from './entry-value.ts';
import { exitCodes } from './failure.ts';
import type { Operations } from './operations.ts';
import { commonOptions, operationOf, optionsOf } from './row-options.ts';
import { wordText } from './words.ts';
import type { Row } from './row.ts';
import { rows, type Group } from './rows.ts';

const access = `  --gateway URL       Address of the gateway. Default: $SLUICE_GATEWAY, else the gateway of the config on this machine.
  --token -           Reads the token of the admin API from standard input. Default: $SLUICE_TOKEN. For the gateway of the
                      config the command creates a temporary token in its database.
  --json              Prints JSON.`;

/** Returns the help of a group. */
export function groupHelp(group: Group): string {
  const own = rows.filter((one) => one.group === group);
  const lines = own.map((row) => `  ${usageOf(row)}\n      ${row.summary}.`);
  const hasConfirmation = own.some(({ asks }) => asks !== undefined);
  return `Usage: sluice ${group} COMMAND [options]

${lines.join('\n')}

Arguments are ids or names. To list all options of a command, as the gateway supports them, run:
sluice ${group} COMMAND --help --gateway URL

${access}
  --csv               Prints a list as CSV.
  --limit N, --all    Maximum number of items of a list, or all items. Default: 100.
${hasConfirmation ? '  --yes               Skips the confirmation.\n' : ''}${own.some(({ value }) => value !== undefined) ? valueHelp : ''}
Exit codes: 0 success, 1 failure, 2 invalid command line, ${exitCodes.denied} not allowed, ${exitCodes.missing} not found, ${exitCodes.conflict} conflict: it exists already, or was
changed by somebody else meanwhile.`;
}

/** Returns a command with its arguments: `sluice team show TEAM`. */
export function usageOf({ group, verb, words = [] }: Row): string {
  return ['sluice', group, verb, ...words.map(wordText)].filter((text) => text !== '').join(' ');
}

/** Descriptions of the options that are not fields of an operation. */
const common: Readonly<Record<string, string>> = {
  json: 'Prints JSON.',
  csv: 'Prints CSV.',
  limit: 'Maximum number of items. Default: 100.',
  all: 'Prints all items.',
  yes: 'Skips the confirmation.',
  'idempotency-key': 'Repeating the command with the same key within 24 hours creates nothing new.',
  'if-match': 'Changes this version only. Take it from an earlier response. Default: the current version.',
  type: 'Channel kind.',
  set: 'PATH=VALUE: sets an option.',
  secret: 'PATH=FROM: sets a secret option. FROM: a file, - for standard input, env:NAME or file:PATH.',
  file: 'Reads all options from a JSON file, or - from standard input.',
};

/** One option of a command, for its help and the reference. */
export interface OptionHelp {
  readonly flag: string;
  readonly shows: string;
  readonly text: string;
  readonly isRequired: boolean;
}

/** Returns the options of a command that the gateway supports. */
export function optionHelp(row: Row, operations: Operations): readonly OptionHelp[] {
  const operation = operationOf(row, operations);
  const own = optionsOf(row, operation).map(({ flag, shows, field, mayClear, kind }): OptionHelp => {
    const description = field.schema['description'];
    const notes = [
      typeof description === 'string' ? `${sentence(description)}` : '',
      kind === 'switch' ? `--no-${flag} disables it.` : '',
      kind === 'list' ? 'Separate entries by commas, or repeat the option.' : '',
      mayClear ? `--clear-${flag} removes the value.` : '',
      row.defaults?.[field.name] === undefined ? '' : `Default: ${row.defaults[field.name]}.`,
    ];
    return { flag, shows, text: notes.filter((note) => note !== '').join(' '), isRequired: field.isRequired };
  });
  const others = Object.entries(commonOptions(row, operation)).map(([flag, { type }]): OptionHelp => ({
    flag,
    shows: type === 'boolean' ? '' : flag === 'limit' ? 'N' : 'TEXT',
    text: common[flag] ?? '',
    isRequired: false,
  }));
  return [...own, ...others];
}

function sentence(text: string): string {
  const whole = text.slice(0, 1).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}

/** Returns the help of one command. */
export function rowHelp(row: Row, operations: Operations): string {
  const lines = optionHelp(row, operations)
    // The options of all commands follow, with --json among them.
    .filter(({ flag }) => flag !== 'json')
    .map(
      ({ flag, shows, text }) =>
        `  --${flag} ${shows}`.trimEnd().padEnd(34) + (text === '' ? '' : ` ${text}`),
    );
  return `Usage: ${usageOf(row)} [options]\n\n${row.summary}.\n\n${lines.join('\n').replaceAll(/ +$/gm, '')}\n\n${access}`;
}

/** Help for the commands on top of the admin API. */
import { valueHelp } from './entry-value.ts';
import { exitCodes } from './failure.ts';
import type { Operations } from './operations.ts';
import { commonOptions, operationOf, optionsOf } from './row-options.ts';
import { wordText } from './words.ts';
import type { Row } from './row.ts';
import { rows, type Group } from './rows.ts';

const access = `  --gateway URL       Address of the gateway. Default: SLUICE_GATEWAY, else the gateway of the config on this machine.
  --token -           Reads a token of the admin API from standard input. Default: the variable SLUICE_TOKEN. Without
                      --gateway none is needed: a token is made in the database of the config for the one command.
  --json              Prints JSON for programs.`;

/** Returns the help of a group. */
export function groupHelp(group: Group): string {
  const own = rows.filter((one) => one.group === group);
  const lines = own.map((row) => `  ${usageOf(row)}\n      ${row.summary}.`);
  const hasConfirmation = own.some(({ asks }) => asks !== undefined);
  return `Usage: sluice ${group} COMMAND [options]

${lines.join('\n')}

Things are named by their ids or their names. sluice ${group} COMMAND --help --gateway URL lists all options of a command, as that
gateway has them.

${access}
  --csv               Prints CSV for lists.
  --limit N, --all    So many items of a list, or all of them. Default: 100.
${hasConfirmation ? '  --yes               Does not ask before something is deleted.\n' : ''}${own.some(({ value }) => value !== undefined) ? valueHelp : ''}
Exit codes: 0 done, 1 failed, 2 wrong command line, ${exitCodes.denied} not allowed, ${exitCodes.missing} not found, ${exitCodes.conflict} changed by somebody else meanwhile or
there already.`;
}

/** Returns a command with its words: `sluice team show TEAM`. */
export function usageOf({ group, verb, words = [] }: Row): string {
  return ['sluice', group, verb, ...words.map(wordText)].filter((text) => text !== '').join(' ');
}

/** Descriptions of the options that are not fields of an operation. */
const common: Readonly<Record<string, string>> = {
  json: 'Prints JSON.',
  csv: 'Prints CSV.',
  limit: 'Number of items. Default: 100.',
  all: 'All items.',
  yes: 'Does not ask before it does it.',
  'idempotency-key': 'Makes repeated commands with the same key create one thing, within 24 hours.',
  'if-match': 'Version that is changed, from an earlier answer. Default: the present one.',
  type: 'Kind of the channel.',
  set: 'PATH=VALUE: sets an option.',
  secret: 'PATH=FROM: sets a secret from a file, - for standard input, env:NAME or file:PATH.',
  file: 'Reads all options from a file with a JSON object, - for standard input.',
};

/** One option of a command, for its help and the reference. */
export interface OptionHelp {
  readonly flag: string;
  readonly shows: string;
  readonly text: string;
  readonly isRequired: boolean;
}

/** Returns the options of a command as the gateway has them. */
export function optionHelp(row: Row, operations: Operations): readonly OptionHelp[] {
  const operation = operationOf(row, operations);
  const own = optionsOf(row, operation).map(({ flag, shows, field, mayClear, kind }): OptionHelp => {
    const description = field.schema['description'];
    const notes = [
      typeof description === 'string' ? `${sentence(description)}` : '',
      kind === 'switch' ? `--no-${flag} disables it.` : '',
      kind === 'list' ? 'Separate entries by commas, or repeat it.' : '',
      mayClear ? `--clear-${flag} takes it away.` : '',
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
    // It is among those of every command, which follow.
    .filter(({ flag }) => flag !== 'json')
    .map(
      ({ flag, shows, text }) =>
        `  --${flag} ${shows}`.trimEnd().padEnd(34) + (text === '' ? '' : ` ${text}`),
    );
  return `Usage: ${usageOf(row)} [options]\n\n${row.summary}.\n\n${lines.join('\n').replaceAll(/ +$/gm, '')}\n\n${access}`;
}

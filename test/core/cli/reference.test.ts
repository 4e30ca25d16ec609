import { expect, test } from 'vitest';
import { groupHelp, optionHelp, usageOf } from '../../../core/cli/admin/help.ts';
import { readOperations } from '../../../core/cli/admin/operations.ts';
import { groupSummaries, rows, type Group } from '../../../core/cli/admin/rows.ts';
import { commands } from '../../../core/cli/commands.ts';
import { openapiDocument } from '../../../plugins/admin/openapi.ts';

const operations = readOperations(openapiDocument());

const block = (text: string): string => ['```text', text.trim(), '```'].join('\n');

function groupPage(group: Group): string {
  const usages = rows
    .filter((row) => row.group === group)
    .map((row) => {
      const options = optionHelp(row, operations)
        .filter(({ flag }) => flag !== 'json')
        .map(({ flag, shows, text }) => `  ${`--${flag} ${shows}`.padEnd(32)} ${text}`.trimEnd());
      return [usageOf(row), ...options].join('\n');
    });
  return [
    `## sluice ${group}`,
    block(groupHelp(group)),
    'Further options of each command:',
    block(usages.join('\n\n')),
  ].join('\n\n');
}

test('the reference has every command with all of its options', async () => {
  const page = [
    '# Command line',
    'This page is generated: `npx vitest run test/core/cli/reference.test.ts -u` writes it from the commands themselves. `sluice help COMMAND` prints the same, but for the options of each command on top of the admin API: `sluice team create --help --gateway URL` asks the gateway for those. `--json` and the options that name the gateway are stated once for each group.',
    ...(Object.keys(groupSummaries) as Group[]).map(groupPage),
  ];
  for (const [name, load] of Object.entries(commands).filter(
    ([one]) => !Object.hasOwn(groupSummaries, one),
  )) {
    // oxlint-disable-next-line no-await-in-loop -- in the order of the page
    page.push(`## sluice ${name}`, block((await load()).help));
  }
  await expect(`${page.join('\n\n')}\n`).toMatchFileSnapshot('../../../docs/reference/cli.md');
});

test('every command names an operation that there is, and options that it has', () => {
  for (const row of rows) {
    const names = new Set(optionHelp(row, operations).map(({ flag }) => flag));
    expect({ command: usageOf(row), names: [...names] }).toEqual({
      command: usageOf(row),
      names: expect.arrayContaining(['json']),
    });
    for (const wanted of typeof row.operation === 'string' ? (row.options ?? []) : []) {
      const fields = operations.get(row.operation as string)?.fields.map(({ name }) => name);
      expect({ command: usageOf(row), fields }).toEqual({
        command: usageOf(row),
        fields: expect.arrayContaining([wanted]),
      });
    }
  }
});

import { expect, test } from 'vitest';
import { groupHelp, optionHelp, usageOf } from '../../../core/cli/admin/help.ts';
import { readOperations } from '../../../core/cli/admin/operations.ts';
import { groupSummaries, rows, type Group } from '../../../core/cli/admin/rows.ts';
import type { Command } from '../../../core/cli/command.ts';
import { openapiDocument } from '../../../plugins/admin/openapi.ts';

const operations = readOperations(openapiDocument());

/** Commands with a file of their own, by their names. */
const others: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('../../../core/cli/start.ts')).start,
  check: async () => (await import('../../../core/cli/check.ts')).check,
  key: async () => (await import('../../../core/cli/key.ts')).key,
  login: async () => (await import('../../../core/cli/login.ts')).login,
  export: async () => (await import('../../../core/cli/export.ts')).exportConfig,
  init: async () => (await import('../../../core/cli/init.ts')).init,
  doctor: async () => (await import('../../../core/cli/doctor.ts')).doctor,
  connect: async () => (await import('../../../core/cli/connect.ts')).connect,
  models: async () => (await import('../../../core/cli/models.ts')).models,
  prices: async () => (await import('../../../core/cli/prices.ts')).prices,
  backup: async () => (await import('../../../core/cli/backup.ts')).backup,
  restore: async () => (await import('../../../core/cli/restore.ts')).restore,
};

const block = (text: string): string => ['```text', text.trim(), '```'].join('\n');

function groupPage(group: Group): string {
  const commands = rows
    .filter((row) => row.group === group)
    .map((row) => {
      const options = optionHelp(row, operations)
        .filter(({ flag }) => flag !== 'json')
        .map(({ flag, shows, text }) => `  ${`--${flag} ${shows}`.padEnd(32)} ${text}`.trimEnd());
      return [usageOf(row), ...options].join('\n');
    });
  return [`## sluice ${group}`, block(groupHelp(group)), 'All options:', block(commands.join('\n\n'))].join(
    '\n\n',
  );
}

test('the reference has every command with all of its options', async () => {
  const page = [
    '# Command line',
    'This page is generated: `npx vitest run test/core/cli/reference.test.ts -u` writes it from the commands themselves. `sluice help COMMAND` prints the same.',
    ...(Object.keys(groupSummaries) as Group[]).map(groupPage),
  ];
  for (const [name, load] of Object.entries(others)) {
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

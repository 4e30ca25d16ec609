/** Formats a gateway's plugins, channels and warnings as text for a terminal, and rows as aligned columns. */
import type { Gateway } from '../front/gateway.ts';
import { stages } from '../call/pipeline.ts';

/** Returns the plugins in their order, the channels with their formats and models, and the warnings. */
export function describeGateway({ plugins, catalog, warnings }: Gateway): string {
  const pipeline = stages
    .map(
      (stage) => [stage, plugins.filter((plugin) => plugin.stage === stage).map(({ name }) => name)] as const,
    )
    .filter(([, names]) => names.length > 0)
    .map(([stage, names]) => [stage, names.join(', ')]);
  const channels = catalog.channels.flatMap(({ id, kind, models, speaks }) => [
    [
      id === kind ? id : `${id} (${kind})`,
      `serves ${models.length === 0 ? 'all models that its provider lists' : short(models)}`,
    ],
    ...Object.entries(speaks).map(([operation, formats]) => [
      '',
      `${operation}: speaks ${formats.join(', ')}`,
    ]),
  ]);
  return [
    section('Plugins, in the order in which they run', pipeline),
    section('Channels', channels.length > 0 ? channels : [['none', '']]),
    ...(warnings.length > 0 ? [`Warnings\n${warnings.map((warning) => `  ${warning}`).join('\n')}`] : []),
  ].join('\n\n');
}

/** Returns a title above two columns. */
function section(title: string, rows: readonly (readonly string[])[]): string {
  return `${title}\n${table(rows)
    .map((line) => `  ${line}`)
    .join('\n')}`;
}

/** Returns one line for each row. Each column is as wide as its widest cell. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length);
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function short(models: readonly string[]): string {
  const most = 8;
  return models.length <= most
    ? models.join(', ')
    : `${models.slice(0, most).join(', ')} and ${models.length - most} more`;
}

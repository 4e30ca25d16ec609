/** `sluice doctor`: checks everything that a gateway needs, and prints what to do. */
import { databaseUrl } from '../config/database-of.ts';
import { examineConfig } from './check.ts';
import { readArguments, UsageError, type Command } from './command.ts';
import { agentsHelp } from './doctor/agents/help.ts';
import { examineAll } from './doctor/examine.ts';
import { findingsOf, type Finding } from './doctor/finding.ts';

const { ok, error } = findingsOf('config');

const gibibyte = 1024 ** 3;

/** Page that explains each finding. */
const page = 'docs/guides/doctor.md';

/** The command. */
export const doctor: Command = {
  summary: 'Checks config, database, Redis, disk, limits and providers, and tells what to fix.',
  help: `Usage: sluice doctor [--json] [--providers] [--min-free GIB] [--certificate-days N] [--config FILE]

Checks everything that a gateway with this config needs. Prints each finding as ok, warning or error, with what to do.
Changes nothing and sends no call to a model. Exits with code 1 if there is an error. ${page} explains the findings.

--json              Prints the findings as JSON.
--providers         Also requests the list of models from each provider, with the key of its channel. This is free.
--min-free          Warns when the disk of the data folder has less free space than this, in GiB. Default: 1.
--certificate-days  Warns when a certificate expires within so many days. Default: 21.

${agentsHelp}`,
  async run(args) {
    if (args[0] === 'agents') return (await import('./doctor/agents/index.ts')).doctorAgents(args.slice(1));
    const { values, positionals } = readArguments(args, {
      json: { type: 'boolean' },
      providers: { type: 'boolean' },
      'min-free': { type: 'string' },
      'certificate-days': { type: 'string' },
    });
    if (positionals.length > 0) throw new UsageError(`Unexpected argument "${positionals[0]}".`);
    const findings = await findingsOfConfig(values.config, {
      minFree: numberOf('--min-free', values['min-free'], 1) * gibibyte,
      certificateDays: numberOf('--certificate-days', values['certificate-days'], 21),
      asksProviders: values.providers === true,
    });
    console.log(values.json === true ? JSON.stringify(findings, undefined, 2) : shown(findings));
    return findings.some(({ status }) => status === 'error') ? 1 : 0;
  },
};

function numberOf(option: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const number = Number(text);
  if (!/^\d{1,6}(\.\d{1,6})?$/.test(text)) throw new UsageError(`${option} must be a number.`);
  return number;
}

async function findingsOfConfig(
  option: string | undefined,
  options: { readonly minFree: number; readonly certificateDays: number; readonly asksProviders: boolean },
): Promise<readonly Finding[]> {
  const { problems, config } = await examineConfig(option);
  const findings = problems.map((message) => error(message, 'Correct the config, and run: sluice check'));
  if (config === undefined) return findings;
  const found = await examineAll({ config, databaseUrl: databaseUrl(config), now: Date.now, ...options });
  return [...(findings.length === 0 ? [ok(`${config.file} is valid.`)] : findings), ...found];
}

/** Returns the findings as text, errors first. */
function shown(findings: readonly Finding[]): string {
  const order = ['error', 'warning', 'ok'];
  const sorted = findings.toSorted((one, other) => order.indexOf(one.status) - order.indexOf(other.status));
  const lines = sorted.map(({ check, status, message, fix }) => {
    const head = `${status.padEnd(9)}${check.padEnd(11)}${message}`;
    const indent = ' '.repeat(20);
    return fix === undefined ? head : `${head}\n${indent}${fix}\n${indent}${page}#${check}`;
  });
  const count = (wanted: string): number => findings.filter(({ status }) => status === wanted).length;
  const counted = (wanted: string): string => `${count(wanted)} ${wanted}${count(wanted) === 1 ? '' : 's'}`;
  return `${lines.join('\n')}\n\n${counted('error')}, ${counted('warning')}, ${count('ok')} ok.`;
}

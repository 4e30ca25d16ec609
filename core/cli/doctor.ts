/** `sluice doctor`: looks at everything a gateway needs, and prints what to do. */
import { databaseUrl } from '../config/database-of.ts';
import { examineConfig } from './check.ts';
import { readArguments, UsageError, type Command } from './command.ts';
import { agentsHelp } from './doctor/agents/help.ts';
import { examineAll } from './doctor/examine.ts';
import { findingsOf, type Finding } from './doctor/finding.ts';

const { ok, error } = findingsOf('config');

const gibibyte = 1024 ** 3;

/** Where each finding is explained. */
const page = 'docs/guides/doctor.md';

/** `sluice doctor`: looks at everything around a gateway, and says what to do. */
export const doctor: Command = {
  summary: 'Looks at config, database, Redis, disk, limits and providers, and says what to do.',
  help: `Usage: sluice doctor [--json] [--providers] [--min-free GIB] [--certificate-days N] [--config FILE]

Looks at everything that a gateway with this config needs, and prints a page of findings: ok, warning or error, each with what to do.
Changes nothing, and sends no call. Code 1 when there is an error. ${page} explains the findings.

--json              Prints the findings as JSON.
--providers         Also asks each provider for its list of models, with the key of its channel. Costs nothing.
--min-free          Free space of the data folder below which there is a warning, in GiB. Default: 1.
--certificate-days  Days before its end at which a certificate is a warning. Default: 21.

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
  if (!/^\d{1,6}(\.\d{1,6})?$/.test(text)) throw new UsageError(`${option} takes a number.`);
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
  return [...(findings.length === 0 ? [ok(`${config.file} is sound.`)] : findings), ...found];
}

/** The page: errors first. */
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

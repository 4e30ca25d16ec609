import { env } from '../../../settings/environment.ts';
import { readArguments, UsageError } from '../../command.ts';
import { accessOf, accessOptions } from '../../connect/access.ts';
import { agentNamed } from '../../connect/agents/index.ts';
import { table } from '../../describe.ts';
import { findAgents, type Found } from './find.ts';
import { tryAgent, type Tried } from './try-agent.ts';

/** Runs `sluice doctor agents`. Returns the exit code. */
export async function doctorAgents(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, {
    ...accessOptions,
    path: { type: 'string' },
    timeout: { type: 'string' },
    json: { type: 'boolean' },
  });
  const path = values.path ?? env('PATH', '');
  const found = chosen(findAgents(path), positionals);
  const timeout = secondsOf(values.timeout) * 1_000;
  if (found.length === 0) {
    console.error(
      'No known agent is installed. "sluice connect" lists the known agents. To search other folders use --path.',
    );
    return 1;
  }
  const access = await accessOf(values);
  if (access.secret === '')
    throw new UsageError('Running agents needs an API key. Set --key, --key-env or $SLUICE_KEY.');
  const tried: Tried[] = [];
  for (const one of found) {
    if (values.json !== true) console.error(`${one.agent.title} …`);
    // One after the other, because each agent may need the whole machine.
    // oxlint-disable-next-line no-await-in-loop
    tried.push(await tryAgent(one, access, timeout));
  }
  console.log(values.json === true ? JSON.stringify(tried, undefined, 2) : shown(tried));
  return tried.every(({ answers }) => answers) ? 0 : 1;
}

function chosen(found: readonly Found[], names: readonly string[]): readonly Found[] {
  if (names.length === 0) return found;
  return names.map((name) => {
    const agent = agentNamed(name);
    const one = found.find((other) => other.agent === agent);
    if (one !== undefined) return one;
    throw new UsageError(
      agent?.run === undefined
        ? `"${name}" is not an agent that this command can run. Run "sluice doctor agents" without it.`
        : `${agent.title} is not installed: no program "${agent.run.program}" was found.`,
    );
  });
}

function secondsOf(text = '120'): number {
  if (!/^\d{1,4}$/.test(text) || Number(text) < 1)
    throw new UsageError('--timeout must be a number of seconds from 1 to 9999.');
  return Number(text);
}

function shown(tried: readonly Tried[]): string {
  const word = (is: boolean): string => (is ? 'yes' : 'no');
  const rows = tried.map(({ title, answers, streams, tools, listsModels, requests, why = '' }) => [
    title,
    word(answers),
    word(streams),
    tools,
    listsModels ? 'yes' : 'not asked',
    String(requests),
    why,
  ]);
  return table([['agent', 'answers', 'streams', 'tools', 'models', 'requests', ''], ...rows]).join('\n');
}

/** `sluice connect`: writes the settings of an agent or SDK for this gateway. */
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { env } from '../settings/environment.ts';
import { readArguments, UsageError, type Command } from './command.ts';
import { accessOf, accessOptions } from './connect/access.ts';
import type { Access, Agent, SettingsEnvironment, Plan } from './connect/agent.ts';
import { agentNamed, agents } from './connect/agents/index.ts';
import { shownDiff } from './connect/diff.ts';
import { changeOf, checkMode, undo, write } from './connect/files.ts';
import { table } from './describe.ts';

const help = `Usage: sluice connect
       sluice connect AGENT [--url URL] [--key KEY | --key-env NAME] [--model MODEL] [--small-model MODEL]
                      [--write] [--offline] [--dir FOLDER]
       sluice connect AGENT --undo [--dir FOLDER]

Connects a coding agent to this gateway: prints the changes of the agent's settings files, and makes them with --write.
All other settings in the files are kept. Without AGENT it lists the supported agents.

--url          Address of the gateway. Default: $SLUICE_URL, else http://localhost:8080.
--key          API key, or - to read it from standard input. Default: $SLUICE_KEY. The key is written into the agent's
               settings, so other users must not be able to read those files.
--key-env      Name of the environment variable from which the agent reads the key. The key is written to no file.
--model        Model for the agent. Default: the model of the gateway, if it lists only one.
--small-model  Model for titles and summaries, if the agent uses one. Default: --model.
--write        Writes the changes. Without this option they are only printed.
--offline      Skips the check that the gateway accepts the key and serves the models.
--dir          Home folder with the settings. Default: your home folder.
--undo         Reverts the changes. Keeps changes that others have made since.`;

/** `sluice connect`: connects coding agents to this gateway. */
export const connect: Command = {
  summary: 'Connects coding agents to this gateway.',
  help,
  async run(args) {
    const { values, positionals } = readArguments(args, {
      ...accessOptions,
      write: { type: 'boolean' },
      dir: { type: 'string' },
      undo: { type: 'boolean' },
    });
    const [name, ...more] = positionals;
    if (more.length > 0) throw new UsageError(`Unexpected argument "${more[0]}".`);
    if (name === undefined) {
      console.log(table(agents.map(({ name: word, title }) => [word, title])).join('\n'));
      return 0;
    }
    const agent = agentNamed(name);
    if (agent === undefined)
      throw new UsageError(
        `Unknown agent "${name}". Known agents: ${agents.map(({ name: word }) => word).join(', ')}.`,
      );
    const environment = environmentOf(values.dir);
    if (values.undo === true) return undoAll(agent, environment);
    const access = await accessOf(values);
    return carryOut(agent, agent.plan(access, environment), access, values.write === true);
  },
};

function environmentOf(folder: string | undefined): SettingsEnvironment {
  const { platform } = process;
  return folder === undefined
    ? { home: homedir(), platform, variable: (name) => env(name) }
    : { home: resolve(folder), platform, variable: () => undefined };
}

/** Shows the changes, and writes them all or none. */
function carryOut(agent: Agent, plan: Plan, { key }: Access, isWriting: boolean): number {
  const secret = 'value' in key ? key.value : undefined;
  const changes = plan.files.map(changeOf).filter(({ before, after }) => before !== after);
  for (const { path, before, after, own } of changes)
    console.log(`${path}\n${shownDiff(before ?? '', after, own.difference(new Set([secret])))}\n`);
  for (const change of changes) checkMode(change, secret);
  if (isWriting) for (const change of changes) write(change);
  printPlan(plan);
  if (plan.files.length === 0) return 0;
  if (changes.length === 0) console.log(`${agent.title} is already connected.`);
  else if (isWriting)
    console.log(`${agent.title} is connected. To undo this run: sluice connect ${agent.name} --undo`);
  else console.log('Nothing was written. To write the changes add --write.');
  return 0;
}

function printPlan({ exports = {}, notes = [] }: Plan): void {
  const lines = Object.entries(exports).map(([name, value]) => `  export ${name}=${value}`);
  if (lines.length > 0) console.log(`Add these lines to the profile of your shell:\n${lines.join('\n')}\n`);
  if (notes.length > 0) console.log(`${notes.join('\n')}\n`);
}

/** Undoes what any `sluice connect` has done to an agent's files. Throws an Error at the end when some could not be restored. */
function undoAll(agent: Agent, environment: SettingsEnvironment): number {
  const unnamed: Access = { url: '', key: { value: 'x' }, model: '', smallModel: '' };
  const failures: unknown[] = [];
  let changed = 0;
  for (const file of agent.plan(unnamed, environment).files) {
    try {
      const how = undo(file);
      if (how === 'untouched') continue;
      changed += 1;
      console.log(`${file.path}: ${how}`);
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) {
    const reasons = failures.map((error) => (error instanceof Error ? error.message : String(error)));
    throw new Error(reasons.join('\n'), { cause: failures[0] });
  }
  if (changed === 0) console.log(`There is nothing to undo for ${agent.title}.`);
  return 0;
}

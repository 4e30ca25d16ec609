/** Finds the installed programs of agents for `sluice doctor agents`. */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Agent, Run } from '../../connect/agent.ts';
import { agents } from '../../connect/agents/index.ts';

/** An agent whose program is installed. */
export interface Found {
  readonly agent: Agent;
  readonly run: Run;
  /** Absolute path of the program. */
  readonly program: string;
}

/** Returns the agents whose programs are in one of the folders of a `PATH`; of several programs the first, as in a shell. */
export function findAgents(path: string): readonly Found[] {
  const folders = path.split(delimiter).filter((folder) => folder !== '');
  return agents.flatMap((agent) => {
    const { run } = agent;
    if (run === undefined) return [];
    const program = folders.map((folder) => join(folder, run.program)).find(isProgram);
    return program === undefined ? [] : [{ agent, run, program }];
  });
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

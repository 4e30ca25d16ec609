/** The list of all agents that `sluice connect` can set up, and the search by name. */
import type { Agent } from '../agent.ts';
import { anthropicSdk, copilot, cursor, geminiSdk, openaiSdk, roo } from './by-hand.ts';
import { cline, crush, kilo, opencode, qwenCode, zed } from './chat-completions.ts';
import { geminiCli } from './generate-content.ts';
import { claudeCode } from './messages.ts';
import { codex } from './responses.ts';
import { aider, continueDev, goose, llm } from './yaml.ts';

/** All agents, in the order in which they are printed. */
export const agents: readonly Agent[] = [
  claudeCode,
  codex,
  geminiCli,
  opencode,
  qwenCode,
  aider,
  cline,
  continueDev,
  crush,
  goose,
  kilo,
  zed,
  llm,
  copilot,
  cursor,
  roo,
  openaiSdk,
  anthropicSdk,
  geminiSdk,
];

/** Returns the agent of this name or alias; undefined where there is none. */
export function agentNamed(name: string): Agent | undefined {
  return agents.find((agent) => agent.name === name || agent.aliases?.includes(name) === true);
}

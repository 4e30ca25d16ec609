/** Reads the environment of the process: variables, `.env`, production mode, terminal and available memory. */
import { existsSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { hideSecret } from '../log/known-secrets.ts';
import { logLevels } from '../log/levels.ts';

/** Names of variables that hold secrets. */
const secretName = /KEY|SECRET|TOKEN|PASS|CREDENTIAL/i;

/**
 * A variable of the environment or of `.env`; empty counts as not set. The values of variables with names like `OPENAI_API_KEY` are masked
 * in the log and in errors.
 *
 * @example
 * openai({ key: env('OPENAI_API_KEY'), baseUrl: env('OPENAI_URL', 'https://api.openai.com/v1') })
 */
export function env(name: string): string | undefined;
export function env(name: string, fallback: string): string;
export function env(name: string, fallback?: string): string | undefined {
  const value = process.env[name]?.trim();
  if (value !== undefined && secretName.test(name)) hideSecret(value);
  return value || fallback;
}

/** Reads `.env` beside the config when there is one; variables that are already set win. */
export function loadEnvironmentFile(root: string): void {
  const file = join(root, '.env');
  if (existsSync(file)) process.loadEnvFile(file);
}

/** Returns true if standard output is a terminal: a person watches, and no load balancer is waiting. */
export function writesToTerminal(): boolean {
  return process.stdout.isTTY;
}

/** True when NODE_ENV is `production`. */
export function isProduction(): boolean {
  return process.env.NODE_ENV === 'production';
}

/** Returns the memory that this process and its children may have together, in bytes. */
export function memoryLimit(): number {
  return Math.min(process.constrainedMemory() || Infinity, totalmem());
}

/** Returns the level of the log until the config is known. */
export function firstLogLevel(): string {
  const level = env('SLUICE_LOG', 'info');
  return logLevels.some((one) => one === level) ? level : 'info';
}

import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** A variable of the environment or of `.env`; empty counts as not set. */
export function env(name: string): string | undefined;
export function env(name: string, fallback: string): string;
export function env(name: string, fallback?: string): string | undefined {
  return process.env[name]?.trim() || fallback;
}

/** Reads `.env` beside the config when there is one; variables that are already set win. */
export function loadEnvironmentFile(root: string): void {
  const file = join(root, '.env');
  if (existsSync(file)) process.loadEnvFile(file);
}

/** True when NODE_ENV says that this is production. */
export function isProduction(): boolean {
  return process.env.NODE_ENV === 'production';
}

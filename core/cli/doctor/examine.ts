/** Runs all checks of `sluice doctor` in parallel, each with a time limit, and collects their findings. */
import { maskSecrets } from '../../log.ts';
import { addresses, providers } from './checks/channels.ts';
import { database } from './checks/database.ts';
import { disk } from './checks/disk.ts';
import { limits } from './checks/limits.ts';
import { listen } from './checks/listen.ts';
import { redis } from './checks/redis.ts';
import { runtime } from './checks/runtime.ts';
import { secrets } from './checks/secrets.ts';
import type { Check, Examined, Finding } from './finding.ts';
import { withTimeLimit } from './time-limit.ts';

/** All checks, in the order in which their findings are printed. */
export const checks: readonly Check[] = [
  runtime,
  listen,
  secrets,
  database,
  redis,
  disk,
  limits,
  addresses,
  providers,
];

/** Maximum time for one check, in milliseconds. */
const timeoutMs = 60_000;

/** Runs the checks in parallel. Masks secrets in their findings. */
export async function examineAll(examined: Examined, some = checks): Promise<readonly Finding[]> {
  const found = await Promise.all(some.map((check) => lookOf(check, examined)));
  return found.flat().map((finding) => ({ ...finding, message: maskSecrets(finding.message) }));
}

async function lookOf(check: Check, examined: Examined): Promise<readonly Finding[]> {
  const failed = (message: string): readonly Finding[] => [
    {
      check: check.name,
      status: 'error',
      message,
      fix: 'Fix the problem that the message names, then run: sluice doctor',
    },
  ];
  try {
    const looking = Promise.resolve().then(() => check.look(examined));
    return await withTimeLimit(looking, timeoutMs, `The check did not finish within ${timeoutMs} ms.`);
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
}

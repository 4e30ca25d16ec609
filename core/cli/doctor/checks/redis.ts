/** Looks at the shared store. */
import { inspectRedis, type RedisFacts } from '../../../state/links/inspect-redis.ts';
import { findingsOf, shownBytes, type Check, type Finding } from '../finding.ts';
import { clockFindings } from './clock.ts';

const { ok, warning, error } = findingsOf('redis');

/** Oldest major version of Redis that is tested. */
const oldest = 6;

/** Share of its memory from which on a Redis counts as nearly full. */
const nearlyFull = 0.8;

/** The shared store: reachable, recent, and not about to lose what it holds. */
export const redis: Check = {
  name: 'redis',
  async look({ config, now }) {
    const { shared } = config.settings;
    if (/^memory:/i.test(shared.url)) return [ok('Limits are counted in memory: there is no shared store.')];
    let facts: RedisFacts;
    try {
      facts = await inspectRedis(shared, now);
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      const effect =
        shared.whenDown === 'refuse' ? 'Calls with limits are refused.' : 'Each process counts for itself.';
      return [error(`${message} ${effect}`, 'Start the server, or correct "shared.url" (SLUICE_SHARED).')];
    }
    const { info, clock } = facts;
    return [
      ...(info === undefined
        ? [ok('Redis answers. Its user may not run INFO: version and memory are not checked.')]
        : [
            ok(`Redis ${info.version} answers. It holds ${shownBytes(info.usedMemory)}.`),
            ...memoryFindings(info),
          ]),
      ...clockFindings('Redis', clock),
    ];
  },
};

function memoryFindings({
  version,
  policy,
  maxMemory,
  usedMemory,
}: NonNullable<RedisFacts['info']>): readonly Finding[] {
  const found: Finding[] = [];
  if (Number.parseInt(version, 10) < oldest)
    found.push(
      warning(`Redis ${version} is not supported.`, `Upgrade to Redis ${oldest} or later, or Valkey.`),
    );
  if (policy.startsWith('allkeys-') || policy.startsWith('volatile-'))
    found.push(
      warning(
        `maxmemory-policy is ${policy}: when its memory is full, Redis forgets limits that were used up, and calls beyond them run.`,
        'Set maxmemory-policy to noeviction, and give this Redis no other program’s data.',
      ),
    );
  else if (maxMemory > 0 && usedMemory > nearlyFull * maxMemory)
    found.push(
      warning(
        `Redis uses ${shownBytes(usedMemory)} of ${shownBytes(maxMemory)}. When it is full it refuses to count calls.`,
        'Raise maxmemory, or move the data of other programs elsewhere.',
      ),
    );
  return found;
}

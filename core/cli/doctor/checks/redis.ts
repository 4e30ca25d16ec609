import { inspectRedis, type RedisFacts } from '../../../state/links/inspect-redis.ts';
import { findingsOf, shownBytes, type Check, type Finding } from '../finding.ts';
import { clockFindings } from './clock.ts';

const { ok, warning, error } = findingsOf('redis');

/** The oldest Redis that is tried. */
const oldest = 6;

/** Share of its memory from which on a Redis is nearly full. */
const nearlyFull = 0.8;

/** The shared store: reachable, recent, and not about to lose what it holds. */
export const redis: Check = {
  name: 'redis',
  async look({ config, now }) {
    const { url, whenDown } = config.settings.shared;
    if (!/^rediss?:/i.test(url)) return [ok('Limits are counted in memory: there is no shared store.')];
    let facts: RedisFacts;
    try {
      facts = await inspectRedis(url);
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      const effect =
        whenDown === 'refuse' ? 'Calls with limits are refused.' : 'Each process counts for itself.';
      return [error(`${message}. ${effect}`, 'Start the server, or correct "shared.url" (SLUICE_SHARED).')];
    }
    return [
      ok(`Redis ${facts.version} answers. It holds ${shownBytes(facts.usedMemory)}.`),
      ...memoryFindings(facts),
      ...clockFindings('Redis', facts.clock, now()),
    ];
  },
};

function memoryFindings({ version, policy, maxMemory, usedMemory }: RedisFacts): readonly Finding[] {
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

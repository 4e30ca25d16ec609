/** Checks the shared store. */
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
    if (/^memory:/i.test(shared.url))
      return [ok('No shared store is configured. Each process counts limits in memory.')];
    let facts: RedisFacts;
    try {
      facts = await inspectRedis(shared, now);
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      const effect =
        shared.whenDown === 'refuse'
          ? 'The gateway rejects calls that have limits.'
          : 'Each process counts limits on its own.';
      return [error(`${message} ${effect}`, 'Start the server, or correct "shared.url" (SLUICE_SHARED).')];
    }
    const { info, clock } = facts;
    return [
      ...(info === undefined
        ? [
            ok(
              'Redis is reachable. Its version and memory were not checked, because its user may not run INFO.',
            ),
          ]
        : [
            ok(`Redis ${info.version} is reachable. It uses ${shownBytes(info.usedMemory)}.`),
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
        `maxmemory-policy is ${policy}: when its memory is full, Redis deletes counters, and calls can exceed their limits.`,
        'Set maxmemory-policy to noeviction, and store no data of other programs in this Redis.',
      ),
    );
  else if (maxMemory > 0 && usedMemory > nearlyFull * maxMemory)
    found.push(
      warning(
        `Redis uses ${shownBytes(usedMemory)} of ${shownBytes(maxMemory)}. When it is full, Redis rejects writes, and limits cannot be counted.`,
        'Raise maxmemory, or move the data of other programs to another Redis.',
      ),
    );
  return found;
}

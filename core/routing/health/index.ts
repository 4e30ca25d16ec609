/** Opens the circuit breakers of targets, shared over Redis or the primary process, and finds the best and worst key of a channel. */
import type { Channel } from '../../sdk/call.ts';
import { HealthRegistry, type HealthOptions } from './registry.ts';
import { primarySharing, type HealthLine } from './primary.ts';
import { redisSharing } from './redis.ts';
import type { SharedStoreSettings } from '../../settings/shared.ts';
import type { HealthSettings } from '../../settings/routing.ts';
import type { Health, Standing, TargetHealth } from '../../sdk/health.ts';

/**
 * Opens the health of targets as this store's gateways know it: `memory:` (the processes of this gateway alone, or this process where there
 * is no `line`) or `redis://…`. At once, also when it cannot be reached.
 */
export function openHealth(settings: HealthSettings, shared: SharedStoreSettings, line?: HealthLine): Health {
  if (!shared.url.startsWith('memory:')) return createHealth(settings, { share: redisSharing(shared) });
  return createHealth(settings, line === undefined ? {} : { share: primarySharing(line) });
}

/** Returns health in its initial state: all targets are allowed. */
export function createHealth(settings: HealthSettings, options: HealthOptions = {}): Health {
  return new HealthRegistry(settings, options);
}

const order: readonly Standing[] = ['up', 'probing', 'cooling', 'resting'];

/** Returns the states of the best and the worst key of a channel from {@link Health.report}. Models are ignored. */
export function channelStanding(
  report: readonly TargetHealth[],
  { id, keys }: Pick<Channel, 'id' | 'keys'>,
): { readonly best: Standing; readonly worst: Standing } {
  const ranks = keys.map((key) => {
    const status = report.find((one) => one.channel === id && one.key === key.id && one.model === undefined);
    return order.indexOf(status?.standing ?? 'up');
  });
  const sorted = ranks.toSorted((one, other) => one - other);
  return { best: order[sorted[0] ?? 0] ?? 'up', worst: order[sorted.at(-1) ?? 0] ?? 'up' };
}

/** Finds what is wrong with the gateway itself: channels, reloads, workers, the shared store, upkeep. */
import { maskSecrets, type OperationsStatus, type TargetStanding } from 'sluice';
import type { Condition } from './alert.ts';

/** A worker that died is an open alert for so many milliseconds. */
const crashLasts = 600_000;

/** Returns the conditions of one gateway, as one of its processes sees it. */
export function gatewayConditions(
  status: OperationsStatus,
  gateway: string,
  now: number,
): readonly Condition[] {
  const { lastCrashAt, lastReload, sharedStore, targets, upkeep } = status;
  const own = { subject: gateway, view: 'processes' };
  const found: Condition[] = targets.filter(isDown).map(channelDown);
  if (lastReload?.ok === false)
    found.push({
      ...own,
      id: `reload-refused ${gateway}`,
      kind: 'reload-refused',
      severity: 'warning',
      text: `The gateway ${gateway} kept its previous configuration, because the new one is invalid: ${maskSecrets(lastReload.problems[0] ?? 'it did not start.').slice(0, 400)}`,
    });
  if (lastCrashAt !== undefined && now - lastCrashAt < crashLasts)
    found.push({
      ...own,
      id: `worker-died ${gateway}`,
      kind: 'worker-died',
      severity: 'critical',
      text: `A worker of the gateway ${gateway} crashed at ${new Date(lastCrashAt).toISOString()}. Another one replaces it.`,
    });
  if (sharedStore === 'down')
    found.push({
      ...own,
      id: `shared-store-lost ${gateway}`,
      kind: 'shared-store-lost',
      severity: 'critical',
      text: `The gateway ${gateway} does not reach the shared store.`,
    });
  for (const { what, warning } of upkeep)
    if (warning !== undefined)
      found.push({
        id: `upkeep-behind ${what}`,
        kind: 'upkeep-behind',
        subject: what,
        severity: 'warning',
        text: warning.slice(0, 400),
        view: 'processes',
      });
  return found;
}

/** Returns the condition of an unreachable database. Each gateway sends it separately, because no state can be shared then. */
export function databaseLost(gateway: string): Condition {
  return {
    id: `database-lost ${gateway}`,
    kind: 'database-lost',
    subject: gateway,
    severity: 'critical',
    text: `The database of the gateway ${gateway} does not take writes.`,
    view: 'processes',
  };
}

function isDown({ state }: TargetStanding): boolean {
  return state === 'resting' || state === 'probing';
}

function channelDown({ channel, key, model, code }: TargetStanding): Condition {
  const subject = [channel, key, model].filter((part) => part !== undefined && part !== '').join('/');
  const ofKey = key === '' ? '' : `, key "${key}"`;
  const ofModel = model === undefined ? '' : `, model "${model}"`;
  return {
    id: `channel-down ${subject}`,
    kind: 'channel-down',
    subject,
    severity: model === undefined ? 'critical' : 'warning',
    text: `The channel "${channel}"${ofKey}${ofModel} gets no calls until its cooldown ends, because it failed repeatedly${code === undefined ? '' : ` (${code})`}.`,
    view: 'channels',
  };
}

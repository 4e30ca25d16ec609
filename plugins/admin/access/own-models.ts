/** Models that an actor may call with its keys. */
import { mayUseSome } from 'sluice';
import { type InternalTools } from 'sluice/internal';
import type { Actor } from './actor.ts';
import type { Scope } from './scope.ts';

/** Number of keys that are looked at: the newest of those that an actor has or leads. */
const mostKeys = 200;

/**
 * Returns what tells whether a model, or a pattern of models, is an actor's: all of them for actors of the whole gateway, those that an
 * organisation allows for its administrators and auditors, and for others those that one of their keys may call.
 */
export async function ownModels(
  { role, organisation }: Actor,
  scope: Scope,
  { owners, page }: InternalTools['apiKeys'],
): Promise<(model: string) => boolean> {
  if (scope.keys === undefined) return () => true;
  if (role !== 'member') {
    const owner = organisation === undefined ? undefined : owners.find(organisation);
    // No list allows every model: an organisation that is gone must not read as one without a list.
    return (model) => owner !== undefined && mayUseSome(owner.models, [model]);
  }
  const { keys } = await page(mostKeys, undefined, undefined, undefined, scope.keys);
  const now = Date.now();
  const usable = keys.filter(
    ({ enabled, expiresAt }) => enabled && (expiresAt === undefined || expiresAt > now),
  );
  // Most keys differ in nothing that decides here, and to bring their models together with those of their owners is work.
  const unlike = new Map(usable.map((key) => [JSON.stringify([key.models, key.team, key.member]), key]));
  const lists = [...unlike.values()]
    .map((key) => owners.effective(key))
    .filter(({ enabled }) => enabled)
    .map(({ models }) => models);
  if (lists.includes(undefined)) return () => true;
  // One list, which is compiled once.
  const allowed = [...new Set(lists.flatMap((models) => models ?? []))];
  return (model) => mayUseSome(allowed, [model]);
}

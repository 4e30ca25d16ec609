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
    // A missing list allows every model, so an organisation that does not exist must not be treated as one without a list.
    return (model) => owner !== undefined && mayUseSome(owner.models, [model]);
  }
  const { keys } = await page(mostKeys, undefined, undefined, undefined, scope.keys);
  const now = Date.now();
  const usable = keys.filter(
    ({ enabled, expiresAt }) => enabled && (expiresAt === undefined || expiresAt > now),
  );
  // Equal settings are merged only once, because most keys have the same ones and merging them with those of their owners is slow.
  const unlike = new Map(usable.map((key) => [JSON.stringify([key.models, key.team, key.member]), key]));
  const lists = [...unlike.values()]
    .map((key) => owners.effective(key))
    .filter(({ enabled }) => enabled)
    .map(({ models }) => models);
  if (lists.includes(undefined)) return () => true;
  // Merged into one list, because each list is compiled once.
  const allowed = [...new Set(lists.flatMap((models) => models ?? []))];
  return (model) => mayUseSome(allowed, [model]);
}

/** Models that an actor may call with its keys. */
import { mayUseSome, type InternalTools } from 'sluice/internal';
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
    const allowed = organisation === undefined ? undefined : owners.find(organisation)?.models;
    return (model) => mayUseSome(allowed, [model]);
  }
  const { keys } = await page(mostKeys, undefined, undefined, undefined, scope.keys);
  const now = Date.now();
  const usable = keys
    .map((key) => owners.effective(key))
    .filter(({ enabled, expiresAt }) => enabled && (expiresAt === undefined || expiresAt > now));
  return (model) => usable.some(({ models }) => mayUseSome(models, [model]));
}

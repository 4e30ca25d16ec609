/** Refuses requests about provider objects whose cost cannot be reserved in advance, where the API key has a budget. */
import { caller, GatewayError, type JsonObject } from 'sluice';
import type { Call } from 'sluice/internal';
import type { Collection } from './collections.ts';

/** Throws 403 for a key with a budget, in dollars or in tokens: the cost of the request is not known in advance. */
export function refuseBudgeted(call: Call): void {
  if (!hasBudget(call)) return;
  const { method, path } = call.wire;
  throw new GatewayError(
    'forbidden',
    `The cost of ${method} ${path.slice(0, 200)} cannot be reserved in advance, so that an API key with a budget may not send it.`,
  );
}

/** Returns true when the key of a call has a budget. */
export function hasBudget(call: Call): boolean {
  return (call.get(caller)?.budgets ?? []).length > 0;
}

/** Throws 403 for a key with a budget that creates an object whose cost is not known in advance. */
export function checkCreation(call: Call, { cost }: Pick<Collection, 'cost'>): void {
  if (cost === 'unknown') refuseBudgeted(call);
}

/** Throws 403 for a key with a budget that sends a POST to a path below an object, unless that path is known to cost nothing. */
export function checkPost(call: Call, { freePosts }: Pick<Collection, 'freePosts'>, rest: string): void {
  if (!freePosts.test(rest)) refuseBudgeted(call);
}

/** Throws 403 for a key with a budget that changes a member of an object which may cost something. */
export function checkChange(
  call: Call,
  { freeChanges }: Pick<Collection, 'freeChanges'>,
  body: JsonObject,
): void {
  if (freeChanges !== undefined && Object.keys(body).some((name) => !freeChanges.has(name)))
    refuseBudgeted(call);
}

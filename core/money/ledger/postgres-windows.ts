/** Rolling hours, weeks and periods of time zones in Postgres. */
import type { HeldBudget } from '../../sdk/budget.ts';
import { holderOf, withFreeTime, type BudgetExhausted } from './periods.ts';
import type { Asking, PostgresClaims } from './postgres-claims.ts';
import { bucketsAt, bucketsOf, type StandingRow } from './sql.ts';
import { addEndUser, endUsersIn, maxEndUsers, tooManyEndUsers } from './end-users.ts';
import type { GatewayError } from '../../sdk/errors.ts';
import { labelOf, windowsOf, type Window } from './windows.ts';

const spentBuckets = bucketsAt('$1', '$2', '$3');

/** Returns what reads the sums of calls' windows: what is spent and reserved in them. */
export const windowedIn =
  (ofKeys: PostgresClaims, ofOwners: PostgresClaims) =>
  async (
    session: Asking,
    calls: readonly { readonly keyId: string; readonly budgets: readonly HeldBudget[] }[],
    now: number,
  ): Promise<readonly StandingRow[]> => {
    const windows = new Map<string, Window>();
    for (const { keyId, budgets } of calls)
      for (const one of windowsOf(keyId, budgets, now)) windows.set(`${one.holder} ${one.label}`, one);
    if (windows.size === 0) return [];
    const keys = new Set(calls.map(({ keyId }) => keyId));
    const all = [...windows.values()];
    const ofOthers = all.filter(({ holder }) => !keys.has(holder));
    return [
      ...(await ofKeys.windows(session, [...keys], all)),
      ...(await ofOwners.windows(
        session,
        ofOthers.map(({ holder }) => holder),
        ofOthers,
      )),
    ];
  };

/** Adds to a refusal when enough of its rolling window is free. */
export async function toldWhen(
  session: Asking,
  refusal: BudgetExhausted,
  keyId: string,
  now: number,
): Promise<BudgetExhausted> {
  const { full } = refusal;
  if (full === undefined) return refusal;
  const rows = await session.query(spentBuckets, [
    holderOf(full.budget, keyId),
    labelOf(full.budget),
    full.since,
  ]);
  return withFreeTime(refusal, full, bucketsOf(full.budget, rows), now);
}

const newEndUser = addEndUser(['$1', '$2', '$3', '$1', '$2', '$4']);

/** Counts the end users of calls. Returns the refusals of those who are too many. */
export async function countEndUsers<Waiting extends { readonly budgets: readonly HeldBudget[] }>(
  session: Asking,
  calls: readonly Waiting[],
  now: number,
): Promise<ReadonlyMap<Waiting, GatewayError>> {
  const refusals = new Map<Waiting, GatewayError>();
  for (const call of calls)
    for (const { scope, until, holder } of endUsersIn(call.budgets, now)) {
      // oxlint-disable no-await-in-loop -- one session answers one after the other
      await session.query(newEndUser, [scope, until, holder, maxEndUsers]);
      const [known] = await session.query(
        'SELECT 1 FROM ledger_end_users WHERE scope = $1 AND until = $2 AND holder = $3',
        [scope, until, holder],
      );
      // oxlint-enable no-await-in-loop
      if (known === undefined) refusals.set(call, tooManyEndUsers(until, now));
    }
  return refusals;
}

/** Rolling hours, weeks and periods of time zones in Postgres. */
import type { HeldBudget } from '../../sdk/budget.ts';
import { holderOf, withFreeTime, type BudgetExhausted } from './periods.ts';
import type { Asking, PostgresReservations } from './postgres-reservations.ts';
import { bucketsAt, bucketsOf, type StandingRow } from './sql.ts';
import { labelOf, windowsOf, type Window } from './windows.ts';

const spentBuckets = bucketsAt('$1', '$2', '$3');

/** Returns what reads the sums of calls' windows: what is spent and reserved in them. */
export const windowedIn =
  (ofKeys: PostgresReservations, ofOwners: PostgresReservations) =>
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

/** Returns what adds to refusals when enough of their rolling windows is free. Each window is read once, for all calls that it refuses. */
export function freeTimesIn(
  session: Asking,
  now: number,
): (refusal: BudgetExhausted, keyId: string) => Promise<BudgetExhausted> {
  const read = new Map<string, readonly StandingRow[]>();
  return async (refusal, keyId) => {
    const { full } = refusal;
    if (full === undefined) return refusal;
    const [holder, label] = [holderOf(full.budget, keyId), labelOf(full.budget)];
    const name = `${holder} ${label}`;
    let rows = read.get(name);
    if (rows === undefined)
      read.set(name, (rows = await session.query(spentBuckets, [holder, label, full.since])));
    return withFreeTime(refusal, full, bucketsOf(full.budget, rows), now);
  };
}

/** Finds budgets that are spent up to a level: those of keys that call, and of their owners. */
import type { ApiKey, BudgetStanding, Operations } from 'sluice';
import { limits, type Condition } from './alert.ts';

/** Keys that wait to be looked at, and keys that one look asks the database for. */
const maxWaiting = 10_000;
const perLook = 100;

/**
 * Time after a look until the next one at the same key, in milliseconds: what a call came to is charged a moment after it has ended, and on a
 * busy machine or with a slow database that takes long.
 */
const laterLooks = [0, 1_000, 5_000, 30_000] as const;

/** A budget that was found is looked at again after so many milliseconds, because its period may have ended. */
const lookAgainAfter = 300_000;

/** A refusal counts as all of the budget when this share of it is spent, because what is left is too little for a call. */
const refusedFrom = 0.9;

/** Key and what is known of its calls since the last look. */
interface Waiting {
  /** Key as the most recent of its calls had it. */
  key: ApiKey;
  /** Time of the last call that was refused because a budget was exhausted, in milliseconds since 1970. */
  refusedAt: number | undefined;
  /** Number of looks since its last call. */
  looks: number;
  /** Time of the next look, in milliseconds since 1970. */
  dueAt: number;
}

/** Highest level that a budget has reached in its period. */
interface Reached {
  key: ApiKey;
  readonly since: number;
  readonly amount: number;
  readonly level: number;
  readonly condition: Condition;
  lookedAt: number;
}

/** The budgets that this process knows of. Nothing is read while a call runs: its key is noted, and looked at in the background. */
export class BudgetWatch {
  readonly #levels: readonly number[];
  readonly #waiting = new Map<string, Waiting>();
  readonly #reached = new Map<string, Reached>();
  readonly #failed: (error: unknown) => void;
  /** Ids of keys with budgets that have reached a level, as of the last look. */
  #reachedBy: ReadonlySet<string> = new Set();

  /** `failed` gets the error of a key whose budgets cannot be read; the other keys are looked at all the same. */
  constructor(levels: readonly number[], failed: (error: unknown) => void = () => {}) {
    this.#levels = levels.toSorted((one, other) => other - one);
    this.#failed = failed;
  }

  /** Notes that a call of a key has ended. `isRefused`: it was refused because a budget had no room. */
  note(key: ApiKey, isRefused: boolean, now = Date.now()): void {
    if (this.#levels.length === 0) return;
    const waiting = this.#waiting.get(key.id);
    if (waiting !== undefined) {
      waiting.key = key;
      if (isRefused) waiting.refusedAt = now;
      lookSoon(waiting);
      return;
    }
    const hasBudgets = key.budgets !== undefined && key.budgets.length > 0;
    // A key whose budgets were all removed is looked at once more, so that their alerts end.
    if (hasBudgets || this.#reachedBy.has(key.id)) this.#wait(key, isRefused ? now : undefined);
  }

  #wait(key: ApiKey, refusedAt: number | undefined): void {
    if (this.#waiting.size < maxWaiting) this.#waiting.set(key.id, { key, refusedAt, looks: 0, dueAt: 0 });
  }

  /** Returns the conditions of all budgets that have reached a level. */
  async look({ budgets }: Pick<Operations, 'budgets'>, now: number): Promise<readonly Condition[]> {
    this.#lookAgain(now);
    const due = [...this.#waiting].filter(([, { dueAt }]) => dueAt <= now).slice(0, perLook);
    for (const [id, waiting] of due) {
      const again = laterLooks[waiting.looks];
      waiting.looks += 1;
      waiting.dueAt = now + (again ?? 0);
      const { key } = waiting;
      try {
        // oxlint-disable-next-line no-await-in-loop -- one question at a time: nobody waits for the answer
        this.#weighAll(waiting, key, await budgets(withoutEndUsers(key)), now);
      } catch (error) {
        this.#failed(error);
      }
      this.#waiting.delete(id);
      // Moves the key to the end, so that all keys are checked in turn, unless a call that ended meanwhile has added it again.
      if (again !== undefined || waiting.looks === 0) this.#waiting.set(id, waiting);
    }
    this.#reachedBy = new Set([...this.#reached.values()].map(({ key }) => key.id));
    return [...this.#reached.values()].map(({ condition }) => condition);
  }

  /** Has budgets looked at again whose period may have ended. A key that waits already is the newer one. */
  #lookAgain(now: number): void {
    for (const reached of this.#reached.values())
      if (now - reached.lookedAt >= lookAgainAfter) {
        reached.lookedAt = now;
        const waiting = this.#waiting.get(reached.key.id);
        if (waiting === undefined) this.#wait(reached.key, undefined);
        else lookSoon(waiting);
      }
  }

  /** Weighs the budgets of a key, and forgets those that the key had before and has no more. */
  #weighAll(
    { refusedAt }: Pick<Waiting, 'refusedAt'>,
    key: ApiKey,
    budgets: readonly BudgetStanding[],
    now: number,
  ): void {
    const names = new Set<string>();
    for (const budget of budgets) {
      const name = `${budget.owner?.id ?? key.id} ${budget.unit} ${periodOf(budget)}`;
      names.add(name);
      // A refusal counts for the period in which it was.
      const isRefused = refusedAt !== undefined && refusedAt >= budget.since;
      this.#weigh({ key, name, isRefused }, budget, now);
    }
    for (const [name, reached] of this.#reached)
      if (reached.key.id === key.id && !names.has(name)) this.#reached.delete(name);
  }

  #weigh(
    { key, name, isRefused }: { key: ApiKey; name: string; isRefused: boolean },
    budget: BudgetStanding,
    now: number,
  ): void {
    const { amount, spent } = budget;
    const since = sinceOf(budget);
    const share = isRefused && spent >= refusedFrom * amount ? 1 : amount === 0 ? 1 : spent / amount;
    const before = this.#reached.get(name);
    const level = this.#levels.find((one) => share * 100 >= one);
    const isSame = before?.since === since && before.amount === amount;
    if (isSame && (isRolling(budget) ? before.level === level : before.level >= (level ?? 0))) {
      before.key = key;
      before.lookedAt = now;
      return;
    }
    this.#reached.delete(name);
    if (level === undefined) return;
    if (this.#reached.size >= limits.conditions)
      this.#reached.delete(this.#reached.keys().next().value ?? '');
    const condition = conditionOf(key, budget, level, name);
    this.#reached.set(name, { key, since, amount, level, condition, lookedAt: now });
  }
}

function lookSoon(waiting: Waiting): void {
  waiting.looks = 0;
  waiting.dueAt = 0;
}

/** Returns the key without budgets of end users, which raise no alerts, because there may be very many and clients choose their names. */
function withoutEndUsers(key: ApiKey): ApiKey {
  return { ...key, budgets: (key.budgets ?? []).filter(({ owner }) => owner?.scope === undefined) };
}

function conditionOf(key: ApiKey, budget: BudgetStanding, level: number, name: string): Condition {
  const { amount, owner, spent, unit } = budget;
  const holder = owner?.name ?? `the API key "${key.name}"`;
  const teams = teamsOf(key, budget);
  return {
    id: `budget ${name} ${sinceOf(budget)} ${amount} ${level}`,
    kind: 'budget',
    subject: `${holder} (${owner?.id ?? key.id}), ${periodOf(budget)}`,
    severity: level >= 100 ? 'critical' : level >= 80 ? 'warning' : 'info',
    text: `The ${adjectiveOf(budget)} budget of ${holder} is spent to ${level} %: ${shown(unit, spent)} of ${shown(unit, amount)}.`,
    view: 'keys',
    // A rolling window has no periods: what falls below a level may reach it again.
    ...(isRolling(budget) ? {} : { once: true }),
    ...(teams.length === 0 ? {} : { teams }),
  };
}

/** Ids and names of the teams that a budget concerns: none for that of an organisation. */
function teamsOf({ owners = [] }: ApiKey, { owner }: BudgetStanding): string[] {
  const isOfOrganisation = owners.some(({ id, kind }) => id === owner?.id && kind === 'organisation');
  return isOfOrganisation
    ? []
    : owners.filter(({ kind }) => kind === 'team').flatMap(({ id, name }) => [id, name]);
}

function isRolling({ period }: BudgetStanding): boolean {
  return period === 'hours';
}

/** Returns the start of the period, which distinguishes the alerts of one period from those of the next. */
function sinceOf(budget: BudgetStanding): number {
  return isRolling(budget) ? 0 : budget.since;
}

function periodOf({ hours, period, timeZone }: BudgetStanding): string {
  const name = period === 'hours' ? `${hours ?? 0} hours` : period;
  return timeZone === undefined ? name : `${name} in ${timeZone}`;
}

function adjectiveOf({ hours, period }: BudgetStanding): string {
  const words = {
    hours: `${hours ?? 0}-hour`,
    day: 'daily',
    week: 'weekly',
    month: 'monthly',
    total: 'total',
  };
  return words[period];
}

function shown(unit: BudgetStanding['unit'], amount: number): string {
  return unit === 'token' ? `${amount.toLocaleString('en-US')} tokens` : `$${(amount / 1e6).toFixed(2)}`;
}

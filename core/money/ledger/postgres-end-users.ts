/** Limits in Postgres how many end users of a key or team have sums in one period. */
import type { HeldBudget } from '../../sdk/budget.ts';
import type { GatewayError } from '../../sdk/errors.ts';
import { endUsersIn, tooManyEndUsers, type CountedEndUser } from './end-users.ts';
import type { Asking } from './postgres-reservations.ts';

const given = 'unnest($1::text[], $2::bigint[], $3::text[])';

const findKnown = `SELECT ordinal FROM ${given} WITH ORDINALITY AS given (scope, until, holder, ordinal)
  JOIN ledger_end_users USING (scope, until, holder)`;

const countPeriods = `SELECT scope, until, COUNT(*) AS count FROM ledger_end_users
  WHERE (scope, until) IN (SELECT * FROM unnest($1::text[], $2::bigint[])) GROUP BY scope, until`;

const add = `INSERT INTO ledger_end_users (scope, until, holder) SELECT * FROM ${given} ON CONFLICT DO NOTHING`;

/** A call that waits for its claim. */
interface Waiting {
  readonly budgets: readonly HeldBudget[];
}

/** Places of end users, for calls that are granted in one transaction. The transaction has locked their keys and teams. */
export class EndUserPlaces {
  readonly #session: Asking;
  readonly #now: number;
  readonly #most: number;
  /** Names of end users who have a place. */
  readonly #known = new Set<string>();
  /** Number of end users of each period. */
  readonly #counts = new Map<string, number>();
  readonly #added: CountedEndUser[] = [];

  constructor(session: Asking, now: number, most: number) {
    this.#session = session;
    this.#now = now;
    this.#most = most;
  }

  /** Reads which end users of calls have a place, and counts the others of their periods where some have none. */
  async read(calls: readonly Waiting[]): Promise<void> {
    const users = calls.flatMap(({ budgets }) => endUsersIn(budgets, this.#now));
    if (users.length === 0) return;
    for (const { ordinal } of await this.#session.query(findKnown, columns(users))) {
      const user = users[Number(ordinal) - 1];
      if (user !== undefined) this.#known.add(nameOf(user));
    }
    const unknown = users.filter((user) => !this.#known.has(nameOf(user)));
    if (unknown.length === 0) return;
    const [scopes, untils] = columns(unknown);
    for (const { scope, until, count } of await this.#session.query(countPeriods, [scopes, untils]))
      this.#counts.set(`${String(scope)} ${String(until)}`, Number(count));
  }

  /** Gives the end users of a call their places, all or none. Returns the refusal where there are too many. */
  take({ budgets }: Waiting): GatewayError | undefined {
    const fresh = endUsersIn(budgets, this.#now).filter((user) => !this.#known.has(nameOf(user)));
    const full = fresh.find((user) => this.#countOf(user) >= this.#most);
    if (full !== undefined) return tooManyEndUsers(full.until, this.#now, this.#most);
    for (const user of fresh) {
      this.#known.add(nameOf(user));
      this.#counts.set(periodOf(user), this.#countOf(user) + 1);
      this.#added.push(user);
    }
    return undefined;
  }

  /** Writes the places that were given. */
  async write(): Promise<void> {
    if (this.#added.length > 0) await this.#session.query(add, columns(this.#added));
  }

  #countOf(user: CountedEndUser): number {
    return this.#counts.get(periodOf(user)) ?? 0;
  }
}

function periodOf({ scope, until }: CountedEndUser): string {
  return `${scope} ${until}`;
}

function nameOf(user: CountedEndUser): string {
  return `${periodOf(user)} ${user.holder}`;
}

function columns(users: readonly CountedEndUser[]) {
  return [
    users.map(({ scope }) => scope),
    users.map(({ until }) => until),
    users.map(({ holder }) => holder),
  ] as const;
}

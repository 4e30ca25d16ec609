import type { Database } from '../../state/database/index.ts';
import { rows, type Work } from '../../state/database/sql.ts';
import { unfold } from './folded.ts';
import { levels } from './levels.ts';
import { movingInPostgres } from './postgres-sums.ts';
import { moveInSqlite } from './sqlite-sums.ts';

/** How long after all sums were moved it looks for others, in milliseconds: older gateways may still write some. */
const pause = 600_000;

/**
 * Moves sums of older versions to the table of this one, some at a time. It goes on from where it was, because the server walks over all that
 * it has moved and not cleaned up yet.
 */
export class Moving {
  readonly #kind: Database['kind'];
  #level = 0;
  #since = 0;
  #restsUntil = 0;

  constructor(kind: Database['kind']) {
    this.#kind = kind;
  }

  /** False while there is nothing to move. */
  get isDue(): boolean {
    return Date.now() >= this.#restsUntil;
  }

  /** Moves some; belongs inside a transaction that has the lock of sums. Returns true when there may be more. */
  *step(limit: number): Work<boolean> {
    if (!this.isDue) return false;
    const { level } = levels[this.#level] ?? { level: -1 };
    const starts =
      this.#kind === 'sqlite'
        ? yield* this.#moveInSqlite(level, limit)
        : (yield* rows(movingInPostgres, level, this.#since, limit)).map(
            ({ start }) => Number(start) * 60_000,
          );
    if (starts.length > 0) {
      this.#since = starts.reduce((latest, start) => Math.max(latest, start), this.#since);
      return true;
    }
    this.#since = 0;
    this.#level = (this.#level + 1) % levels.length;
    if (this.#level > 0) return true;
    this.#restsUntil = Date.now() + pause;
    return false;
  }

  *#moveInSqlite(level: number, limit: number): Work<readonly number[]> {
    const starts = yield* moveInSqlite(level, this.#since, limit);
    yield* unfold(starts, false);
    return starts;
  }
}

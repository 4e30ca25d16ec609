import type { Pool, PoolClient } from 'pg';
import { expect, test } from 'vitest';
import { Canceller } from '../../../../core/state/database/postgres-cancel.ts';

/** A connection of a pool whose process has this number at the server. */
function connectionOf(pid: number): PoolClient {
  return { processID: pid, connection: { stream: { localPort: 1 } } } as unknown as PoolClient;
}

interface Answers {
  query(pids: readonly number[]): Promise<unknown>;
  end(): Promise<void>;
  destroy?(): void;
}

/** A pool whose further connections answer so. */
function poolOf({ query, end, destroy = () => {} }: Answers): Pool {
  class FakeClient {
    readonly connection = { stream: { bytesRead: 0, bytesWritten: 0, destroy } };
    on(): void {}
    async connect(): Promise<void> {}
    query(_sql: string, [pids]: readonly [number[], number[]]): Promise<unknown> {
      return query(pids);
    }
    end(): Promise<void> {
      return end();
    }
  }
  return { options: {}, Client: FakeClient } as unknown as Pool;
}

test('a statement that is to be cancelled too late is not cancelled with a later one', async () => {
  const canceller = new Canceller('postgres://host/db', 60_000);
  const cancelled: number[] = [];
  let late: Promise<void> | undefined;
  const pool: Pool = poolOf({
    query: async (pids) => void cancelled.push(...pids),
    async end() {
      late ??= canceller.cancel(pool, connectionOf(2));
    },
  });
  await canceller.cancel(pool, connectionOf(1));
  await late;
  await canceller.cancel(pool, connectionOf(3));
  expect(cancelled).toEqual([1, 3]);
});

test('a server that does not answer holds up no connection', async () => {
  let isCut = false;
  const { promise, reject } = Promise.withResolvers<unknown>();
  const pool = poolOf({
    query: () => promise,
    end: () => new Promise(() => {}),
    destroy() {
      isCut = true;
      reject(new Error('cut'));
    },
  });
  await new Canceller('postgres://host/db', 200).cancel(pool, connectionOf(1));
  expect(isCut).toBe(true);
});

import { hasRedis, startRedis } from '../support/redis.ts';
import { startPostgres, withoutPostgres } from '../support/postgres.ts';

/** Stores of two gateways, as members of their configs. */
export interface SharedStores {
  readonly kind: string;
  readonly members: { readonly first: string; readonly second: string };
  close(): Promise<void>;
}

/** Starts PostgreSQL and Redis for both gateways. Where they are not installed, each gateway keeps a SQLite database of its own. */
export async function shareStores(): Promise<SharedStores> {
  if (!hasRedis || withoutPostgres() !== undefined)
    return { kind: 'SQLite, one each', members: { first: '', second: '' }, close: async () => {} };
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  const members = `database: '${await postgres.createDatabase()}', shared: { url: '${redis.url}' }`;
  return {
    kind: 'PostgreSQL and Redis, shared',
    members: { first: members, second: members },
    async close() {
      await Promise.all([postgres.close(), redis.close()]);
    },
  };
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { start, type Child } from './processes.ts';
import { startRaw, startSluice, type SluiceOptions, type Target } from './targets.ts';

/** Everything that runs during the bench. */
export interface Stage {
  readonly load: Child<unknown>;
  /** More clients, for what goes on beside a measurement. */
  background(): Promise<Child<unknown>>;
  readonly upstream: string;
  raw(): Promise<Target>;
  sluice(options: Partial<SluiceOptions> & Pick<SluiceOptions, 'name' | 'tree'>): Promise<Target>;
  /** An empty PostgreSQL database, on a server that the bench starts. */
  database(): Promise<string>;
  /** The URL of a Redis that the bench starts. */
  shared(): Promise<string>;
  /** Transactions of that database and scripts that clients ran in that Redis so far; 0 of what was not started. */
  counts(database: string | undefined): Promise<{ readonly transactions: number; readonly scripts: number }>;
  end(): Promise<void>;
}

/** Gateways have a core of their own; what stands on both sides of them shares the other. */
export const gatewayCore = 1;
const otherCore = 0;

/** Starts the provider and the clients. The rest is started when it is asked for. */
export async function buildStage(providerPort = 0): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const provider = await start<{ url: string }>('./provider.ts', {
    core: otherCore,
    environment: { BENCH_PORT: String(providerPort) },
  });
  const load = await start('./load.ts', { core: otherCore });
  const upstream = provider.ready.url;
  const ends: (() => Promise<void>)[] = [() => load.end(), () => provider.end()];
  const kept = <T extends { end(): Promise<void> }>(one: T): T => {
    ends.unshift(() => one.end());
    return one;
  };
  let postgres: ReturnType<typeof startPostgres> | undefined;
  let redis: ReturnType<typeof startRedis> | undefined;
  let gateways = 0;
  return {
    load,
    upstream,
    background: async () => kept(await start('./load.ts', { core: otherCore })),
    raw: async () => kept(await startRaw(upstream, gatewayCore)),
    async sluice(options) {
      gateways += 1;
      return kept(
        await startSluice({
          upstream,
          folder: join(folder, `gateway-${gateways}`),
          workers: 1,
          core: options.workers === undefined || options.workers === 1 ? gatewayCore : undefined,
          ...options,
        }),
      );
    },
    async database() {
      postgres ??= startPostgres().then((server) => {
        ends.push(() => server.close());
        return server;
      });
      return (await postgres).createDatabase();
    },
    async shared() {
      redis ??= startRedis().then((server) => {
        ends.push(() => server.close());
        return server;
      });
      return (await redis).url;
    },
    async counts(database) {
      const [row] =
        postgres === undefined || database === undefined
          ? []
          : await (
              await postgres
            ).run(
              database,
              'SELECT xact_commit + xact_rollback AS count FROM pg_stat_database WHERE datname = current_database()',
            );
      const commandStats =
        redis === undefined ? '' : String(await (await redis).command('INFO', 'commandstats'));
      return {
        transactions: Number(row?.['count'] ?? 0),
        scripts: [...commandStats.matchAll(/^cmdstat_(?:evalsha|eval|fcall):calls=(\d+)/gm)].reduce(
          (sum, [, calls]) => sum + Number(calls),
          0,
        ),
      };
    },
    async end() {
      for (const end of ends) await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

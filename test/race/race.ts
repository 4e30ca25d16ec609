/**
 * `npm run race`: 200 calls at once through each of four gateways, on one database and against one key whose budget is enough for about a
 * third of them; then the same with a provider that gives more than it is asked for; with four keys of one team, with budgets and limits of the
 * keys, of end users, of the team, which has a price of its own, and of its organisation; and with four such keys and one gateway killed in the
 * middle, which tells how many answers it had delivered that nobody is charged for. `--postgres` for a PostgreSQL of its own instead of an SQLite file. The last line of each part says what must be zero, and the exit code is 1 unless it is.
 * Then a call needs what other gateways have reserved ahead under load, also when one of them was killed: none may be refused without need.
 * Then clients try to start what keys with budgets may not start, and create batches, some of which are cancelled and some of whose clients
 * leave; `--objects` runs this part alone.
 *
 * `npm run race -- --leavers 10000`: in its place so many calls whose clients leave at random moments, with a reload in the middle. None may be
 * recorded as a failure of the gateway's, and no reservation may be left. `--redis` for a Redis of its own that has rates and concurrency; how
 * often that does not answer in time is told, and is no fault.
 *
 * `--redis`, `--redis-cluster` (six nodes) or `--sentinel` (three servers, three Sentinels) for the gateways' shared store, and then calls race
 * for requests per minute and for a concurrency, too, and for what other gateways have counted ahead, with one of them killed; `--leases` runs
 * this part alone. `--pgbouncer`: a PostgreSQL behind PgBouncer in transaction mode.
 */
import { parseArgs } from 'node:util';
import type { SharedStoreSettings } from '../../core/settings/shared.ts';
import { startPgBouncer } from '../support/pgbouncer.ts';
import { startPostgres } from '../support/postgres.ts';
import { sentinelPassword, startRedisCluster, startSentinels } from '../support/redis-topologies.ts';
import { startRedis } from '../support/redis.ts';
import { runLeavers } from './leavers.ts';
import { raceForObjects } from './objects.ts';
import { raceForRateLeases } from './rate-leases.ts';
import { raceForRates } from './rates.ts';
import { raceForRecalls } from './recalls.ts';
import { race } from './run.ts';

const { values } = parseArgs({
  options: {
    postgres: { type: 'boolean', default: false },
    redis: { type: 'boolean', default: false },
    leases: { type: 'boolean', default: false },
    'redis-cluster': { type: 'boolean', default: false },
    sentinel: { type: 'boolean', default: false },
    pgbouncer: { type: 'boolean', default: false },
    objects: { type: 'boolean', default: false },
    leavers: { type: 'string' },
  },
});
const postgres = values.postgres || values.pgbouncer ? await startPostgres() : undefined;
const database = await postgres?.createDatabase();
const bouncer =
  values.pgbouncer && database !== undefined ? await startPgBouncer(database.replace(/\?.*/, '')) : undefined;
const { store, closeStore } = await startStore();
const shared = {
  print: (line: string) => console.log(line),
  ...(database === undefined ? {} : { database: bouncer?.through(database) ?? database }),
};

/** The shared store that was asked for. */
async function startStore(): Promise<{ readonly store?: SharedStoreSettings; closeStore(): Promise<void> }> {
  if (values['redis-cluster']) {
    const cluster = await startRedisCluster();
    return { store: { url: cluster.url }, closeStore: () => cluster.close() };
  }
  if (values.sentinel) {
    const servers = await startSentinels();
    return { store: { url: servers.url, sentinelPassword }, closeStore: () => servers.close() };
  }
  if (!values.redis) return { closeStore: async () => {} };
  const redis = await startRedis();
  return { store: { url: redis.url }, closeStore: () => redis.close() };
}

async function raceRates(): Promise<boolean> {
  if (store === undefined) return true;
  const { overshoot, unfair, left } = await raceForRates({
    gateways: 4,
    calls: 200,
    redis: store,
    ...shared,
  });
  console.log(`rates: overshoot ${overshoot}, refused without need ${unfair}, permits left ${left}`);
  return overshoot + unfair + left === 0;
}

async function raceLeases(): Promise<boolean> {
  if (store === undefined) return true;
  const { overshoot, unfair, left } = await raceForRateLeases({
    gateways: 4,
    perMinute: 400,
    redis: store,
    ...shared,
  });
  console.log(`rate leases: overshoot ${overshoot}, refused without need ${unfair}, permits left ${left}`);
  return overshoot + unfair + left === 0;
}

async function raceForBudget(): Promise<boolean> {
  const { overshoot, unsettled, unrecorded, unfair } = await race({
    gateways: 4,
    calls: 200,
    ...shared,
    ...(store === undefined ? {} : { redis: store }),
  });
  console.log(
    `overshoot ${overshoot}, unsettled ${unsettled}, unrecorded ${unrecorded}, refused without need ${unfair}`,
  );
  return overshoot + unsettled + unrecorded + unfair === 0;
}

async function raceBatches(): Promise<boolean> {
  const { faults, events } = await raceForObjects({ gateways: 4, attempts: 50, ...shared });
  const { overshoot, reservations, uncharged, difference, reached, unexpected } = faults;
  console.log(
    `objects: overshoot ${overshoot}, reservations left ${reservations}, uncharged ${uncharged}, difference ${difference}, reached a provider ${reached}, unexpected ${unexpected}`,
  );
  return Object.values(faults).every((count) => count === 0) && events.refused > 0 && events.withoutRoom > 0;
}

async function raceRecalls(): Promise<boolean> {
  const { overshoot, unfair, left } = await raceForRecalls({ gateways: 4, ...shared });
  console.log(`recalls: overshoot ${overshoot}, refused without need ${unfair}, left reserved ${left}`);
  return overshoot + unfair + left === 0;
}

async function leaveEarly(leavers: number): Promise<boolean> {
  if (!Number.isSafeInteger(leavers) || leavers < 1)
    throw new Error('--leavers must be a whole number from 1.');
  const { faults, events } = await runLeavers({
    leavers,
    ...shared,
    ...(store === undefined ? {} : { redis: store }),
  });
  const { recorded, counted, logged, errors, refused, reservations, difference } = faults;
  console.log(
    `5xx: ${recorded} recorded, ${counted} counted, ${logged} logged; errors ${errors}, refused ${refused}, reservations left ${reservations}, difference ${difference} (Redis lost ${events.redisLost} times)`,
  );
  return Object.values(faults).every((count) => count === 0);
}

async function run(): Promise<boolean> {
  if (values.leavers !== undefined) return leaveEarly(Number(values.leavers));
  if (values.leases) return raceLeases();
  const isFair =
    values.objects ||
    ((await raceForBudget()) && (await raceRecalls()) && (await raceRates()) && (await raceLeases()));
  return (await raceBatches()) && isFair;
}

try {
  const isSound = await run();
  process.exitCode = isSound ? 0 : 1;
} finally {
  await bouncer?.close();
  await postgres?.close();
  await closeStore();
}

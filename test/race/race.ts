/**
 * `npm run race`: 200 calls at once through each of four gateways, on one database and against one key whose budget is enough for about a
 * third of them; then the same with a provider that gives more than it is asked for, and with one gateway killed in the middle, which tells
 * how many answers it had delivered that nobody is charged for. `--postgres` for a PostgreSQL of its own instead of an SQLite file. The last line of each part says what must be zero, and the exit code is 1 unless it is.
 * Then a call needs what other gateways have reserved ahead under load, also when one of them was killed: none may be refused without need.
 * Then clients try to start what keys with budgets may not start, and create batches, some of which are cancelled and some of whose clients
 * leave; `--objects` runs this part alone.
 *
 * `npm run race -- --leavers 10000`: in its place so many calls whose clients leave at random moments, with a reload in the middle. None may be
 * recorded as a failure of the gateway's, and no reservation may be left. `--redis` for a Redis of its own that has rates and concurrency; how
 * often that does not answer in time is told, and is no fault.
 */
import { parseArgs } from 'node:util';
import { startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { runLeavers } from './leavers.ts';
import { raceForObjects } from './objects.ts';
import { raceForRecalls } from './recalls.ts';
import { race } from './run.ts';

const { values } = parseArgs({
  options: {
    postgres: { type: 'boolean', default: false },
    redis: { type: 'boolean', default: false },
    objects: { type: 'boolean', default: false },
    leavers: { type: 'string' },
  },
});
const postgres = values.postgres ? await startPostgres() : undefined;
const redis = values.redis ? await startRedis() : undefined;
const shared = {
  say: (line: string) => console.log(line),
  ...(postgres === undefined ? {} : { database: await postgres.createDatabase() }),
};

async function raceForBudget(): Promise<boolean> {
  const { overshoot, unsettled, unrecorded } = await race({ gateways: 4, calls: 200, ...shared });
  console.log(`overshoot ${overshoot}, unsettled ${unsettled}, unrecorded ${unrecorded}`);
  return overshoot + unsettled + unrecorded === 0;
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
    ...(redis === undefined ? {} : { redis: redis.url }),
  });
  const { recorded, counted, logged, errors, refused, reservations, difference } = faults;
  console.log(
    `5xx: ${recorded} recorded, ${counted} counted, ${logged} logged; errors ${errors}, refused ${refused}, reservations left ${reservations}, difference ${difference} (Redis lost ${events.redisLost} times)`,
  );
  return Object.values(faults).every((count) => count === 0);
}

try {
  const isSound =
    values.leavers === undefined
      ? [values.objects || ((await raceForBudget()) && (await raceRecalls())), await raceBatches()].every(
          Boolean,
        )
      : await leaveEarly(Number(values.leavers));
  process.exitCode = isSound ? 0 : 1;
} finally {
  await postgres?.close();
  await redis?.close();
}

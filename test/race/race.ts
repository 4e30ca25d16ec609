/**
 * `npm run race`: 200 calls at once through each of four gateways, on one database and against one key whose budget is enough for about a
 * third of them; then the same with a provider that gives more than it is asked for, and with one gateway killed in the middle, which tells
 * how many answers it had delivered that nobody is charged for. `--postgres` for a PostgreSQL of its own instead of an SQLite file. The last line says what must be zero, and the exit code is 1 unless it is.
 */
import { startPostgres } from '../support/postgres.ts';
import { race } from './run.ts';

const postgres = process.argv.includes('--postgres') ? await startPostgres() : undefined;
try {
  const { overshoot, unsettled, unrecorded } = await race({
    gateways: 4,
    calls: 200,
    say: (line) => console.log(line),
    ...(postgres === undefined ? {} : { database: await postgres.createDatabase() }),
  });
  console.log(`overshoot ${overshoot}, unsettled ${unsettled}, unrecorded ${unrecorded}`);
  process.exitCode = overshoot + unsettled + unrecorded === 0 ? 0 : 1;
} finally {
  await postgres?.close();
}

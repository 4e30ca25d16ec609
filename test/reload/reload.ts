/**
 * `npm run reload`: 500 open streams through a gateway with two workers, in all formats; a reload with another config and another plugin,
 * one with a config that is wrong, and the end of the gateway, while calls go on. The last line says what must be zero, and the exit code
 * is 1 unless it is.
 */
import { tryReloads } from './run.ts';

const result = await tryReloads({
  streams: 500,
  pace: 500,
  longest: 1_000,
  drain: 10_000,
  say: (line) => console.log(line),
});
const { streams, completeWhileStopping, errorsTooEarly, calls, failedCalls, reasons, exit } = result;
for (const reason of reasons) console.log(reason);
console.log(
  `500 streams: ${streams.complete} complete (${completeWhileStopping} of them while it stopped), ${streams.error} ended by their format's error at the deadline; ${calls} calls meanwhile`,
);
console.log(`broken ${streams.broken}, cut early ${errorsTooEarly}, calls that failed ${failedCalls}`);
process.exitCode =
  streams.broken + errorsTooEarly + failedCalls === 0 &&
  streams.complete > 0 &&
  streams.error > 0 &&
  exit === 0
    ? 0
    : 1;

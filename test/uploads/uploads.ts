/**
 * `npm run uploads`: twenty recordings of 24.9 MiB at once through a gateway to a provider, three times, and one of 25.1 MiB. Prints by
 * how much the gateway grew and how much of the refused one was read; the exit code is 1 unless every byte arrived and it grew by less
 * than 40 MiB.
 */
import { runUploads } from './run.ts';

const { damaged, failed, growth, refusal } = await runUploads({ atOnce: 20, rounds: 3 });
console.log(`60 uploads of 24.9 MiB, 20 at once: ${failed} failed, ${damaged} damaged`);
console.log(`the gateway grew by ${growth.toFixed(1)} MiB`);
console.log(`25.1 MiB: status ${refusal.status} after ${refusal.sent} of ${refusal.of} bytes were sent`);
const isSound = failed + damaged === 0 && growth < 40 && refusal.status === 413 && refusal.sent < refusal.of;
process.exitCode = isSound ? 0 : 1;

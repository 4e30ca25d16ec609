/**
 * `npm run chaos`: a provider that misbehaves in every way, over the four chat formats, whole and streamed, passed through and translated, with
 * another channel behind it and without; clients that leave, and that read slowly. Each call is judged, and then what it left behind.
 *
 * `--seed N` draws the same cases in the same order again, `--only TEXT` keeps those whose line holds the text, `--long` goes on for about ten
 * minutes, `--table [--calls N]` shows what failing over does for each fault, `--soak [MINUTES]` is mixed load for a while,
 * with `--rate N` at most N calls in a second.
 * The last line says what must be zero, and the exit code is 1 unless it is.
 */
import { parseArgs } from 'node:util';
import { failover } from './failover.ts';
import { chaos } from './run.ts';
import { soak } from './soak.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string' },
    only: { type: 'string' },
    calls: { type: 'string', default: '1000' },
    long: { type: 'boolean', default: false },
    table: { type: 'boolean', default: false },
    soak: { type: 'boolean', default: false },
    rate: { type: 'string' },
  },
});
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
const print = (line: string): void => console.log(line);
const began = performance.now();
print(`seed ${seed}`);

const { cases, violations } = values.table
  ? await failover({ calls: Number(values.calls), only: values.only, print })
  : values.soak
    ? await soak({
        seed,
        minutes: Number(positionals[0] ?? '5'),
        rate: values.rate === undefined ? undefined : Number(values.rate),
        print,
      })
    : await everything();

async function everything() {
  const result = await chaos({ seed, only: values.only, rounds: values.long ? 14 : 1, print });
  print(
    Object.entries(result.outcomes)
      .map(([outcome, count]) => `${outcome} ${count}`)
      .join(', '),
  );
  return result;
}

for (const violation of violations.slice(0, 60)) print(`  ${violation}`);
if (violations.length > 60) print(`  … and ${violations.length - 60} more`);
print(`${((performance.now() - began) / 1000).toFixed(0)} s`);
print(`${cases} cases, ${violations.length} violations`);
process.exitCode = violations.length === 0 ? 0 : 1;

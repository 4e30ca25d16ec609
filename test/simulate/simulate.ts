import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { runOnThreads, worldKinds } from './run.ts';
import { slips, type Slip } from './slips.ts';

/*
 * npm run simulate                    10,000 seeds, from 1: each makes a world of one kind: ledger, windows, rates or redis; --only redis: those of
 *                                     one kind
 * npm run simulate -- --seed 123      one world, which breaks again what it has broken
 * npm run simulate -- --slips         puts mistakes into the code, one at a time, and tells which seed finds each; --only rates: of one
 *                                     kind of world, of one file (ledger/sql.ts), or with some words
 */

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '10000' },
    from: { type: 'string', default: '1' },
    seed: { type: 'string' },
    first: { type: 'boolean', default: false },
    slips: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
});

process.exitCode = values.slips ? findSlips() : await simulate();

async function simulate(): Promise<number> {
  if (values.only !== '' && !worldKinds.includes(values.only)) {
    console.error(`--only ${values.only}: there are no such worlds, but ${worldKinds.join(', ')}.`);
    return 1;
  }
  const from = Number(values.seed ?? values.from);
  const count = values.seed === undefined ? Number(values.seeds) : 1;
  const began = performance.now();
  const seeds = { from, count, most: values.first ? 1 : 10, only: values.only };
  const { worlds, calls, refused, fromMemory, broken } = await runOnThreads(seeds, availableParallelism());
  for (const { seed, rule } of broken) console.log(`seed ${seed}: ${rule}`);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  const { user, system } = process.cpuUsage();
  const cpuSeconds = ((user + system) / 1e6).toFixed(1);
  console.log(
    `${worlds} worlds from seed ${from} in ${seconds} s, ${cpuSeconds} s of CPU: ${calls} calls served, ${fromMemory} of them from memory, ${refused} refused; ${broken.length} broken`,
  );
  return broken.length === 0 ? 0 : 1;
}

function findSlips(): number {
  let missed = 0;
  const chosen = slips.filter(
    (slip) =>
      worldOf(slip).startsWith(values.only) ||
      slip.file.startsWith(values.only) ||
      slip.what.includes(values.only),
  );
  if (chosen.length === 0) {
    console.error(`--only ${values.only}: no mistake is of such a kind, in such a file or has such words.`);
    return 1;
  }
  for (const slip of chosen) {
    const found = seedThatFinds(slip, Number(values.seeds));
    if (found === undefined) missed += 1;
    console.log(`${found === undefined ? 'NOT FOUND' : found}  (${slip.what})`);
  }
  console.log(`${chosen.length - missed} of ${chosen.length} found`);
  return missed === 0 ? 0 : 1;
}

/** The kind of worlds that must find a mistake. */
function worldOf({ file, world }: Slip): string {
  return world ?? file.split('/', 1)[0] ?? '';
}

/** Runs worlds on a copy of the code with a mistake in it. Returns what the first broken one says. */
function seedThatFinds(slip: Slip, seeds: number): string | undefined {
  const root = resolve(import.meta.dirname, '../..');
  const copy = mkdtempSync(join(tmpdir(), 'sluice-slip-'));
  try {
    for (const part of ['core', 'package.json', 'test/simulate'])
      cpSync(join(root, part), join(copy, part), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    for (const { file, from, to } of slip.also === undefined ? [slip] : [slip, slip.also]) {
      const path = join(copy, 'core/money', file);
      const text = readFileSync(path, 'utf8');
      if (!text.includes(from)) throw new Error(`${file} has no such text any more: ${from}`);
      writeFileSync(path, text.replace(from, to));
    }
    const options = ['--conditions=sluice-source', join(copy, 'test/simulate/simulate.ts'), '--first'];
    options.push('--only', worldOf(slip));
    const { status, stdout, stderr } = spawnSync(process.execPath, [...options, '--seeds', String(seeds)], {
      encoding: 'utf8',
    });
    if (status === 0) return undefined;
    if (!stdout.startsWith('seed ')) throw new Error(stderr || stdout);
    return stdout.split('\n', 1)[0];
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

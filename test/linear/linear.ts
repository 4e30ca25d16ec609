/**
 * `npm run linear`: how much longer everything takes when its input is four times as long. Work that grows faster than its input is a
 * defect, whoever chooses the input; so is a step that holds everybody else up for long. Prints one line for each piece of work that is
 * above a limit, all of them with `--all`, and exits with 1 when there is one. `--only TEXT` for those whose name has the text in it.
 */
import { codecWork } from './codecs.ts';
import { measure, type Growth } from './measure.ts';

/** Above this, work grows faster than its input. Caches that a larger input no longer fits into cost the rest. */
const mostExponent = 1.2;
/** Milliseconds for each megabyte that a step may take in one go. */
const mostPerMegabyte = 50;

const all = process.argv.includes('--all');
const only = process.argv.indexOf('--only');
const wanted = only < 0 ? '' : (process.argv[only + 1] ?? '');

const row = ({ work, size, time, exponent, perMegabyte }: Growth): string =>
  `${exponent.toFixed(2).padStart(6)} ${time.toFixed(0).padStart(7)} ms ${perMegabyte.toFixed(1).padStart(8)} ms/MB  ${work.part}, ${work.shape}, ${size} and ${size * 4}`;

const isAbove = ({ work, exponent, perMegabyte }: Growth): boolean =>
  exponent > mostExponent || (work.oneStep !== false && perMegabyte > mostPerMegabyte);

const chosen = codecWork.filter(({ part, shape }) => `${part}, ${shape}`.includes(wanted));
const above: Growth[] = [];
for (const work of chosen) {
  const growth = await measure(work, mostExponent);
  if (isAbove(growth)) above.push(growth);
  if (all || isAbove(growth)) console.log(row(growth));
}
console.log(`${chosen.length} pieces of work, ${above.length} above the limits`);
process.exitCode = above.length === 0 ? 0 : 1;

/**
 * `npm run linear`: how much longer everything takes when its input is four times as long. Work that grows faster than its input is a
 * defect, whoever chooses the input; so is a step that holds everybody else up for long. Prints one line for each piece of work that is
 * above a limit, all of them with `--all`, and exits with 1 when there is one. `--only TEXT` for those whose name has the text in it.
 *
 * What is measured is processor time: the machine should have nothing else to do. `--counts` tells on any machine how steps and bytes grow
 * instead, which is what the tests try for a part of it.
 */
import { codecWork } from './codecs.ts';
import { EffortCounter } from './effort.ts';
import { gatewayWork, MeasuredGateway } from './gateway.ts';
import { factor, measure, type Work } from './measure.ts';

/** Above this, work grows faster than its input. */
const mostExponent = 1.2;
/** The same for counts, which are taken of small inputs. */
const mostCounted = 1.3;
const countedSize = 128;
/** Milliseconds for each megabyte that a step may take in one go. */
const mostPerMegabyte = 50;

const all = process.argv.includes('--all');
const only = process.argv.indexOf('--only');
const wanted = only < 0 ? '' : (process.argv[only + 1] ?? '');
let tried = 0;
let above = 0;

function tell(isAbove: boolean, row: string): void {
  tried += 1;
  if (isAbove) above += 1;
  if (isAbove || all) console.log(row);
}

const nameOf = ({ part, shape }: Work, size: number): string =>
  `${part}, ${shape}, ${size} and ${size * factor}`;

async function time(work: Work): Promise<void> {
  const { size, time: taken, exponent, perMegabyte } = await measure(work, mostExponent);
  const figures = `${exponent.toFixed(2).padStart(6)} ${taken.toFixed(0).padStart(6)} ms ${perMegabyte.toFixed(1).padStart(7)} ms/MB`;
  const isAbove = exponent > mostExponent || (work.oneStep !== false && perMegabyte > mostPerMegabyte);
  tell(isAbove, `${figures}  ${nameOf(work, size)}`);
}

function count(counter: EffortCounter, work: Work): void {
  const { size, steps, bytes } = counter.growth(work, countedSize);
  const figures = `steps ${steps.toFixed(2).padStart(5)}, bytes ${bytes.toFixed(2).padStart(5)}`;
  tell(steps > mostCounted || bytes > mostCounted, `${figures}  ${nameOf(work, size)}`);
}

const isWanted = ({ part, shape }: Work): boolean => `${part}, ${shape}`.includes(wanted);

if (process.argv.includes('--counts')) {
  const counter = new EffortCounter();
  for (const work of codecWork.filter(isWanted)) count(counter, work);
  counter.close();
} else {
  const gateway = await MeasuredGateway.start();
  try {
    for (const work of [...codecWork, ...gatewayWork(gateway)].filter(isWanted)) await time(work);
  } finally {
    await gateway.close();
  }
}
console.log(`${tried} pieces of work, ${above} above the limits`);
process.exitCode = above === 0 ? 0 : 1;

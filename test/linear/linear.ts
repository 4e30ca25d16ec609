/**
 * `npm run linear`: how much longer everything takes when its input is four times as long. Work that grows faster than its input is a
 * defect, whoever chooses the input; so is a step that holds everybody else up for long. Prints one line for each piece of work. Those that are
 * above a limit are measured again at the end, twice at most: what grows faster does so each time, what the machine did meanwhile does not.
 * Exits with 1 when one stays above. `--only TEXT` for those whose name has the text in it, `--from TEXT`
 * for the first of these and all behind it, `--part 3/8` for the third of eight parts of about equal length; `--memory` tells what memory is
 * held behind each piece of work. `--all` makes the whole calls between all pairs of formats, which takes long.
 *
 * What is measured is processor time: the machine should have nothing else to do. `--counts` tells on any machine how steps and bytes grow
 * instead, which is what the tests try for a part of it.
 */
import { codecWork } from './codecs.ts';
import { EffortCounter } from './effort.ts';
import { countedWork, otherWork } from './others.ts';
import { gatewayWork, MeasuredGateway } from './gateway.ts';
import { factor, measure, type Work } from './measure.ts';
import { byteWork } from './bytes.ts';
import { lineWork } from './lines.ts';
import { PluginBench } from './plugin-bench.ts';
import { pluginWork } from './plugins.ts';
import { readerWork } from './readers.ts';

/** Above this, work grows faster than its input. */
const mostExponent = 1.2;
/** The same for counts, which are taken of small inputs. */
const mostCounted = 1.3;
const countedSize = 128;
/** Number of repeated measurements above a limit. */
const mostAgain = 2;
/** Milliseconds for each megabyte that a step may take in one go. */
const mostPerMegabyte = 50;

const all = process.argv.includes('--all');
const option = (name: string): string =>
  process.argv.includes(name) ? (process.argv[process.argv.indexOf(name) + 1] ?? '') : '';
const only = option('--only');
const first = option('--from');
const tellsMemory = process.argv.includes('--memory');
/** Measurements above a limit. */
let above: { readonly work: Work; readonly row: string }[] = [];

interface Judged {
  readonly name: string;
  readonly exponent: number;
  /** Milliseconds for each megabyte of a step; 0 where it is none. */
  readonly step: number;
}

/** Results for each piece of work: the minimum of its measurements. */
const judgements = new Map<Work, Judged>();

function judge(work: Work, { name, exponent, step }: Judged): void {
  const before = judgements.get(work) ?? { exponent, step };
  judgements.set(work, {
    name,
    exponent: Math.min(exponent, before.exponent),
    step: Math.min(step, before.step),
  });
}

/** The highest of one kind of figure, and where it was found. */
function highest(figure: 'exponent' | 'step', digits: number): string {
  const [most] = [...judgements.values()].toSorted((a, b) => b[figure] - a[figure]);
  return most === undefined ? 'none' : `${most[figure].toFixed(digits)} (${most.name})`;
}

function report(isAbove: boolean, work: Work, row: string): void {
  if (isAbove) above.push({ work, row });
  console.log(row);
}

const nameOf = ({ part, shape }: Work, size: number): string =>
  `${part}, ${shape}, ${size} and ${size * factor}`;

/** Megabytes of memory, in the heap and in buffers, that were held behind a piece of work: now, and at most. */
let mostHeld = 0;
function held(): number {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  const megabytes = (heapUsed + arrayBuffers) / 1e6;
  mostHeld = Math.max(mostHeld, megabytes);
  return megabytes;
}

/** Runs work. Reports an error as a row and continues. */
async function tried(work: Work, run: () => void | Promise<void>): Promise<void> {
  try {
    await run();
    await work.close?.();
  } catch (error) {
    report(true, work, `${String(error)}  ${work.part}, ${work.shape}`);
  }
  const megabytes = held();
  if (tellsMemory) console.log(`${megabytes.toFixed(0).padStart(6)} MB held`);
}

async function time(work: Work): Promise<void> {
  const growth = await measure(work, { exponent: mostExponent, perMegabyte: mostPerMegabyte });
  const { size, time: taken, exponent, perMegabyte } = growth;
  const name = nameOf(work, size);
  const isStep = work.oneStep !== false;
  const isAbove = exponent > mostExponent || (isStep && perMegabyte > mostPerMegabyte);
  if (work.except === undefined) judge(work, { name, exponent, step: isStep ? perMegabyte : 0 });
  const figures = `${exponent.toFixed(2).padStart(6)} ${taken.toFixed(0).padStart(6)} ms ${perMegabyte.toFixed(1).padStart(7)} ms/MB ${isStep ? 'at once' : '       '}`;
  const note = work.except === undefined ? '' : `, not judged: ${work.except}`;
  report(isAbove && work.except === undefined, work, `${figures}  ${name}${note}`);
}

function count(counter: EffortCounter, work: Work): void {
  const growth = counter.growth(work, countedSize, mostCounted);
  const name = nameOf(work, growth.size);
  judge(work, { name, exponent: Math.max(growth.steps, growth.bytes), step: 0 });
  const figures = `steps ${growth.steps.toFixed(2).padStart(5)}, bytes ${growth.bytes.toFixed(2).padStart(5)}`;
  report(growth.steps > mostCounted || growth.bytes > mostCounted, work, `${figures}  ${name}`);
}

/** Returns the selected work. */
function wanted(works: readonly Work[]): readonly Work[] {
  const has = ({ part, shape }: Work, text: string): boolean => `${part}, ${shape}`.includes(text);
  const chosen = works
    .slice(
      Math.max(
        0,
        works.findIndex((work) => has(work, first)),
      ),
    )
    .filter((work) => has(work, only));
  const [part = 1, parts = 1] = option('--part').split('/').filter(Boolean).map(Number);
  if (!(part >= 1 && part <= parts)) throw new Error('--part must be like 3/8.');
  const until = (number: number): number => Math.round((chosen.length * number) / parts);
  return chosen.slice(until(part - 1), until(part));
}

if (process.argv.includes('--counts')) {
  const counter = new EffortCounter();
  for (const work of wanted(countedWork)) await tried(work, () => count(counter, work));
  counter.close();
} else {
  const bench = await PluginBench.start();
  const gateway = await MeasuredGateway.start();
  const works = [
    ...lineWork(),
    ...byteWork(),
    ...otherWork,
    ...readerWork,
    ...codecWork,
    ...pluginWork(bench),
    ...gatewayWork(gateway, all),
  ];
  try {
    for (const work of wanted(works)) await tried(work, () => time(work));
    for (let again = 0; again < mostAgain && above.length > 0; again += 1) {
      console.log(`\n${above.length} above the limits, measured again:`);
      const before = above;
      above = [];
      for (const { work } of before) await tried(work, () => time(work));
    }
  } finally {
    await gateway.close();
    await bench.close();
  }
}
if (above.length > 0) console.log(`\nAbove the limits:\n${above.map(({ row }) => row).join('\n')}\n`);
console.log(
  `${judgements.size} rows, highest exponent ${highest('exponent', 2)}, highest step ${highest('step', 1)} ms/MB, at most ${mostHeld.toFixed(0)} MB held behind a row`,
);
process.exitCode = above.length === 0 ? 0 : 1;

/**
 * `npm run linear`: how much longer everything takes when its input is four times as long. Work that grows faster than its input is a
 * defect, whoever chooses the input; so is a step that holds everybody else up for long. Prints one line for each piece of work, those that are
 * above a limit again at the end, and exits with 1 when there is one. `--only TEXT` for those whose name has the text in it, `--from TEXT`
 * for the first of these and all behind it;
 * `--all` makes the whole calls between all pairs of formats, which takes long.
 *
 * What is measured is processor time: the machine should have nothing else to do. `--counts` tells on any machine how steps and bytes grow
 * instead, which is what the tests try for a part of it.
 */
import { codecWork } from './codecs.ts';
import { EffortCounter } from './effort.ts';
import { countedWork, otherWork } from './others.ts';
import { gatewayWork, MeasuredGateway } from './gateway.ts';
import { factor, measure, type Work } from './measure.ts';
import { PluginBench } from './plugin-bench.ts';
import { pluginWork } from './plugins.ts';

/** Above this, work grows faster than its input. */
const mostExponent = 1.2;
/** The same for counts, which are taken of small inputs. */
const mostCounted = 1.3;
const countedSize = 128;
/** Milliseconds for each megabyte that a step may take in one go. */
const mostPerMegabyte = 50;

const all = process.argv.includes('--all');
const option = (name: string): string =>
  process.argv.includes(name) ? (process.argv[process.argv.indexOf(name) + 1] ?? '') : '';
const only = option('--only');
const first = option('--from');
let tried = 0;
const above: string[] = [];

/** The highest of one kind of figure, and where it was found. */
class Highest {
  value = 0;
  #name = 'none';

  add(value: number, name: string): void {
    if (value <= this.value) return;
    this.value = value;
    this.#name = name;
  }

  text(digits: number, unit = ''): string {
    return `${this.value.toFixed(digits)}${unit} (${this.#name})`;
  }
}

const exponents = new Highest();
const steps = new Highest();

function tell(isAbove: boolean, row: string): void {
  tried += 1;
  if (isAbove) above.push(row);
  console.log(row);
}

const nameOf = ({ part, shape }: Work, size: number): string =>
  `${part}, ${shape}, ${size} and ${size * factor}`;

/** What throws is told as a row, and the others go on. */
async function judged(work: Work, judge: () => void | Promise<void>): Promise<void> {
  try {
    await judge();
  } catch (error) {
    tell(true, `${String(error)}  ${work.part}, ${work.shape}`);
  }
}

async function time(work: Work): Promise<void> {
  const growth = await measure(work, { exponent: mostExponent, perMegabyte: mostPerMegabyte });
  const { size, time: taken, exponent, perMegabyte } = growth;
  const name = nameOf(work, size);
  const isStep = work.oneStep !== false;
  const isAbove = exponent > mostExponent || (isStep && perMegabyte > mostPerMegabyte);
  if (work.except === undefined) {
    exponents.add(exponent, name);
    if (isStep) steps.add(perMegabyte, name);
  }
  const figures = `${exponent.toFixed(2).padStart(6)} ${taken.toFixed(0).padStart(6)} ms ${perMegabyte.toFixed(1).padStart(7)} ms/MB ${isStep ? 'at once' : '       '}`;
  const note = work.except === undefined ? '' : `, not judged: ${work.except}`;
  tell(isAbove && work.except === undefined, `${figures}  ${name}${note}`);
}

function count(counter: EffortCounter, work: Work): void {
  const growth = counter.growth(work, countedSize, mostCounted);
  const name = nameOf(work, growth.size);
  exponents.add(Math.max(growth.steps, growth.bytes), name);
  const figures = `steps ${growth.steps.toFixed(2).padStart(5)}, bytes ${growth.bytes.toFixed(2).padStart(5)}`;
  tell(growth.steps > mostCounted || growth.bytes > mostCounted, `${figures}  ${name}`);
}

/** Those that are asked for. */
function wanted(works: readonly Work[]): readonly Work[] {
  const has = ({ part, shape }: Work, text: string): boolean => `${part}, ${shape}`.includes(text);
  return works
    .slice(
      Math.max(
        0,
        works.findIndex((work) => has(work, first)),
      ),
    )
    .filter((work) => has(work, only));
}

if (process.argv.includes('--counts')) {
  const counter = new EffortCounter();
  for (const work of wanted(countedWork)) await judged(work, () => count(counter, work));
  counter.close();
} else {
  const bench = await PluginBench.start();
  const gateway = await MeasuredGateway.start();
  const works = [...otherWork, ...codecWork, ...pluginWork(bench), ...gatewayWork(gateway, all)];
  try {
    for (const work of wanted(works)) await judged(work, () => time(work));
  } finally {
    await gateway.close();
    await bench.close();
  }
}
if (above.length > 0) console.log(`\nAbove the limits:\n${above.join('\n')}\n`);
console.log(`${tried} rows, highest exponent ${exponents.text(2)}, highest step ${steps.text(1, ' ms/MB')}`);
process.exitCode = above.length === 0 ? 0 : 1;

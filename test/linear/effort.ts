import { Session, type Profiler } from 'node:inspector';
import { GCProfiler, getHeapStatistics } from 'node:v8';
import { exponentOf, factor, type Job, type Work } from './measure.ts';

/** Growth of the work by counts, which do not depend on the machine's load: 1 is linear, 2 is quadratic. */
export interface EffortGrowth {
  readonly work: Work;
  readonly size: number;
  /** Number of entered blocks of the product's code. */
  readonly steps: number;
  /** Allocated bytes, including garbage. */
  readonly bytes: number;
}

const source = /\/(core|plugins|channels)\/.*\.ts/;

/** Steps and bytes below which nothing is said of how they grow: fixed costs, and the first sizes of tables, would show. */
const few = 2_000;
const little = 256 * 1024;

/** Counts the effort of runs on this thread, that of searches inside Node apart. Slow; close it. */
export class EffortCounter {
  readonly #session = new Session();

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /**
   * How the work grows from this size, or the largest that it has, to four times as much. What grows by more than `limit` is counted again:
   * now and then the engine compiles, or collects, in the middle of a run, and asks for memory of its own.
   */
  growth(work: Work, size: number, limit: number): EffortGrowth {
    const first = this.#growth(work, size);
    let { steps, bytes } = first;
    for (let again = 0; again < 2 && (steps > limit || bytes > limit); again += 1) {
      const next = this.#growth(work, size);
      steps = Math.min(steps, next.steps);
      bytes = Math.min(bytes, next.bytes);
    }
    return { ...first, steps, bytes };
  }

  close(): void {
    this.#session.disconnect();
  }

  #growth(work: Work, size: number): EffortGrowth {
    const least = Math.min(size, Math.floor((work.most ?? Infinity) / factor));
    const [small, large] = [work.make(least), work.make(least * factor)];
    small.run();
    this.#takeSteps();
    const [first, second] = [this.#count(small), this.#count(large)];
    return {
      work,
      size: least,
      steps: exponentOf(Math.max(few, first.steps), Math.max(few, second.steps)),
      bytes: exponentOf(Math.max(little, first.bytes), Math.max(little, second.bytes)),
    };
  }

  #count(job: Job): { readonly steps: number; readonly bytes: number } {
    const garbage = new GCProfiler();
    garbage.start();
    const before = getHeapStatistics().used_heap_size;
    job.run();
    let bytes = getHeapStatistics().used_heap_size - before;
    for (const { beforeGC, afterGC } of garbage.stop()?.statistics ?? [])
      bytes += beforeGC.heapStatistics.usedHeapSize - afterGC.heapStatistics.usedHeapSize;
    return { steps: this.#takeSteps(), bytes };
  }

  /** Since the last time. */
  #takeSteps(): number {
    let steps = 0;
    this.#session.post('Profiler.takePreciseCoverage', (_error, { result }) => {
      for (const script of result) if (source.test(script.url)) steps += stepsOf(script);
    });
    return steps;
  }
}

function stepsOf({ functions }: Profiler.ScriptCoverage): number {
  let steps = 0;
  for (const { ranges } of functions) for (const { count } of ranges) steps += count;
  return steps;
}

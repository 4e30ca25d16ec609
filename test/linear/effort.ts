import { Session, type HeapProfiler, type Profiler } from 'node:inspector';

/** What a run costs, however busy the machine is. */
export interface Effort {
  /** How often the blocks of the product's own code were entered. */
  readonly steps: number;
  /** Bytes that were asked for, those that are garbage by now among them; to a few per cent. */
  readonly allocated: number;
}

const source = /\/(core|plugins|channels)\/.*\.ts/;

/** Counts the effort of runs on this thread. Slow; close it. */
export class EffortCounter {
  readonly #session = new Session();

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('HeapProfiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  count(run: () => unknown): Effort {
    this.#steps();
    const options = {
      samplingInterval: 2048,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    };
    this.#session.post('HeapProfiler.startSampling', options);
    run();
    let allocated = 0;
    this.#session.post('HeapProfiler.stopSampling', (_error, { profile }) => {
      allocated = sizeOf(profile.head);
    });
    return { steps: this.#steps(), allocated };
  }

  close(): void {
    this.#session.disconnect();
  }

  /** Since the last time. */
  #steps(): number {
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

function sizeOf({ selfSize, children }: HeapProfiler.SamplingHeapProfileNode): number {
  return children.reduce((sum, child) => sum + sizeOf(child), selfSize);
}

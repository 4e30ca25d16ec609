import { setTimeout as pass } from 'node:timers/promises';
import { Caller } from './caller.ts';
import { configWith, operate } from './gateway.ts';
import { NumberStream, voices, type End } from './streams.ts';

/** Options of a run. */
export interface ReloadPlan {
  readonly streams: number;
  /** Milliseconds between two numbers of a stream. */
  readonly pace: number;
  /**
   * Numbers of the longest stream. The shortest has ten, and each is longer than the one before it by the same share: some end early on a
   * machine of any speed, and some are open to the end.
   */
  readonly longest: number;
  /** Milliseconds for open streams when the gateway stops. */
  readonly drain: number;
  readonly print: (line: string) => void;
}

/** Result of a run. */
export interface ReloadResult {
  readonly streams: Readonly<Record<End, number>>;
  /** Streams that became complete between the wish to stop and its deadline. */
  readonly completeWhileStopping: number;
  /** Streams that ended with an error before the deadline: there must be none. */
  readonly errorsTooEarly: number;
  readonly calls: number;
  /** Calls that got anything but a whole answer, before the gateway was told to stop. */
  readonly failedCalls: number;
  /** Reasons of everything that went wrong, a few of them. */
  readonly reasons: readonly string[];
  /** Marks that calls carried: which version of the plugin answered. */
  readonly marks: readonly string[];
  readonly exit: number | string;
}

const marker = (mark: string): string => `
import { addReplyHeaders, definePlugin } from 'sluice';
export default definePlugin({
  name: 'marker',
  stage: 'shape',
  setup: () => (call, next) => {
    addReplyHeaders(call, { 'x-mark': '${mark}' });
    return next(call);
  },
});
`;

/**
 * Opens streams through a gateway with two workers; then changes config and plugin and reloads, breaks the config and reloads, and stops
 * it. Meanwhile calls go on, over new connections and over kept ones.
 */
export async function tryReloads({
  streams: count,
  pace,
  longest,
  drain,
  print,
}: ReloadPlan): Promise<ReloadResult> {
  const config = (more: string): string =>
    configWith(
      `workers: 2, log: { level: 'info' }, timeouts: { drain: ${drain}, drainDelay: 0 }, channels: [demo({ pace: ${pace} })], ${more}`,
    );
  const gateway = await operate({ 'gateway.config.ts': config(''), 'plugins/marker.ts': marker('one') });
  try {
    const began = performance.now();
    const since = (): string => `${((performance.now() - began) / 1000).toFixed(1)} s`;
    const open = Array.from({ length: count }, (_, index) => {
      const numbers = Math.round(10 * (longest / 10) ** (index / (count - 1)));
      return new NumberStream(gateway.url, voices[index % voices.length] ?? voices[0]!, numbers);
    });
    await Promise.all(open.map(({ begun }) => begun));
    print(`${since()}: ${count} streams are open, through workers ${gateway.workers().join(' and ')}`);
    const callers = [new Caller(gateway, false), new Caller(gateway, true), new Caller(gateway, true)];

    gateway.write('plugins/marker.ts', marker('two'));
    gateway.write('gateway.config.ts', config(`limits: { depth: 100 },`));
    gateway.signal('SIGHUP');
    await gateway.logged('reloaded: previous workers finish their calls');
    await callers[0]?.sees('two');
    print(
      `${since()}: reloaded, with another config and another plugin: workers ${gateway.workers().join(', ')}`,
    );

    gateway.write('gateway.config.ts', config(`lisen: {},`));
    gateway.signal('SIGHUP');
    const { problem } = await gateway.logged('reload failed, previous configuration kept');
    print(`${since()}: not reloaded, with a config that is wrong: ${String(problem)}`);
    await pass(2 * pace);

    const outcomes = await Promise.all(callers.map((caller) => caller.stop()));
    const stoppedAt = performance.now();
    gateway.signal('SIGTERM');
    print(`${since()}: told to stop, within ${drain / 1000} s`);
    const exit = await gateway.exited;
    print(`${since()}: ended with ${exit}`);
    const ends = await Promise.all(open.map(({ end }) => end));
    const of = (wanted: End): number => ends.filter((end) => end === wanted).length;
    return {
      streams: { complete: of('complete'), error: of('error'), broken: of('broken') },
      completeWhileStopping: open.filter(
        ({ endedAt }, index) => ends[index] === 'complete' && endedAt > stoppedAt,
      ).length,
      errorsTooEarly: open.filter(
        ({ endedAt }, index) => ends[index] === 'error' && endedAt < stoppedAt + drain - 50,
      ).length,
      calls: outcomes.reduce((sum, { calls }) => sum + calls, 0),
      failedCalls: outcomes.reduce((sum, { failures }) => sum + failures.length, 0),
      reasons: [
        ...open.flatMap(({ why }) => (why === '' ? [] : [why])),
        ...outcomes.flatMap(({ failures }) => failures),
      ].slice(0, 10),
      marks: [...new Set(outcomes.flatMap(({ marks }) => [...marks]))],
      exit,
    };
  } finally {
    await gateway.end();
  }
}

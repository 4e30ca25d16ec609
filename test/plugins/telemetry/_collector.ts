import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { Behaviour, Report } from './_collector-process.ts';
import type { SeenPoint, SeenRecord, SeenSpan } from './_otlp.ts';

/** One export that the receiver got. */
export type Got = Extract<Report, { readonly type: 'got' }>;

/** A receiver in a process of its own. */
export interface Collector {
  readonly url: string;
  readonly port: number;
  /** All exports, also those that it refused. */
  readonly got: Got[];
  /** Received data. */
  readonly spans: readonly SeenSpan[];
  readonly points: readonly SeenPoint[];
  readonly records: readonly SeenRecord[];
  /** Waits for at least so many spans that fit. */
  waitForSpans(count: number, fits?: (span: SeenSpan) => boolean): Promise<readonly SeenSpan[]>;
  behave(behaviour: Behaviour): Promise<void>;
  /** Kills it, as a crash would, once it has answered what it has taken. */
  kill(): Promise<void>;
}

/** Starts a receiver, on a port where one is given. It ends with the test, or when `ends` says. */
export async function startCollector(
  behaviour: Behaviour = {},
  port = 0,
  ends: (job: () => Promise<void>) => void = onTestFinished,
): Promise<Collector> {
  const file = fileURLToPath(new URL('_collector-process.ts', import.meta.url));
  const child = fork(file, [String(port), JSON.stringify(behaviour)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const got: Got[] = [];
  let answered = 0;
  const listening = Promise.withResolvers<number>();
  let behaves = Promise.withResolvers<void>();
  child.on('message', (message: Report) => {
    if (message.type === 'listens') listening.resolve(message.port);
    else if (message.type === 'behaves') behaves.resolve();
    else if (message.type === 'answered') answered += 1;
    else got.push(message);
  });
  child.on('exit', (code) => listening.reject(new Error(`The receiver ended with ${code}.`)));
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  ends(kill);
  const bound = await listening.promise;
  const taken = (): Got['seen'][] => got.flatMap((one) => (one.taken ? [one.seen] : []));
  const spans = (): SeenSpan[] => taken().flatMap((seen) => (seen.signal === 'traces' ? seen.spans : []));
  return {
    url: `http://127.0.0.1:${bound}`,
    port: bound,
    got,
    get spans() {
      return spans();
    },
    get points() {
      return taken().flatMap((seen) => (seen.signal === 'metrics' ? seen.points : []));
    },
    get records() {
      return taken().flatMap((seen) => (seen.signal === 'logs' ? seen.records : []));
    },
    async waitForSpans(count, fits = () => true) {
      return eventually(() => {
        const found = spans().filter(fits);
        if (found.length < count) throw new Error(`There are ${found.length} of ${count} spans.`);
        return found;
      });
    },
    async behave(next) {
      behaves = Promise.withResolvers();
      child.send(next);
      await behaves.promise;
    },
    async kill() {
      await eventually(() => {
        if (answered < taken().length) throw new Error('The receiver has not answered yet.');
      });
      await kill();
    },
  };
}

import type { Rates } from '../../core/money/rates/index.ts';
import { RedisRates } from '../../core/money/rates/redis.ts';
import { takeScript } from '../../core/money/rates/scripts.ts';
import { keyOf, type RatesStore, type StoreWatcher } from '../../core/money/rates/store.ts';
import type { Script } from '../../core/state/links/shared-link.ts';
import {
  traces,
  type Counters,
  type CountersOptions,
  type CountingWorker,
  type Trouble,
} from './counters.ts';
import { MemoryRedis } from './redis.ts';
import { ProcessClock, startOfTime, type Chance } from './time.ts';

/** Time in ms after which a command that is not answered ends its connection. */
const commandTime = 400;

/** Time in ms between two tries to connect. */
const pause = 500;

/** Time in ms in which a command is answered when nothing is wrong. */
const settleTime = 100;

/** Time in ms that one request for a message waits. */
const messageWait = 200;

/**
 * Workers of several gateways with their real counters before one store, which runs the real scripts. Commands of a connection stay in order;
 * workers and the store stand still, connections break with commands on their way, workers are killed, clocks run unequally fast, and a
 * server is followed by another one that has not received the latest writes.
 */
export class RedisCounters implements Counters {
  readonly drift = 0.01;
  readonly #options: CountersOptions;
  readonly #server: ProcessClock;
  readonly #redis: MemoryRedis;
  readonly #cutUntil = new Map<number, number>();
  readonly #connections = new Set<Connection>();
  readonly #waiting = new Set<() => void>();

  constructor(options: CountersOptions) {
    this.#options = options;
    this.#server = new ProcessClock(options.time, 1, 0);
    this.#redis = new MemoryRedis(() => Math.floor((startOfTime + options.time.now) * 1_000));
  }

  open(worker: CountingWorker): Rates {
    return new RedisRates({
      whenDown: 'refuse',
      times: this.#options.times,
      clock: worker.clock,
      process: nameOf(worker),
      connect: (watcher) => this.#connect(worker, watcher),
    });
  }

  forget(): void {
    // The store hears nothing of it.
  }

  fail(worker: CountingWorker, chance: Chance): Trouble {
    const { time, times } = this.#options;
    const length = chance.of([20, 150, 700, 2_500, 4_000, 8_000]);
    // Slots of connections that were cut, or of a server that has lost their return, are free when their leases are over.
    const isLong = length + 1_000 >= times.lease / 2;
    const trouble = (concerns: 'worker' | 'all'): Trouble => ({
      length: length + times.lease,
      concerns,
      ...(isLong ? { unleases: concerns } : {}),
    });
    switch (chance.of(['stop', 'stop', 'cut', 'half', 'server', 'follower', 'forget', 'split', 'split'])) {
      case 'stop':
        worker.clock.stop(length, chance.is(0.5));
        return trouble('worker');
      case 'cut':
        this.#cutUntil.set(worker.id, time.now + length);
        return trouble('worker');
      case 'half':
        // One of its two connections breaks, and is made anew.
        chance.of([...this.#connections].filter((one) => one.isOf(worker.clock))).breakOff();
        return { length: times.lease, concerns: 'worker' };
      case 'server':
        this.#server.stop(Math.min(length, 2_500));
        return trouble('all');
      case 'forget':
        return { length: 2 * times.lease, lost: this.#forget() };
      case 'split':
        // The server starts again with nothing, and one worker cannot reach it.
        this.#cutUntil.set(worker.id, time.now + length);
        return { ...trouble('worker'), length: length + 2 * times.lease, lost: this.#forget() };
      default: {
        const behind = chance.of([1, 20, 300]);
        const copy = this.#redis.snapshot();
        time.after(behind, () => {
          this.#redis.restore(copy);
          for (const connection of this.#connections) connection.breakOff();
        });
        return {
          length: behind + times.lease,
          concerns: 'all',
          lost: { from: time.now, until: time.now + behind, foundIn: 20 },
        };
      }
    }
  }

  slotsOf(subject: string, worker?: CountingWorker): number {
    const now = Math.floor(startOfTime + this.#options.time.now);
    return this.#redis.count(keyOf(subject), now, worker === undefined ? '' : `${nameOf(worker)}:`);
  }

  /** Empties the store, as an operator may. What is held is found to be unknown when it is renewed, or the connection is found to be lost. */
  #forget(): NonNullable<Trouble['lost']> {
    const { time, times } = this.#options;
    this.#redis.forget();
    const foundIn = (times.lease / 3) * (1 + 2 * this.drift) + commandTime + settleTime;
    return { from: 0, until: time.now, foundIn };
  }

  #connect(worker: CountingWorker, watcher: StoreWatcher): RatesStore {
    const commands = new Connection(this.#linkOf(worker), watcher);
    let messages: Connection | undefined;
    this.#connections.add(commands);
    return {
      get isUp() {
        return commands.isUp;
      },
      run: (script, keys, values) => {
        const trace = script === takeScript ? traces.getStore() : undefined;
        if (trace !== undefined) trace.isRequested = true;
        return commands.request((answer) => {
          if (trace !== undefined) trace.countedAt = this.#options.time.now;
          answer(this.#run(script, keys, values));
        });
      },
      receive: (list) => {
        if (messages === undefined) {
          messages = new Connection(this.#linkOf(worker), { up: () => {}, down: () => {} });
          this.#connections.add(messages);
        }
        return messages.request((answer) => this.#receive(list, answer));
      },
      close: async () => {},
    };
  }

  #linkOf(worker: CountingWorker): Link {
    const { time } = this.#options;
    const { chance, delay } = this.#options;
    // Some connections are faster than others, also of one worker.
    const pace = chance.of([0.1, 1]);
    return {
      ...this.#options,
      delay: () => pace * delay(),
      clock: worker.clock,
      server: this.#server,
      isCut: () => (this.#cutUntil.get(worker.id) ?? 0) > time.now,
    };
  }

  #run(script: Script, keys: readonly string[], values: readonly string[]): readonly unknown[] {
    const reply = this.#redis.run(script.text, keys, values);
    for (const look of this.#waiting) look();
    return reply;
  }

  #receive(list: string, answer: (message: string | undefined) => void): void {
    const end = (message: string | undefined): void => {
      this.#waiting.delete(look);
      stop();
      answer(message);
    };
    const look = (): void => {
      const message = this.#redis.pop(list);
      if (message !== undefined) end(message);
    };
    const stop = this.#options.time.after(messageWait, () => end(undefined));
    this.#waiting.add(look);
    look();
  }
}

interface Link extends CountersOptions {
  readonly clock: ProcessClock;
  readonly server: ProcessClock;
  readonly isCut: () => boolean;
}

function nameOf({ id }: CountingWorker): string {
  return `worker ${id}`;
}

/** One connection, which is made anew when it was lost. */
class Connection {
  isUp: boolean;
  readonly #link: Link;
  readonly #watcher: StoreWatcher;
  /** Arrival time of the latest command in each direction, because commands stay in order. */
  readonly #arrivals = { out: 0, in: 0 };
  readonly #open = new Set<() => void>();
  /** Number of times that it was made. */
  #made = 0;

  constructor(link: Link, watcher: StoreWatcher) {
    this.#link = link;
    this.#watcher = watcher;
    // Commands wait for the first connection.
    this.isUp = true;
    link.clock.after(link.delay(), () => watcher.up());
  }

  /** Asks the server, which answers once. */
  request<Answer>(work: (answer: (value: Answer) => void) => void): Promise<Answer> {
    const { time, clock, server, delay, isCut } = this.#link;
    const made = this.#made;
    return new Promise((resolve, reject) => {
      if (!this.isUp) {
        reject(new Error('The store is gone.'));
        return;
      }
      const fail = (): void => reject(new Error('The store is gone.'));
      this.#open.add(fail);
      const stopTimer = clock.after(commandTime, () => this.#lose());
      if (isCut()) return;
      this.#arrivals.out = Math.max(this.#arrivals.out, time.now + delay());
      time.after(this.#arrivals.out - time.now, () =>
        server.run(() => {
          if (made !== this.#made) return;
          work((value) => {
            if (isCut()) return;
            this.#arrivals.in = Math.max(this.#arrivals.in, time.now + delay());
            time.after(this.#arrivals.in - time.now, () =>
              clock.run(() => {
                if (!this.#open.delete(fail)) return;
                stopTimer();
                resolve(value);
              }),
            );
          });
        }),
      );
    });
  }

  isOf(clock: ProcessClock): boolean {
    return this.#link.clock === clock;
  }

  /** The server is gone: commands on their way are lost. */
  breakOff(): void {
    const { time, clock, delay } = this.#link;
    this.#made += 1;
    time.after(delay(), () => clock.run(() => this.#lose()));
  }

  #connect(): void {
    const { clock, server, isCut, delay } = this.#link;
    clock.after(pause + 2 * delay(), () => {
      if (isCut() || server.isStopped) {
        this.#connect();
        return;
      }
      this.#arrivals.out = 0;
      this.#arrivals.in = 0;
      this.isUp = true;
      this.#watcher.up();
    });
  }

  #lose(): void {
    if (!this.isUp) return;
    this.isUp = false;
    const open = [...this.#open];
    this.#open.clear();
    for (const fail of open) fail();
    this.#watcher.down();
    this.#connect();
  }
}

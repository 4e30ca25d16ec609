/** Virtual time for tests: timers, `Date` and `performance.now()` that advance only on demand. */
import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';

/**
 * Time that stands still until a test moves it.
 *
 * @example
 * const clock = virtualClock();
 * await clock.advance(60_000);
 * clock.restore();
 */
export interface VirtualClock {
  /** Advances time by so many milliseconds: runs the timers that are due, and the promises that wait for them. */
  advance(milliseconds: number): Promise<void>;
  /** Restores the real time. */
  restore(): void;
}

/**
 * Stops timers, `Date` and `performance.now()` for the whole process, but not sockets. One virtual clock at a time.
 *
 * @example
 * const clock = virtualClock();
 * const running = tested.run('hello', { reply: reply('Well', pause(60_000), ' then.') });
 * await clock.advance(60_000);
 * const { text } = await running;
 * clock.restore();
 */
export function virtualClock(): VirtualClock {
  const begun = { date: Date.now(), elapsed: performance.now() };
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: begun.date });
  performance.now = () => begun.elapsed + Date.now() - begun.date;
  return {
    async advance(milliseconds) {
      await settled();
      mock.timers.tick(milliseconds);
      await settled();
    },
    restore() {
      mock.timers.reset();
      // Removes the own property, so that the inherited method applies again.
      Reflect.deleteProperty(performance, 'now');
    },
  };
}

/** Runs the event loop for some turns, so that promises that are ready continue. */
async function settled(): Promise<void> {
  // oxlint-disable-next-line no-await-in-loop -- each turn may make the next one ready
  for (let turns = 0; turns < 5; turns += 1) await turn();
}

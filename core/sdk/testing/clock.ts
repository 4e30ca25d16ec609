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
  /** Moves time on by so many milliseconds: timers that fall due run, and what waits for them goes on. */
  advance(milliseconds: number): Promise<void>;
  /** Gives the real time back. */
  restore(): void;
}

/**
 * From now on timers, `Date` and `performance.now()` stand still, for all in this process; sockets do not. One at a time.
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
      // What stood in front of the method that all of them inherit.
      Reflect.deleteProperty(performance, 'now');
    },
  };
}

/** What is ready goes on, as far as it comes without time. */
async function settled(): Promise<void> {
  // oxlint-disable-next-line no-await-in-loop -- each turn may make the next one ready
  for (let turns = 0; turns < 5; turns += 1) await turn();
}

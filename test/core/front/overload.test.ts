import { getHeapStatistics } from 'node:v8';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Call } from '../../../core/sdk/call.ts';
import { createLog } from '../../../core/log.ts';
import { Overload, processGauges } from '../../../core/front/overload.ts';
import { overloadSchema } from '../../../core/settings/processes.ts';

/** A process whose clock and memory are what the test says. */
class Machine {
  time = 0;
  full = 0.1;
  readonly lines: Record<string, unknown>[] = [];
  readonly overload: Overload;

  constructor(settings: Parameters<typeof overloadSchema.parse>[0], largestBody = 1024) {
    const log = createLog('debug', {
      write: (line: string) => void this.lines.push(JSON.parse(line) as Record<string, unknown>),
    });
    this.overload = new Overload(overloadSchema.parse(settings), largestBody, log, {
      now: () => this.time,
      memory: () => this.full,
    });
    machines.push(this);
  }

  /** A look that comes so much too late, or those of a quarter of a second that are in time. */
  look(late = 0): void {
    for (let looks = late > 0 ? 1 : 5; looks > 0; looks -= 1) {
      this.time += 50 + late;
      this.overload.look();
    }
  }
}

const machines: Machine[] = [];
afterEach(() => {
  for (const { overload } of machines.splice(0)) overload.close();
});

/** A call that can end. */
function callThatEnds(): { readonly call: Call; end(): void } {
  const jobs = new Set<() => void>();
  const onEnd = (job: () => void): (() => void) => {
    jobs.add(job);
    return () => void jobs.delete(job);
  };
  return {
    call: { onEnd } as Partial<Call> as Call,
    end: () => {
      for (const job of jobs) job();
    },
  };
}

const settled = async (promise: Promise<void>): Promise<string> => {
  const outcome = promise.then(
    () => 'entered',
    ({ code }: { code: string }) => code,
  );
  return Promise.race([outcome, new Promise<string>((resolve) => setImmediate(() => resolve('waits')))]);
};

describe('calls at once', () => {
  test('wait in the order in which they came, and are let in one for each that ends', async () => {
    const { overload } = new Machine({ running: 1 });
    expect(overload.enter()).toBe(true);
    expect(overload.enter()).toBe(false);
    const order: string[] = [];
    const first = overload.wait(callThatEnds().call, () => order.push('first'));
    const second = overload.wait(callThatEnds().call, () => order.push('second'));
    expect(overload.waiting).toBe(2);
    overload.leave();
    expect([await settled(first), await settled(second)]).toEqual(['entered', 'waits']);
    overload.leave();
    await second;
    expect(order).toEqual(['first', 'second']);
    expect([overload.running, overload.waiting]).toEqual([1, 0]);
    overload.leave();
    expect([overload.running, overload.ended]).toEqual([0, 3]);
  });

  test('are refused with 503 and a time when as many wait as may', async () => {
    const { overload, lines } = new Machine({ running: 1, waiting: 0 });
    overload.enter();
    await expect(overload.wait(callThatEnds().call, () => {})).rejects.toMatchObject({
      code: 'server_is_overloaded',
      status: 503,
      retryAfter: 1,
    });
    expect(overload.refused).toBe(1);
    await overload.wait(callThatEnds().call, () => {}).catch(() => {});
    expect(lines.map(({ msg }) => msg)).toEqual(['rejecting calls: limit of concurrent calls reached']);
  });

  test('are refused when nobody ends in time, and take no place any more', async () => {
    const { overload } = new Machine({ running: 1, patience: 20 });
    overload.enter();
    await expect(overload.wait(callThatEnds().call, () => {})).rejects.toMatchObject({ status: 503 });
    expect(overload.waiting).toBe(0);
    overload.leave();
    expect(overload.running).toBe(0);
  });

  test('give their place in the queue up when their client leaves', async () => {
    const { overload } = new Machine({ running: 1 });
    overload.enter();
    const { call, end } = callThatEnds();
    const waiting = overload.wait(call, () => {});
    end();
    await expect(waiting).rejects.toMatchObject({ code: 'client_closed_request' });
    overload.leave();
    expect([overload.running, overload.waiting]).toEqual([0, 0]);
  });

  test('leave no timer behind, whether they enter or their client leaves', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { overload } = new Machine({ running: 1 });
    overload.enter();
    const [left, entered] = [callThatEnds(), callThatEnds()];
    const waiting = [overload.wait(left.call, () => {}), overload.wait(entered.call, () => {})];
    expect(vi.getTimerCount()).toBe(2);
    left.end();
    await expect(waiting[0]).rejects.toMatchObject({ code: 'client_closed_request' });
    expect(vi.getTimerCount()).toBe(1);
    overload.leave();
    await waiting[1];
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('an event loop that is late', () => {
  test('twice in a row refuses new calls that it has read late, until it is in time again', async () => {
    const machine = new Machine({ lag: 500 });
    machine.look(600);
    expect(machine.overload.enter()).toBe(true);
    machine.look(600);
    expect(machine.overload.strain).toBe('lag');
    machine.time += 650;
    expect(machine.overload.enter()).toBe(false);
    await expect(machine.overload.wait(callThatEnds().call, () => {})).rejects.toMatchObject({
      status: 503,
      retryAfter: 5,
    });
    machine.overload.look();
    machine.look();
    expect(machine.overload.strain).toBeUndefined();
    machine.time += 650;
    expect(machine.overload.enter()).toBe(true);
    expect(machine.lines.map(({ level, msg }) => [level, msg])).toEqual([
      ['warn', 'overload: rejecting new calls'],
      ['info', 'overload has ended: accepting new calls'],
    ]);
  });

  test('refuses no call that it has read in time, and none that waits for its provider', () => {
    const machine = new Machine({ lag: 500 });
    expect(machine.overload.enter()).toBe(true);
    machine.look(600);
    machine.look(600);
    machine.time += 100;
    expect([machine.overload.strain, machine.overload.enter()]).toEqual(['lag', true]);
    expect([machine.overload.running, machine.overload.refused]).toEqual([2, 0]);
  });

  test('refuses calls while it still reads those that came before', () => {
    const machine = new Machine({ lag: 200 });
    const entered = Array.from({ length: 13 }, () => {
      machine.time += 50;
      return machine.overload.enter();
    });
    expect(entered).toEqual([...Array<boolean>(11).fill(true), false, false]);
    expect(machine.overload.strain).toBe('lag');
  });

  test('takes calls that one long pause has held up', () => {
    const machine = new Machine({ lag: 500 });
    expect(machine.overload.enter()).toBe(true);
    machine.time += 5_000;
    expect(machine.overload.enter()).toBe(true);
    machine.time += 400;
    expect(machine.overload.enter()).toBe(true);
  });

  test('and catches up, as after one large request, refuses nothing', () => {
    const machine = new Machine({ lag: 200 });
    for (let late = 4_000; late > 1; late *= 0.9) {
      machine.look(late);
      expect([late, machine.overload.enter()]).toEqual([late, true]);
    }
    expect(machine.overload.strain).toBeUndefined();
  });

  test('does not count for calls that are beyond what may run', () => {
    const machine = new Machine({ lag: 500, running: 1 });
    machine.overload.enter();
    machine.look(600);
    machine.look(600);
    expect(machine.overload.enter()).toBe(false);
  });

  test('before calls come is the work of the start', () => {
    const machine = new Machine({ lag: 2_000 });
    machine.time += 60_000;
    machine.overload.begin();
    machine.look();
    expect([machine.overload.lag, machine.overload.strain]).toEqual([0, undefined]);
  });

  test('once, for however long, is a pause', () => {
    const machine = new Machine({ lag: 500 });
    machine.look(60_000);
    machine.look();
    machine.look(60_000);
    expect(machine.overload.enter()).toBe(true);
  });

  test('lets those who waited in when it has recovered', async () => {
    const machine = new Machine({ running: 1, lag: 500 });
    machine.overload.enter();
    const waiting = machine.overload.wait(callThatEnds().call, () => {});
    machine.look(600);
    machine.look(600);
    machine.overload.leave();
    expect(await settled(waiting)).toBe('waits');
    machine.look();
    await waiting;
    expect(machine.overload.running).toBe(1);
  });
});

describe('a worker that takes connections one after the other', () => {
  /** So many looks, between which a call comes on a connection that waited so long. */
  const connections = (machine: Machine, waits: readonly number[]): readonly boolean[] =>
    waits.map((wait) => {
      const entered = machine.overload.enter({ acceptedAt: machine.time - wait, openedAt: machine.time });
      machine.time += 50;
      machine.overload.look();
      return entered;
    });

  test('refuses those that waited long while their wait does not get shorter', () => {
    const machine = new Machine({ lag: 200 });
    expect(connections(machine, [150, 210, 220, 230, 240, 250, 260])).toEqual(Array(7).fill(true));
    expect([machine.overload.strain, machine.overload.lag]).toEqual(['lag', 260]);
    expect(connections(machine, [280])).toEqual([false]);
    // While connections wait, calls on others do not go first.
    expect(machine.overload.enter()).toBe(false);
    expect(connections(machine, [40, 60])).toEqual([true, false]);
    expect(connections(machine, [40, 45, 40, 45, 40]).every(Boolean)).toBe(true);
    expect([machine.overload.strain, ...connections(machine, [100])]).toEqual([undefined, true]);
  });

  test('takes those that waited for a pause to end', () => {
    const machine = new Machine({ lag: 200 });
    const waits = Array.from({ length: 60 }, (_, index) => 3_000 - 50 * index);
    expect(connections(machine, waits).every(Boolean)).toBe(true);
    expect(machine.overload.strain).toBeUndefined();
  });

  test('does not hold its wait against a connection that sends its first call later', () => {
    const machine = new Machine({ lag: 200 });
    connections(machine, [300, 300, 300, 300, 300, 300, 300]);
    expect(machine.overload.strain).toBe('lag');
    const arrival = { acceptedAt: machine.time - 300, openedAt: machine.time };
    connections(machine, [300, 300]);
    expect(machine.overload.enter(arrival)).toBe(true);
  });
});

test('memory that is nearly full refuses new calls until some of it is free', () => {
  const machine = new Machine({ memory: 0.8 });
  const looks = (full: number): boolean => {
    machine.full = full;
    for (let count = 0; count < 4; count += 1) machine.look();
    const entered = machine.overload.enter();
    if (entered) machine.overload.leave();
    return entered;
  };
  expect(looks(0.79)).toBe(true);
  expect(looks(0.81)).toBe(false);
  expect([machine.overload.strain, machine.overload.memory]).toEqual(['memory', 0.81]);
  expect(looks(0.78)).toBe(false);
  expect(looks(0.74)).toBe(true);
});

describe('the memory of a process', () => {
  afterEach(() => void vi.restoreAllMocks());

  test('is that of its share where memory is limited, and else that of its heap', () => {
    const { used_heap_size: used, heap_size_limit: most } = getHeapStatistics();
    const heap = used / most;
    vi.spyOn(process.memoryUsage, 'rss').mockReturnValue(900);
    const limited = vi.spyOn(process, 'constrainedMemory').mockReturnValue(2_000);
    expect(processGauges(1).memory()).toBeCloseTo(0.45, 5);
    expect(processGauges(0.5).memory()).toBeCloseTo(0.9, 5);
    for (const none of [0, Number.MAX_SAFE_INTEGER, 2 ** 64]) {
      limited.mockReturnValue(none);
      const memory = processGauges(1).memory();
      expect([none, memory > heap / 2, memory < 1, memory === 0.45]).toEqual([none, true, true, false]);
    }
    // A heap that is nearly full counts though the process is small.
    limited.mockReturnValue(2 ** 50);
    expect(processGauges(1).memory()).toBeGreaterThan(heap / 2);
  });
});

describe('bodies that are held', () => {
  test('come to no more than they may together, and one always has room', () => {
    const { overload } = new Machine({ bodies: 4096 }, 2048);
    const { bodyBudget } = overload;
    bodyBudget.take(4000);
    expect(() => bodyBudget.take(97)).toThrow('limit of request bytes in memory');
    expect(overload.bodies).toBe(4000);
    bodyBudget.giveBack(4000);
    bodyBudget.take(97);
    const small = new Machine({ bodies: 1024 }, 8192).overload;
    small.bodyBudget.take(8192);
    expect(() => small.bodyBudget.take(1)).toThrow('limit of request bytes in memory');
  });
});

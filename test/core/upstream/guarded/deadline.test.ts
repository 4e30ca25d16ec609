import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { GatewayError } from '../../../../core/sdk/errors.ts';
import { Deadline } from '../../../../core/upstream/guarded/deadline.ts';
import { testCall } from '../../../support/call.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const begin = () => {
  const { call, exchange } = testCall();
  return { deadline: new Deadline(call, 1_000), exchange };
};

/** Returns the error with which a step rejects. */
const reasonOf = (step: Promise<unknown>): Promise<unknown> =>
  step.then(
    () => 'nothing',
    (error: unknown) => error,
  );

describe('a step', () => {
  test('gives what it gives, and is not stopped afterwards', async () => {
    const { deadline, exchange } = begin();
    const stop = vi.fn<() => void>();
    expect(await deadline.during((resolve) => (setImmediate(() => {}), resolve('now'), stop))).toBe('now');
    const later = deadline.during<string>((resolve) => {
      setTimeout(() => resolve('later'), 10);
      return stop;
    });
    vi.advanceTimersByTime(10);
    expect(await later).toBe('later');
    exchange.end();
    vi.advanceTimersByTime(1_000);
    expect(stop).not.toHaveBeenCalled();
  });

  test('fails as it fails', async () => {
    const { deadline } = begin();
    const stop = vi.fn<() => void>();
    const wrong = new Error('wrong');
    await expect(deadline.during((_, reject) => (reject(wrong), stop))).rejects.toBe(wrong);
    expect(stop).not.toHaveBeenCalled();
  });

  test('is stopped once when the time is over, whatever it says later', async () => {
    const { deadline, exchange } = begin();
    const stop = vi.fn<() => void>();
    let finish: ((value: string) => void) | undefined;
    let fail: ((error: unknown) => void) | undefined;
    const step = deadline.during<string>((resolve, reject) => {
      finish = resolve;
      fail = reject;
      return stop;
    });
    const failure = reasonOf(step);
    vi.advanceTimersByTime(999);
    expect(stop).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(stop).toHaveBeenCalledTimes(1);
    finish?.('late');
    fail?.(new Error('late'));
    exchange.end();
    expect(await failure).toMatchObject({ message: 'The time limit was reached.' });
    expect(stop).toHaveBeenCalledTimes(1);
  });

  test('is told the reason that is in force when the time is over', async () => {
    const { deadline } = begin();
    deadline.reason = () => new GatewayError('server_is_overloaded', 'Too many.');
    const step = reasonOf(deadline.during(() => () => {}));
    vi.advanceTimersByTime(1_000);
    expect(await step).toMatchObject({ message: 'Too many.' });
  });

  test('that comes after the end is not begun', async () => {
    for (const end of ['time', 'call'] as const) {
      const { deadline, exchange } = begin();
      if (end === 'time') vi.advanceTimersByTime(1_000);
      else exchange.end();
      const work = vi.fn<() => () => void>(() => () => {});
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await expect(deadline.during(work)).rejects.toThrow(
        end === 'time' ? 'The time limit was reached.' : 'The client left',
      );
      expect(work).not.toHaveBeenCalled();
    }
  });

  test('is stopped when the client leaves', async () => {
    const { deadline, exchange } = begin();
    const stop = vi.fn<() => void>();
    const step = reasonOf(deadline.during(() => stop));
    exchange.end();
    expect(await step).toMatchObject({ code: 'client_closed_request' });
    expect(stop).toHaveBeenCalledTimes(1);
    // The first reason counts.
    vi.advanceTimersByTime(1_000);
    await expect(deadline.during(() => stop)).rejects.toMatchObject({ code: 'client_closed_request' });
  });
});

test('a deadline that was ended lets go of its timer and of the call', async () => {
  const { deadline, exchange } = begin();
  deadline.end();
  expect(vi.getTimerCount()).toBe(0);
  exchange.end();
  vi.advanceTimersByTime(1_000);
  expect(await deadline.during((resolve) => (resolve('runs'), () => {}))).toBe('runs');
});

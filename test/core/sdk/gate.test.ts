import { describe, expect, test, vi } from 'vitest';
import { Gate } from '../../../core/sdk/gate.ts';

const valve = () => ({ pause: vi.fn<() => void>(), resume: vi.fn<() => void>() });

describe('a gate', () => {
  test('is open at first: nobody waits', () => {
    expect(new Gate().closed).toBe(false);
    expect(new Gate().opened()).toBeUndefined();
  });

  test('closed by two opens when both have let go', async () => {
    const gate = new Gate();
    const reader = valve();
    gate.attach(reader);
    gate.close();
    gate.close();
    let passed = false;
    const waiting = gate.opened()?.then(() => (passed = true));
    gate.open();
    await Promise.resolve();
    expect(passed).toBe(false);
    expect(gate.closed).toBe(true);
    gate.open();
    await waiting;
    expect(passed).toBe(true);
    expect(reader.pause).toHaveBeenCalledTimes(1);
    expect(reader.resume).toHaveBeenCalledTimes(1);
  });

  test('takes an open too many without harm', () => {
    const gate = new Gate();
    gate.open();
    gate.close();
    expect(gate.closed).toBe(true);
  });

  test('pauses a reader that is attached while it is shut, and forgets one that is detached', () => {
    const gate = new Gate();
    const [first, second] = [valve(), valve()];
    gate.attach(first);
    gate.close();
    gate.detach(first);
    gate.attach(second);
    expect(second.pause).toHaveBeenCalledTimes(1);
    gate.open();
    expect(first.resume).not.toHaveBeenCalled();
    expect(second.resume).toHaveBeenCalledTimes(1);
    gate.detach(second);
    gate.close();
    expect(second.pause).toHaveBeenCalledTimes(1);
  });

  test('holds several readers at once: the one that ends first does not take the others along', () => {
    const gate = new Gate();
    const readers = [valve(), valve(), valve()] as const;
    for (const reader of readers) gate.attach(reader);
    gate.detach(readers[0]);
    gate.close();
    gate.open();
    expect(readers.map(({ pause, resume }) => [pause.mock.calls.length, resume.mock.calls.length])).toEqual([
      [0, 0],
      [1, 1],
      [1, 1],
    ]);
  });

  test('lets everybody go who waits', async () => {
    const gate = new Gate();
    gate.close();
    const waiting = Promise.all([gate.opened(), gate.opened(), gate.opened()]);
    gate.open();
    await expect(waiting).resolves.toHaveLength(3);
  });
});

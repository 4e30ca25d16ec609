import { describe, expect, test } from 'vitest';
import { BudgetShare, HeldMemory, type ByteBudget } from '../../../core/front/byte-budget.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';

/** A budget whose bytes a test can read. */
function budgetOf(most: number): ByteBudget & { held: number } {
  const budget = {
    most,
    held: 0,
    take(bytes: number) {
      if (budget.held + bytes > most) throw new GatewayError('server_is_overloaded', 'full');
      budget.held += bytes;
    },
    giveBack(bytes: number) {
      budget.held -= bytes;
    },
  };
  return budget;
}

const full = expect.objectContaining({ code: 'server_is_overloaded' }) as Error;

describe('the body of a call', () => {
  test('takes what it grows to, never shrinks, and gives all back when its last holder has let go', () => {
    const budget = budgetOf(100);
    const share = new BudgetShare(budget);
    share.grow(40);
    share.grow(10);
    expect(budget.held).toBe(40);
    share.grow(60);
    expect(budget.held).toBe(60);
    expect(share.share()).toBe(share);
    share.letGo();
    expect(budget.held).toBe(60);
    share.letGo();
    expect(budget.held).toBe(0);
  });

  test('that is larger than the whole budget takes the whole of it, and is refused where another has some', () => {
    const budget = budgetOf(100);
    const share = new BudgetShare(budget);
    share.grow(1_000);
    expect(budget.held).toBe(100);
    share.grow(2_000);
    expect(budget.held).toBe(100);
    expect(() => new BudgetShare(budget).grow(1)).toThrow(full);
    share.letGo();
    expect(budget.held).toBe(0);
  });

  test('that nobody needs any more takes nothing', () => {
    const budget = budgetOf(100);
    const share = new BudgetShare(budget);
    share.letGo();
    expect(() => share.grow(1)).toThrow(expect.objectContaining({ code: 'client_closed_request' }) as Error);
    expect(budget.held).toBe(0);
  });
});

describe('the memory of a form or a file', () => {
  test('is what was taken less what was given back, and all of it comes back once', () => {
    const budget = budgetOf(100);
    const memory = new HeldMemory(budget);
    memory.take(30);
    memory.take(20);
    memory.giveBack(10);
    expect(budget.held).toBe(40);
    memory.close();
    memory.close();
    memory.take(5);
    memory.giveBack(5);
    expect(budget.held).toBe(0);
  });

  test('grows to what it must be, as far as there is a budget, and never shrinks by that', () => {
    const budget = budgetOf(100);
    const memory = new HeldMemory(budget);
    memory.grow(30);
    memory.grow(30);
    memory.grow(10);
    expect(budget.held).toBe(30);
    memory.grow(70);
    expect(budget.held).toBe(70);
    memory.grow(1_000);
    expect(budget.held).toBe(100);
    expect(() => new HeldMemory(budget).grow(1)).toThrow(full);
    memory.close();
    expect(budget.held).toBe(0);
  });

  test('is made exactly what it must be, in both directions', () => {
    const budget = budgetOf(100);
    const memory = new HeldMemory(budget);
    memory.hold(40);
    expect(budget.held).toBe(40);
    memory.hold(90);
    expect(budget.held).toBe(90);
    memory.hold(15);
    expect(budget.held).toBe(15);
    memory.hold(15);
    expect(budget.held).toBe(15);
    expect(() => memory.hold(101)).toThrow(full);
    expect(budget.held).toBe(15);
  });

  test('is counted without a budget too, which refuses nothing', () => {
    const memory = new HeldMemory(undefined);
    expect(() => {
      memory.grow(1e9);
      memory.hold(2e9);
      memory.take(1e9);
      memory.giveBack(3e9);
      memory.close();
    }).not.toThrow();
  });
});

import { Subject, of } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { DetachedCalls, followDetached } from '../../../core/call/detached.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { all, testCall } from '../../support/call.ts';

const head: GatewayEvent = { type: 'head', id: '1', model: 'x' };

/** A call that two plugins account for, the first of them the outer one; and what they were told. */
function followed() {
  const { call, exchange } = testCall({ model: 'x' });
  const told: string[] = [];
  for (const name of ['outer', 'inner']) {
    followDetached(call, (own) => {
      told.push(`${name} follows ${own.id}`);
      return {
        event: ({ type }) => told.push(`${name} ${type}`),
        end: (how) => told.push(`${name} ${how}`),
      };
    });
  }
  return { call, exchange, told };
}

describe('a call that goes on without its client', () => {
  test('is followed by all who asked for that, the inner one first, before the client gets its answer', async () => {
    const { call, exchange, told } = followed();
    const own = new DetachedCalls().detach(call, true);
    expect(told).toEqual(['outer follows req_test', 'inner follows req_test']);
    exchange.end();
    const events = await all(await own.send(async () => of(head)));
    expect(events).toEqual([head]);
    own.end();
    expect(told.slice(2)).toEqual(['inner head', 'outer head', 'inner complete', 'outer complete']);
  });

  test('tells of a failure before its reply and in it', async () => {
    const { call, told } = followed();
    await expect(
      new DetachedCalls().detach(call).send(() => Promise.reject(new Error('no'))),
    ).rejects.toThrow('no');
    expect(told.slice(2)).toEqual(['inner error', 'outer error']);
    const other = followed();
    const source = new Subject<GatewayEvent>();
    const reply = all(await new DetachedCalls().detach(other.call).send(async () => source));
    source.error(new Error('broken'));
    await expect(reply).rejects.toThrow('broken');
    expect(other.told.slice(2)).toEqual(['inner error', 'outer error']);
  });

  test('tells of its end once when it is ended from outside, also before it was sent', async () => {
    const { call, told } = followed();
    const own = new DetachedCalls().detach(call);
    own.end();
    own.end();
    expect(told.slice(2)).toEqual(['inner left', 'outer left']);
  });

  test('is watched by plugins that look only at its end, and reports what they throw to them', async () => {
    const { call } = testCall({ model: 'x' });
    const told: unknown[] = [];
    const mistake = new Error('mistake');
    followDetached(call, () => ({ end: (how) => told.push(how), failed: (error) => told.push(error) }));
    followDetached(call, () => ({
      event: () => {
        throw mistake;
      },
      failed: (error) => told.push(error),
    }));
    const own = new DetachedCalls().detach(call);
    expect(await all(await own.send(async () => of(head)))).toEqual([head]);
    own.end();
    expect(told).toEqual([mistake, 'complete']);
  });

  test('needs nobody to follow it', async () => {
    const { call } = testCall({ model: 'x' });
    const own = new DetachedCalls().detach(call);
    const reply = of(head);
    expect(await own.send(async () => reply)).toBe(reply);
    own.end();
  });
});

test('a gateway does not wait for calls of another one in its process', () => {
  const one = new DetachedCalls();
  const other = new DetachedCalls();
  const { end } = one.detach(testCall({ model: 'x' }).call);
  expect([one.running, other.running]).toEqual([1, 0]);
  end();
  expect(one.running).toBe(0);
});

import { EMPTY, Subject, of } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { DetachedCalls } from '../../../core/call/detached.ts';
import { onDetached } from '../../../core/sdk/on-detached.ts';
import { EndedCalls } from '../../../core/money/account/ended-calls.ts';
import { followed } from '../../../core/money/account/followed.ts';
import { accountOf } from '../../../core/money/account/index.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { CallOutcome } from '../../../core/sdk/author/outcome.ts';
import {
  addReplyHeaders,
  addReplyTrailers,
  computedHeaders,
  replyHeaders,
  replyTrailers,
} from '../../../core/sdk/reply-headers.ts';
import { all, testCall } from '../../support/call.ts';

const head: GatewayEvent = { type: 'head', id: '1', model: 'x' };

/** A call whose client has been answered by the time that \`answered\` runs, and the outcomes that were told of it. */
function accounted() {
  const { call, exchange } = testCall({ model: 'x' });
  const ended = new EndedCalls();
  const outcomes: CallOutcome[] = [];
  const account = accountOf(call);
  account.open({
    bookkeeper: { enqueue: () => {}, release: () => {} },
    prices: { cost: () => undefined },
    ended,
    report: (error) => {
      throw error;
    },
  });
  const clients = account.record;
  call.onOutcome((outcome) => outcomes.push(outcome));
  const answered = async (): Promise<void> => {
    await all(await followed(clients, call, async () => of(head)));
    exchange.end();
  };
  return {
    call,
    answered,
    leave: () => exchange.end(),
    outcomes: () => {
      ended.flush();
      return outcomes.map(({ ended: how, status }) => [how, status]);
    },
  };
}

describe('a call that goes on without its client', () => {
  test('has its outcome when its own work is done, and not before', async () => {
    const { call, answered, outcomes } = accounted();
    const own = new DetachedCalls().detach(call, true);
    await answered();
    expect(outcomes()).toEqual([]);
    const events = await all(await own.send(async () => of(head)));
    expect(events).toEqual([head]);
    expect(outcomes()).toEqual([]);
    own.end();
    own.end();
    expect(outcomes()).toEqual([['complete', 200]]);
  });

  test('has an outcome that tells of a failure before its response and in it', async () => {
    const before = accounted();
    const unsent = new DetachedCalls().detach(before.call);
    await expect(unsent.send(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    unsent.end();
    expect(before.outcomes()).toEqual([['error', 500]]);

    const during = accounted();
    const source = new Subject<GatewayEvent>();
    const own = new DetachedCalls().detach(during.call);
    const reply = all(await own.send(async () => source));
    source.error(new Error('broken'));
    await expect(reply).rejects.toThrow('broken');
    own.end();
    expect(during.outcomes()).toEqual([['error', 500]]);
  });

  test('that was never sent leaves the outcome to a client that still waits', async () => {
    const { call, answered, outcomes } = accounted();
    new DetachedCalls().detach(call).end();
    expect(outcomes()).toEqual([]);
    await answered();
    expect(outcomes()).toEqual([['complete', 200]]);
  });

  test('that was never sent was left where its client is gone', () => {
    const { call, leave, outcomes } = accounted();
    const own = new DetachedCalls().detach(call);
    leave();
    expect(outcomes()).toEqual([]);
    own.end();
    expect(outcomes()).toEqual([['left', 499]]);
  });

  test('is told to all who asked for that', () => {
    const { call } = testCall({ model: 'x' });
    const calls: string[] = [];
    for (const name of ['one', 'other']) onDetached(call, ({ id }) => calls.push(`${name} ${id}`));
    const own = new DetachedCalls().detach(call);
    expect(calls).toEqual(['one req_test', 'other req_test']);
    own.end();
  });

  test('gives its client the headers and trailers that are added behind it, once, also when it fails', async () => {
    for (const fails of [false, true]) {
      const { call } = testCall({ model: 'x' });
      const trailers = (name: string) => ({ names: [name], values: () => ({ [name]: '1' }) });
      addReplyHeaders(call, () => ({ 'x-before': '1' }));
      addReplyTrailers(call, trailers('x-before-end'));
      const own = new DetachedCalls().detach(call);
      addReplyHeaders(call, () => ({ 'x-meanwhile': '1' }));
      const sent = own.send(async () => {
        addReplyHeaders(own.call, { 'x-plain': '1' });
        addReplyHeaders(own.call, () => ({ 'x-computed': '1' }));
        addReplyTrailers(own.call, trailers('x-end'));
        if (fails) throw new Error('no');
        return EMPTY;
      });
      await sent.catch(() => {});
      own.end();
      expect(call.get(replyHeaders)).toEqual({ 'x-plain': '1' });
      expect(call.get(computedHeaders)?.map((compute) => Object.keys(compute())[0])).toEqual([
        'x-before',
        'x-meanwhile',
        'x-computed',
      ]);
      expect(call.get(replyTrailers)?.flatMap(({ names }) => names)).toEqual(['x-before-end', 'x-end']);
    }
  });

  test('needs no account that is open', async () => {
    const { call } = testCall({ model: 'x' });
    const own = new DetachedCalls().detach(call);
    expect(await all(await own.send(async () => EMPTY))).toEqual([]);
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

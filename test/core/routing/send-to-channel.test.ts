import { of } from 'rxjs';
import { describe, expect, test } from 'vitest';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { accountOf } from '../../../core/money/account/index.ts';
import { sendToChannel } from '../../../core/routing/send-to-channel.ts';
import type { Call, Channel, Target } from '../../../core/sdk/call.ts';
import type { Upstream, UpstreamRequest } from '../../../core/sdk/channel.ts';
import type { Operation } from '../../../core/sdk/format.ts';
import { all, testCall } from '../../support/call.ts';
import { fakeChannel } from './_targets.ts';

const upstream = { operation: 'chat', path: '/x', body: '{}' } as unknown as UpstreamRequest;
const event: GatewayEvent = { type: 'head', id: '1', model: 'm' };

/** A call on its way to a channel that does what the test says. */
function onItsWay(parts: Partial<Channel>, operation: Operation = 'chat'): { call: Call; target: Target } {
  const channel = { ...fakeChannel({ id: 'x' }), ...parts };
  const target: Target = { channel, key: { id: 'a', index: 0 }, model: 'm', traits: {} };
  return { call: testCall({ model: 'm', operation }).call.with({ target, upstream }), target };
}
const opens = (): Promise<Upstream> =>
  Promise.resolve({
    status: 201,
    headers: { 'x-a': 'b' },
    bytes: of(Buffer.from('one'), Buffer.from('two')),
  });

describe('a request for a provider', () => {
  test('is answered by its head, and its bytes as they come', async () => {
    const { call } = onItsWay({ open: opens });
    expect(await all(await sendToChannel(call))).toEqual([
      { type: 'answer', status: 201, headers: { 'x-a': 'b' } },
      { type: 'bytes', bytes: Buffer.from('one') },
      { type: 'bytes', bytes: Buffer.from('two') },
    ]);
  });

  test('is answered in events where the channel speaks a protocol of its own, and is not opened', async () => {
    const given: unknown[] = [];
    const { call } = onItsWay({
      open: () => Promise.reject(new Error('It was opened.')),
      events: (...args) => {
        given.push(...args);
        return of(event);
      },
    });
    expect(await all(await sendToChannel(call))).toEqual([event]);
    expect(given).toEqual([call, upstream]);
  });

  test('that a channel of its own protocol refuses at once is a failure as any other', async () => {
    const { call } = onItsWay({
      events: () => {
        throw new Error('no such model');
      },
    });
    await expect(sendToChannel(call)).rejects.toThrow('no such model');
  });

  test('is a defect where no plugin has made one, or where no target was chosen', () => {
    const { call, target } = onItsWay({ open: opens });
    const plain = testCall({ model: 'm' }).call;
    for (const one of [plain, plain.with({ target }), plain.with({ upstream })])
      expect(() => sendToChannel(one)).toThrow('No plugin of the translate stage created a request');
    expect(() => sendToChannel(call)).not.toThrow();
  });
});

describe('a session', () => {
  test('is connected, and is no request', async () => {
    const given: unknown[] = [];
    const { call } = onItsWay(
      {
        open: () => Promise.reject(new Error('It was opened.')),
        connect: (...args) => {
          given.push(...args);
          return Promise.resolve(of(event));
        },
      },
      'realtime',
    );
    expect(await all(await sendToChannel(call))).toEqual([event]);
    expect(given).toEqual([call, upstream]);
  });

  test('is a defect where the channel has none', () => {
    const { call } = onItsWay({ open: opens }, 'realtime');
    expect(() => sendToChannel(call)).toThrow('The channel x does not support WebSockets.');
  });
});

describe('what is noted of a request', () => {
  test('is when the first was sent, whatever follows, and where the last went', async () => {
    const { call, target } = onItsWay({ open: opens });
    const { attempts } = accountOf(call);
    expect([attempts.firstAttemptAt, attempts.target]).toEqual([undefined, undefined]);
    await sendToChannel(call);
    const first = attempts.firstAttemptAt;
    expect(first).toBeTypeOf('number');
    expect(attempts.target).toBe(target);
    const later = { ...target, model: 'later' };
    await sendToChannel(call.with({ target: later }));
    expect([attempts.firstAttemptAt, attempts.target]).toEqual([first, later]);
  });

  test('is which targets were asked, where several may be', async () => {
    const { call, target } = onItsWay({ open: opens });
    await sendToChannel(call);
    const watched = accountOf(call).attempts.watch();
    expect([...watched.keys()]).toEqual([]);
    await sendToChannel(call);
    expect([...watched.keys()]).toEqual([target]);
  });
});

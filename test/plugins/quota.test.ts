import { concat, EMPTY, NEVER, of, throwError, type Observable } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { caller } from '../../core/sdk/caller.ts';
import type { Call } from '../../core/sdk/call.ts';
import { charge, reachedProviders, sending } from '../../core/money/charge.ts';
import type { Handler } from '../../core/sdk/define.ts';
import type { InternalTools } from '../../core/config/internal-tools.ts';
import { GatewayError } from '../../core/sdk/errors.ts';
import type { Block } from '../../core/model/chat.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import type { ModelTraits } from '../../core/model/traits.ts';
import type { Amounts } from '../../core/model/usage-record.ts';
import type { Usage } from '../../core/model/usage.ts';
import { createPrices } from '../../core/money/prices/index.ts';
import type { ApiKey, Budget } from '../../core/sdk/api-key.ts';
import type { Reservation } from '../../core/money/ledger/index.ts';
import quota from '../../plugins/quota/index.ts';
import { all, answering, handlerOf, testCall, testTools, type CallOptions } from './_call.ts';

const place = { block: 0, choice: 0 };
const usage: Usage = { input: 100, output: 50, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
const told: GatewayEvent = { type: 'usage', usage };
const sent: GatewayEvent = { type: 'request', model: 'x', stream: true };
const attempt: GatewayEvent = { type: 'attempt', channel: 'c', model: 'm' };
const words = (text: string): GatewayEvent => ({ type: 'text-delta', ...place, text });
const dollars: Budget = { unit: 'micro-dollar', period: 'day', amount: 1_000_000 };
const tokens: Budget = { unit: 'token', period: 'day', amount: 1_000_000 };

/** The plugin with everything that it asks in the hands of the test. */
async function started(given: { readonly traits?: readonly ModelTraits[]; readonly full?: boolean } = {}) {
  const asked: Amounts[] = [];
  const released: string[] = [];
  const watched: string[] = [];
  const lesser: (Amounts | undefined)[] = [];
  const state = {
    reserve: (id: string, most: Amounts): Promise<Reservation> => Promise.resolve(claim(id, most)),
    /** There is room for the lesser claim alone. */
    near: false,
  };
  const { tools } = testTools({
    settings: { routing: { hedge: false } } as unknown as InternalTools['settings'],
    prices: createPrices({ x: { input: 10, output: 20 } }),
    catalog: {
      targets: () => (given.traits ?? [{}]).map((traits) => ({ traits, channel: { speaks: {} } })),
    } as unknown as InternalTools['catalog'],
    bookkeeper: {
      reserve: (_key, _budgets, most, _lease, less) => {
        asked.push(most);
        lesser.push(less);
        return state.reserve(`rsv_${asked.length}`, state.near && less !== undefined ? less : most);
      },
      full: given.full === true,
      waiting: 0,
      book: () => {},
      release: (id) => void released.push(id),
      watch: ({ id }) => {
        watched.push(id);
        return () => void watched.splice(watched.indexOf(id), 1);
      },
      close: () => Promise.resolve(),
    },
  });
  const admit = await handlerOf(quota, tools, { assumedOutput: 1_000 });
  // As the gateway does it: what is sent to a channel goes through the step that the plugin has left.
  const handler: Handler = (call, next) =>
    admit(call, async (admitted) => admitted.get(sending)?.(admitted, next) ?? next(admitted));
  return { handler, asked, lesser, released, watched, state };
}

function claim(id: string, most: Amounts): Reservation {
  return { id, keyId: 'key_1', most, lease: 60_000 };
}

function callOf(budgets: readonly Budget[] | undefined, options: CallOptions = {}) {
  const made = testCall({ model: 'x', ...options });
  made.call.set(caller, {
    id: 'key_1',
    name: 'test',
    ...(budgets === undefined ? {} : { budgets }),
  } as ApiKey);
  return made;
}

/** What a call is charged whose reply is this. */
async function chargeFor(reply: Observable<GatewayEvent>, budgets?: readonly Budget[]) {
  const { handler, released, watched } = await started();
  const { call } = callOf(budgets);
  const events = await handler(call, async () => reply);
  await all(events).catch(() => {});
  return { charged: call.get(charge), released, watched };
}

describe('what a call is charged', () => {
  test('is what the provider told last, at the price of the model that was sent', async () => {
    const { charged, watched } = await chargeFor(of(sent, attempt, words('Hello'), told), [dollars]);
    expect(charged).toMatchObject({
      amounts: { microDollars: 2_000, tokens: 150 },
      usage,
      reservation: 'rsv_1',
      price: { input: 10, output: 20 },
    });
    expect(watched).toEqual([]);
  });

  test('is estimated from what was seen when the provider tells nothing', async () => {
    const { charged } = await chargeFor(of(attempt, words('x'.repeat(400)), words('y'.repeat(40))));
    expect(charged).toMatchObject({ usage: { output: 110, estimated: true } });
    expect(charged?.amounts.microDollars).toBeGreaterThanOrEqual(110 * 20);
  });

  test('adds what came after the last word about usage when the stream breaks', async () => {
    const { charged } = await chargeFor(
      concat(
        of(attempt, words('x'.repeat(400)), told, words('x'.repeat(40))),
        throwError(() => new GatewayError('upstream_cut', 'cut')),
      ),
    );
    expect(charged?.usage).toEqual({ ...usage, output: 60, estimated: true });
  });

  test('is nothing when the provider failed before it said anything, though it told what it had read', async () => {
    const { charged } = await chargeFor(
      concat(
        of(attempt, told),
        throwError(() => new GatewayError('upstream_cut', 'cut')),
      ),
      [dollars],
    );
    expect(charged).toEqual({ amounts: { microDollars: 0, tokens: 0 }, reservation: 'rsv_1' });
  });

  test('is a sum that can be kept, whatever numbers the provider tells', async () => {
    const nonsense: Usage = {
      input: 1.5,
      output: -7,
      cacheRead: Number.NaN,
      cacheWrite: 0,
      reasoning: 1e300,
    };
    const { charged } = await chargeFor(of<GatewayEvent[]>(attempt, { type: 'usage', usage: nonsense }));
    expect(charged?.usage).toMatchObject({ input: 2, output: 0, cacheRead: 0, reasoning: 1e9 });
    expect(charged?.amounts.tokens).toBe(2);
    expect(charged?.amounts.microDollars).toBeGreaterThanOrEqual(20);
  });

  test('is nothing when no provider was asked', async () => {
    const { charged } = await chargeFor(of(words('From a plugin.'), told));
    expect(charged).toEqual({ amounts: { microDollars: 0, tokens: 0 } });
  });

  test('is known when the client has left, before the call is over for others', async () => {
    const { handler } = await started();
    const { call, exchange } = callOf([dollars]);
    const reply = await handler(call, async () => concat(of(attempt, words('x'.repeat(400))), NEVER));
    let seen: unknown;
    call.onEnd(() => (seen = call.get(charge)));
    reply.subscribe().unsubscribe();
    exchange.end();
    expect(seen).toMatchObject({ usage: { output: 100, estimated: true }, reservation: 'rsv_1' });
  });

  test.each([
    [0, undefined],
    [1, 25],
    [2, 50],
  ])(
    'when the client left before there was an answer is the input, once for each of %i providers that had it',
    async (providers, input) => {
      const { handler, watched } = await started();
      const { call, exchange } = callOf([dollars]);
      const asked = call.with({
        messages: [{ role: 'user', content: [{ type: 'text', text: 'x'.repeat(84) }] }],
      });
      void handler(asked, () => new Promise(() => {}));
      await expect.poll(() => watched).toEqual(['rsv_1']);
      call.set(reachedProviders, providers);
      exchange.end();
      expect(call.get(charge)).toMatchObject({
        amounts: { microDollars: 10 * (input ?? 0), tokens: input ?? 0 },
        reservation: 'rsv_1',
      });
      expect(call.get(charge)?.usage).toEqual(
        input === undefined ? undefined : expect.objectContaining({ input, output: 0, estimated: true }),
      );
      expect(watched).toEqual([]);
    },
  );

  test('is the input when the client left an answer that had not said anything', async () => {
    const { handler } = await started();
    const { call, exchange } = callOf([dollars]);
    const asked = call.with({
      messages: [{ role: 'user', content: [{ type: 'text', text: 'x'.repeat(84) }] }],
    });
    const reply = await handler(asked, async () => concat(of(attempt), NEVER));
    reply.subscribe().unsubscribe();
    exchange.end();
    expect(call.get(charge)).toMatchObject({ usage: { input: 25, output: 0 }, amounts: { tokens: 25 } });
  });

  test('is never estimated higher than what the call was allowed', async () => {
    const { handler } = await started();
    const { call } = callOf(undefined, { settings: { maxOutput: 30, choices: 2 } });
    await all(await handler(call, answering(attempt, words('x'.repeat(4_000)))));
    expect(call.get(charge)?.amounts.tokens).toBe(60);
  });

  test('is added up when a plugin sends a call several times', async () => {
    const { handler, released } = await started();
    const { call } = callOf([dollars]);
    const next = answering(attempt, words('Hello'), told);
    await all(await handler(call, next));
    await all(await handler(call, next));
    expect(call.get(charge)).toMatchObject({
      amounts: { microDollars: 4_000, tokens: 300 },
      usage: { input: 200, output: 100 },
      reservation: 'rsv_2',
    });
    expect(released).toEqual(['rsv_1']);
  });

  test('counts tokens of a model without a price', async () => {
    const { handler } = await started();
    const { call } = callOf(undefined, { model: 'unpriced' });
    await all(await handler(call, answering(attempt, told)));
    expect(call.get(charge)).toEqual({ amounts: { microDollars: 0, tokens: 150 }, usage });
  });
});

describe('what is claimed before a call', () => {
  const mostOf = async (settings: CallOptions['settings'], traits: readonly ModelTraits[] = [{}]) => {
    const { handler, asked } = await started({ traits });
    const { call } = callOf([dollars], settings === undefined ? {} : { settings });
    await all(await handler(call, answering()));
    return asked[0]?.tokens;
  };

  test.each<[string, CallOptions['settings'], readonly ModelTraits[], number]>([
    ['the call’s own limit', { maxOutput: 70 }, [{}], 70],
    ['the model’s limit, where the call has none', {}, [{ outputLimit: 500 }], 500],
    [
      'what it asks for, whatever the model is said to give',
      { maxOutput: 9_000 },
      [{ outputLimit: 500 }],
      9_000,
    ],
    ['the longest of several targets', {}, [{ outputLimit: 500 }, { outputLimit: 900 }], 900],
    ['the longest answer of any model, where nobody says', {}, [{ outputLimit: 500 }, {}], 131_072],
    ['every one of several answers', { maxOutput: 70, choices: 3 }, [{}], 210],
    ['a sum that can be counted, whatever the client asks for', { maxOutput: 1e300 }, [{}], 1e9],
  ])('covers %s', async (_name, settings, traits, expected) => {
    expect(await mostOf(settings, traits)).toBe(expected);
  });

  const inputOf = async (content: readonly Block[], traits: readonly ModelTraits[] = [{}]) => {
    const { handler, asked } = await started({ traits });
    const { call } = callOf([tokens], { settings: { maxOutput: 1 } });
    await all(await handler(call.with({ messages: [{ role: 'user', content }] }), answering()));
    return (asked[0]?.tokens ?? 0) - 1;
  };
  const data = (mimeType: string, length: number) =>
    ({ kind: 'data', data: 'A'.repeat(length), mimeType }) as const;

  test.each<[string, Block, number]>([
    ['a token for each byte of a text', { type: 'text', text: 'ü'.repeat(200) }, 400],
    ['pictures by the piece', { type: 'image', source: data('image/png', 1_000_000) }, 16_384],
    ['sound by its size', { type: 'audio', source: data('audio/mp3', 4_000) }, 4_000],
    ['texts that are attached', { type: 'file', source: data('text/plain', 4_000) }, 4_000],
    [
      'for a document all that the model can read',
      { type: 'file', source: data('application/pdf', 64_000) },
      30_000,
    ],
    [
      'the same for what stands elsewhere',
      { type: 'video', source: { kind: 'url', url: 'https://example.com/a.mp4' } },
      30_000,
    ],
  ])('covers %s', async (_what, block, expected) => {
    expect(await inputOf([block], [{ inputLimit: 30_000 }])).toBe(8 + expected);
  });

  test('covers what a picture comes to at the model that takes it for the most', async () => {
    const picture: Block = { type: 'image', source: data('image/png', 4) };
    expect(await inputOf([picture], [{}, { imageTokens: 48_169 }])).toBe(8 + 48_169);
    expect(await inputOf([picture], [{ imageTokens: 1_600 }])).toBe(8 + 1_600);
  });

  test('covers a context of a million tokens where nobody says how long it may be', async () => {
    expect(await inputOf([{ type: 'file', source: data('application/pdf', 64_000) }])).toBe(8 + 1_048_576);
  });

  describe('near the end of a budget', () => {
    const heldTo = async (
      settings: CallOptions['settings'],
      traits: readonly ModelTraits[],
      options: CallOptions = {},
    ) => {
      const { handler, lesser, state } = await started({ traits });
      state.near = true;
      const { call } = callOf([dollars], { ...options, ...(settings === undefined ? {} : { settings }) });
      const next = answering(attempt, words('x'.repeat(80_000)));
      await all(await handler(call, next));
      const limit = next.calls[0]?.edits.settings?.maxOutput;
      const charged = call.get(charge)?.amounts.tokens;
      return { less: lesser[0]?.tokens, limit, charged };
    };

    test.each<[string, CallOptions['settings'], readonly ModelTraits[], number, number]>([
      ['a call that nobody limits is sent with the limit that is assumed', {}, [{}], 1_000, 1_000],
      ['each of its answers has that', { choices: 3 }, [{}], 1_000, 3_000],
      [
        'a call is asked for no more than the model gives',
        { maxOutput: 9_000 },
        [{ outputLimit: 500 }],
        500,
        500,
      ],
    ])('%s, and charged for no more', async (_what, settings, traits, limit, less) => {
      expect(await heldTo(settings, traits)).toEqual({ limit, less, charged: less });
    });

    test('a completion that nobody limits is sent with the limit of its format', async () => {
      expect(await heldTo({}, [{}], { format: 'text-completions' })).toMatchObject({ limit: 16, less: 16 });
    });

    test.each<[string, CallOptions['settings'], readonly ModelTraits[]]>([
      ['its own limit', { maxOutput: 70 }, [{}]],
      ['its model’s', {}, [{ outputLimit: 500 }]],
    ])('a call with %s stays as it is', async (_what, settings, traits) => {
      expect(await heldTo(settings, traits)).toMatchObject({ less: undefined, limit: undefined });
    });
  });

  test('is given back when the provider fails, and claimed anew by the next try', async () => {
    const { handler, asked, released, watched } = await started();
    const { call } = callOf([dollars]);
    const failing = () => Promise.reject(new GatewayError('upstream_error', 'no'));
    await expect(handler(call, failing)).rejects.toThrow('no');
    expect([released, watched, call.get(charge)]).toEqual([['rsv_1'], [], undefined]);
    await all(await handler(call, answering(attempt, told)));
    expect(asked).toHaveLength(2);
    expect(call.get(charge)).toMatchObject({ reservation: 'rsv_2', amounts: { tokens: 150 } });
  });

  test('is given back when the client left while it was made, and no provider is asked', async () => {
    const { handler, released, state } = await started();
    const { promise, resolve } = Promise.withResolvers<Reservation>();
    state.reserve = () => promise;
    const { call, exchange } = callOf([dollars]);
    const next = answering();
    const running = handler(call, next);
    exchange.end();
    resolve(claim('rsv_late', { microDollars: 1, tokens: 1 }));
    await expect(running).rejects.toMatchObject({ code: 'client_closed_request' });
    expect([released, next.calls]).toEqual([['rsv_late'], []]);
  });
});

describe('a call is refused', () => {
  const refused = async (handler: (call: Call) => Promise<unknown>, call: Call) =>
    handler(call).then(
      () => undefined,
      (error: unknown) => error,
    );

  test('with what the ledger says when a budget has no room', async () => {
    const { handler, state } = await started();
    const spent = new GatewayError('insufficient_quota', 'The daily budget is used up.');
    state.reserve = () => Promise.reject(spent);
    expect(await refused((call) => handler(call, answering()), callOf([dollars]).call)).toBe(spent);
  });

  test('with 503 when the budget cannot be checked; the reason is for the log', async () => {
    const { handler, state } = await started();
    state.reserve = () => Promise.reject(new Error('no such host db.internal'));
    expect(await refused((call) => handler(call, answering()), callOf([dollars]).call)).toMatchObject({
      status: 503,
      code: 'server_is_overloaded',
      message: 'The budget of this API key cannot be checked now.',
      cause: { message: 'no such host db.internal' },
    });
  });

  test('with 503 when too many settlements wait, also without a budget', async () => {
    const { handler } = await started({ full: true });
    expect(await refused((call) => handler(call, answering()), callOf(undefined).call)).toMatchObject({
      status: 503,
      code: 'server_is_overloaded',
    });
  });

  test('with 403 when its model has no price and a budget is in dollars', async () => {
    const { handler, asked } = await started();
    const { call } = callOf([tokens, dollars], { model: 'unpriced' });
    expect(await refused((one) => handler(one, answering()), call)).toMatchObject({
      status: 403,
      param: 'model',
      message: expect.stringContaining('The model unpriced has no price here') as string,
    });
    const counted = callOf([tokens], { model: 'unpriced', settings: { maxOutput: 5 } });
    await all(await handler(counted.call, answering()));
    expect(asked).toMatchObject([{ microDollars: 0, tokens: 5 }]);
  });
});

test.each(['count-tokens', 'list-models', 'state'] as const)(
  '%s costs nothing and asks nobody',
  async (operation) => {
    const { handler, asked } = await started({ full: true });
    const { call } = callOf([dollars], { operation });
    expect(await handler(call, async () => EMPTY)).toBe(EMPTY);
    expect([asked, call.get(charge)]).toEqual([[], undefined]);
  },
);

test('without a budget nobody waits for the ledger', async () => {
  const { handler, asked } = await started();
  for (const call of [callOf(undefined).call, callOf([]).call, testCall({ model: 'x' }).call]) {
    await all(await handler(call, answering(attempt, told)));
    expect(call.get(charge)).toMatchObject({ amounts: { microDollars: 2_000, tokens: 150 } });
  }
  expect(asked).toEqual([]);
});

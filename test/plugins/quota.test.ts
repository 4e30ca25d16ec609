import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  gathered,
  GatewayError,
  type Block,
  type ChatSettings,
  type GatewayEvent,
  type Message,
  type PluginEntry,
  type Usage,
  type Budget,
} from 'sluice';
import { definePlugin, type Call } from 'sluice/internal';
import { testPlugins, type CallOptions, type RunOptions, type Script } from 'sluice/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Amounts, UsageRecord } from '../../core/model/usage-record.ts';
import type { Bookkeeper, Reservation } from '../../core/money/ledger/index.ts';
import type { CallEdits } from '../../core/sdk/call.ts';
import { accountOf, type Account } from '../../core/money/account/index.ts';
import type { ModelTraits } from '../../core/model/traits.ts';
import quota from '../../plugins/quota/index.ts';
import { between } from './_between.ts';

const place = { block: 0, choice: 0 };
const usage: Usage = { input: 100, output: 50, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
const usageEvent: GatewayEvent = { type: 'usage', usage };
const sent: GatewayEvent = { type: 'request', model: 'x', stream: true };
const attempt: GatewayEvent = { type: 'attempt', channel: 'c', model: 'm' };
const words = (text: string): GatewayEvent => ({ type: 'text-delta', ...place, text });
const cut = { fail: new GatewayError('upstream_cut', 'cut') };
const goesOn = { wait: 2 ** 30 };
const dollars: Budget = { unit: 'micro-dollar', period: 'day', amount: 1_000_000 };
const tokens: Budget = { unit: 'token', period: 'day', amount: 1_000_000 };

interface Given {
  readonly traits?: readonly ModelTraits[];
  readonly full?: boolean;
  /** What stands behind the plugin. */
  readonly behind?: PluginEntry;
  /** What the request says, in place of what the body does: also what no body could. */
  readonly settings?: ChatSettings | undefined;
  readonly content?: readonly Block[];
}

/** The plugin with everything that it asks in the hands of the test. */
async function started({ traits = [{}], full = false, behind, settings, content }: Given = {}) {
  const reservedAmounts: Amounts[] = [];
  const released: string[] = [];
  const watched: string[] = [];
  const lesser: (Amounts | undefined)[] = [];
  const state = {
    reserve: (id: string, most: Amounts): Promise<Reservation> => Promise.resolve(claim(id, most)),
    /** There is room for the lesser claim alone. */
    near: false,
  };
  const bookkeeper: Bookkeeper = {
    reserve: (_key, _budgets, most, _lease, less) => {
      reservedAmounts.push(most);
      lesser.push(less);
      return state.reserve(`rsv_${reservedAmounts.length}`, state.near && less !== undefined ? less : most);
    },
    full,
    waiting: 0,
    enqueue: () => {},
    release: (id) => void released.push(id),
    watch: ({ id }) => {
      watched.push(id);
      return () => void watched.splice(watched.indexOf(id), 1);
    },
    close: () => Promise.resolve(),
  };
  const messages: Message[] = content === undefined ? [] : [{ role: 'user', content }];
  const saying = definePlugin({
    name: 'saying',
    stage: 'admit',
    before: ['quota'],
    setup: () => async (call: Call, next) => {
      const account = accountOf(call);
      accounts.push(account);
      account.recordWith(() => ({ id: call.id }) as UsageRecord);
      return next(call.operation === 'chat' ? call.with({ messages, ...(settings && { settings }) }) : call);
    },
  });
  const accounts: Account[] = [];
  const charged = () => accounts.at(-1)?.charged;
  const tested = await testPlugins(
    [saying(), quota({ assumedOutput: 1_000 }), ...(behind === undefined ? [] : [behind])],
    {
      channels: Object.fromEntries(traits.map((one, at) => [`c${at}`, { models: ['*'], traits: one }])),
      settings: {
        routing: { hedge: false },
        prices: { x: { input: 10, output: 20 }, dear: { input: 100, output: 200 } },
      },
      tools: { bookkeeper },
    },
  );
  onTestFinished(() => tested.close());
  const run = async (
    budgets: readonly Budget[] | undefined,
    reply: Script = [attempt, usageEvent],
    more: Omit<RunOptions, 'reply'> & CallOptions = {},
  ) => {
    const { leaveAfter, signal, ...call } = more;
    const outcome = await tested.run(
      { model: 'x', stream: true, key: { id: 'key_1', ...(budgets && { budgets }) }, ...call },
      { reply, ...(leaveAfter !== undefined && { leaveAfter }), ...(signal && { signal }) },
    );
    return { ...outcome, charged: charged() };
  };
  return { tested, run, charged, reservedAmounts, lesser, released, watched, state };
}

function claim(id: string, most: Amounts): Reservation {
  return { id, keyId: 'key_1', most, lease: 60_000 };
}

const eightyFour: Given = { content: [{ type: 'text', text: 'x'.repeat(84) }] };

/** What a call is charged whose reply is this. */
async function chargeFor(reply: Script, budgets?: readonly Budget[]) {
  const { run, released, watched } = await started();
  const { charged } = await run(budgets, reply);
  return { charged, released, watched };
}

describe('what a call is charged', () => {
  test('is what the provider told last, at the price of the model that was sent', async () => {
    const { charged, watched } = await chargeFor([sent, attempt, words('Hello'), usageEvent], [dollars]);
    expect(charged).toMatchObject({
      amounts: { microDollars: 2_000, tokens: 150 },
      usage,
      reservation: { id: 'rsv_1' },
      price: { input: 10, output: 20 },
    });
    expect(watched).toEqual([]);
  });

  test('is estimated from what was seen when the provider tells nothing', async () => {
    const { charged } = await chargeFor([attempt, words('x'.repeat(400)), words('y'.repeat(40))]);
    expect(charged).toMatchObject({ usage: { output: 110, estimated: true } });
    expect(charged?.amounts.microDollars).toBeGreaterThanOrEqual(110 * 20);
  });

  test('adds what came after the last word about usage when the stream breaks', async () => {
    const { charged } = await chargeFor([
      attempt,
      words('x'.repeat(400)),
      usageEvent,
      words('x'.repeat(40)),
      cut,
    ]);
    expect(charged?.usage).toEqual({ ...usage, output: 60, estimated: true });
  });

  test('is nothing when the provider failed before it said anything, though it told what it had read', async () => {
    const { charged } = await chargeFor([attempt, usageEvent, cut], [dollars]);
    expect(charged).toMatchObject({ amounts: { microDollars: 0, tokens: 0 }, reservation: { id: 'rsv_1' } });
  });

  test('is a sum that can be kept, whatever numbers the provider tells', async () => {
    const nonsense: Usage = {
      input: 1.5,
      output: -7,
      cacheRead: Number.NaN,
      cacheWrite: 0,
      reasoning: 1e300,
    };
    const { charged } = await chargeFor([attempt, { type: 'usage', usage: nonsense }]);
    expect(charged?.usage).toMatchObject({ input: 2, output: 0, cacheRead: 0, reasoning: 1e9 });
    expect(charged?.amounts.tokens).toBe(2);
    expect(charged?.amounts.microDollars).toBeGreaterThanOrEqual(20);
  });

  test('is such a sum where one of several further models is told nonsense about', async () => {
    const further = (input: number) => ({ model: 'further', usage: { ...usage, input } });
    const { charged } = await chargeFor([
      attempt,
      { type: 'usage', usage: { ...usage, otherModels: [further(7), further(-7), further(1.5)] } },
    ]);
    expect(charged?.usage?.otherModels?.map((one) => one.usage.input)).toEqual([7, 0, 2]);
  });

  test('is nothing when no provider was asked', async () => {
    const { charged } = await chargeFor([words('From a plugin.'), usageEvent]);
    expect(charged).toEqual({ amounts: { microDollars: 0, tokens: 0 } });
  });

  test('is known when the client has left, whoever asked first to be told', async () => {
    let seen: unknown;
    const later = definePlugin({
      name: 'later',
      stage: 'observe',
      setup: () => (call: Call, next) => {
        const account = accountOf(call);
        account.onClose(() => (seen = account.charged));
        return next(call);
      },
    });
    const { run } = await started({ behind: later() });
    await run([dollars], [attempt, words('x'.repeat(400)), goesOn], { leaveAfter: 2 });
    expect(seen).toMatchObject({ usage: { output: 100, estimated: true }, reservation: { id: 'rsv_1' } });
  });

  test.each([
    [0, undefined],
    [1, 25],
    [2, 50],
  ])(
    'when the client left before there was an answer is the input, once for each of %i providers that had it',
    async (providers, input) => {
      const { tested, charged, watched } = await started(eightyFour);
      const client = new AbortController();
      const key = { id: 'key_1', budgets: [dollars] };
      await tested.run(
        { model: 'x', key },
        {
          signal: client.signal,
          reply({ call }) {
            expect(watched).toEqual(['rsv_1']);
            for (let read = 0; read < providers; read += 1) accountOf(call).attempts.reached(1);
            client.abort();
            return new Promise(() => {});
          },
        },
      );
      expect(charged()).toMatchObject({
        amounts: { microDollars: 10 * (input ?? 0), tokens: input ?? 0 },
        reservation: { id: 'rsv_1' },
      });
      expect(charged()?.usage).toEqual(
        input === undefined ? undefined : expect.objectContaining({ input, output: 0, estimated: true }),
      );
      expect(watched).toEqual([]);
    },
  );

  test('when the client left before there was an answer is the input of an embedding, too', async () => {
    const { tested, charged } = await started();
    const client = new AbortController();
    await tested.run(
      {
        operation: 'embed',
        format: 'embeddings',
        body: { model: 'x', input: 'x'.repeat(84) },
        key: { id: 'key_1', budgets: [dollars] },
      },
      {
        signal: client.signal,
        reply({ call }) {
          accountOf(call).attempts.reached(1);
          client.abort();
          return new Promise(() => {});
        },
      },
    );
    expect(charged()?.usage?.input).toBeGreaterThan(20);
  });

  test('has the input once more for each provider that was asked at the same time and given up', async () => {
    const { run } = await started(eightyFour);
    const hedged: GatewayEvent = { type: 'attempt', channel: 'h', model: 'm', failure: 'hedged' };
    const failed: GatewayEvent = { type: 'attempt', channel: 'f', model: 'm', failure: 'upstream_error' };
    const inputAfter = async (...before: readonly GatewayEvent[]) =>
      (await run(undefined, [...before, attempt, usageEvent])).charged?.usage;
    expect(await inputAfter(failed)).toEqual(usage);
    expect(await inputAfter(hedged)).toEqual({
      ...usage,
      input: 125,
      estimated: true,
      units: { calls: 2 },
    });
    expect(await inputAfter(hedged, hedged)).toEqual({
      ...usage,
      input: 150,
      estimated: true,
      units: { calls: 3 },
    });
  });

  test('is estimated from the words of frames that pass, which the frames are mostly not', async () => {
    const { run } = await started();
    const piece = JSON.stringify({ choices: [{ index: 0, delta: { content: 'x'.repeat(40) } }] });
    const frames: GatewayEvent = {
      type: 'frames',
      format: 'chat-completions',
      bytes: Buffer.from(`data: ${piece}\n\n`.repeat(10)),
    };
    const { charged } = await run([dollars], [attempt, frames, goesOn], {
      leaveAfter: 2,
      format: 'chat-completions',
    });
    // 400 bytes of words are 100 tokens; the frames have about twice as many.
    expect(charged?.usage).toMatchObject({ output: 100, estimated: true });
  });

  test('is the input when the client left an answer that had not said anything', async () => {
    const { run } = await started(eightyFour);
    const { charged } = await run([dollars], [attempt, goesOn], { leaveAfter: 1 });
    expect(charged).toMatchObject({ usage: { input: 25, output: 0 }, amounts: { tokens: 25 } });
  });

  test('is never estimated higher than what the call was allowed', async () => {
    const { run } = await started({ settings: { maxOutput: 30, choices: 2 } });
    const { charged } = await run(undefined, [attempt, words('x'.repeat(4_000))]);
    expect(charged?.amounts.tokens).toBe(60);
  });

  test('is added up when a plugin sends a call several times', async () => {
    const twice = definePlugin({
      name: 'twice',
      stage: 'shape',
      setup: () => async (call: Call, next) => {
        const own = call.with({ body: call.body, decoded: true });
        await gathered(own, await next(own));
        return next(call);
      },
    });
    const { run, released } = await started({ behind: twice() });
    const { charged } = await run([dollars], [attempt, words('Hello'), usageEvent]);
    expect(charged).toMatchObject({
      amounts: { microDollars: 4_000, tokens: 300 },
      usage: { input: 200, output: 100 },
      reservation: { id: 'rsv_2' },
    });
    expect(released).toEqual(['rsv_1']);
  });

  test('counts tokens of a model without a price', async () => {
    const { run } = await started();
    const { charged } = await run(undefined, [attempt, usageEvent], { model: 'unpriced' });
    expect(charged).toEqual({ amounts: { microDollars: 0, tokens: 150 }, usage });
  });
});

describe('what is claimed before a call', () => {
  const mostOf = async (settings: Given['settings'], traits: readonly ModelTraits[]) => {
    const { run, reservedAmounts } = await started({ traits, settings });
    await run([dollars]);
    return reservedAmounts[0]?.tokens;
  };

  test.each<[string, Given['settings'], readonly ModelTraits[], number]>([
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
    const { run, reservedAmounts } = await started({ traits, content, settings: { maxOutput: 1 } });
    await run([tokens]);
    return (reservedAmounts[0]?.tokens ?? 0) - 1;
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

  test('covers what stands in a part beside its words, and in the result of a tool', async () => {
    const textBlock = { type: 'text', text: 'x'.repeat(50) } as const;
    const plain = await inputOf([textBlock]);
    const noted = { ...textBlock, extra: { messages: { note: 'x'.repeat(50) } } };
    expect(await inputOf([noted])).toBe(plain + 60);
    const resultWith = (content: readonly Block[]): Block => ({ type: 'tool-result', id: 'c', content });
    const [none, one, two] = [
      await inputOf([resultWith([])]),
      await inputOf([resultWith([textBlock])]),
      await inputOf([resultWith([textBlock, noted])]),
    ];
    expect([one - none, two - one]).toEqual([50, 2 + 110]);
  });

  test('covers nothing for how a format spelled a part', async () => {
    const thought = { type: 'reasoning', text: 'x'.repeat(50) } as const;
    const plain = await inputOf([thought]);
    expect(await inputOf([{ ...thought, extra: { messages: { $spelled: true } } }])).toBe(plain);
    expect(await inputOf([{ ...thought, extra: { messages: { note: 'x'.repeat(50) } } }])).toBe(plain + 60);
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
      settings: Given['settings'],
      traits: readonly ModelTraits[],
      options: CallOptions = {},
    ) => {
      const { run, lesser, state } = await started({ traits, settings });
      state.near = true;
      const { charged, sent: arrived } = await run([dollars], [attempt, words('x'.repeat(80_000))], options);
      const limit = arrived[0]?.call.edits.settings?.maxOutput;
      return { less: lesser[0]?.tokens, limit, charged: charged?.amounts.tokens };
    };

    test.each<[string, Given['settings'], readonly ModelTraits[], number, number]>([
      ['a call that nobody limits is sent with the limit that is assumed', {}, [{}], 1_000, 1_000],
      ['each of its answers has that', { choices: 3 }, [{}], 1_000, 3_000],
      [
        'a call is asked for no more than the model gives',
        { maxOutput: 9_000 },
        [{ outputLimit: 500 }],
        500,
        500,
      ],
      ['a model that could give more is asked for that too', {}, [{ outputLimit: 9_000 }], 1_000, 1_000],
    ])('%s, and charged for no more', async (_what, settings, traits, limit, less) => {
      expect(await heldTo(settings, traits)).toEqual({ limit, less, charged: less });
    });

    test('a completion that nobody limits is sent with the limit of its format', async () => {
      expect(await heldTo({}, [{}], { format: 'text-completions' })).toMatchObject({ limit: 16, less: 16 });
    });

    test.each<[string, Given['settings'], readonly ModelTraits[]]>([
      ['its own limit', { maxOutput: 70 }, [{}]],
      ['its model’s', {}, [{ outputLimit: 500 }]],
    ])('a call with %s stays as it is', async (_what, settings, traits) => {
      expect(await heldTo(settings, traits)).toMatchObject({
        less: undefined,
        limit: settings?.maxOutput,
      });
    });
  });

  test('is given back when the provider fails, and claimed anew by the next try', async () => {
    const meanwhile: unknown[] = [];
    const again = definePlugin({
      name: 'again',
      stage: 'shape',
      setup: () => async (call: Call, next) => {
        try {
          return await next(call);
        } catch {
          meanwhile.push([...released], [...watched], accountOf(call).charged);
          return next(call);
        }
      },
    });
    const { tested, charged, reservedAmounts, released, watched } = await started({ behind: again() });
    const failing: Script = [{ fail: new GatewayError('upstream_error', 'no') }];
    await tested.run(
      { model: 'x', key: { id: 'key_1', budgets: [dollars] } },
      { reply: (_sent, index) => (index === 0 ? failing : [attempt, usageEvent]) },
    );
    expect(meanwhile).toEqual([['rsv_1'], [], undefined]);
    expect(reservedAmounts).toHaveLength(2);
    expect(charged()).toMatchObject({ reservation: { id: 'rsv_2' }, amounts: { tokens: 150 } });
  });

  const longer = 'x'.repeat(5_000);
  test.each<[string, CallEdits]>([
    ['another model', { model: 'dear' }],
    ['a longer answer', { settings: { maxOutput: 9_000 } }],
    ['more turns', { messages: [{ role: 'user', content: [{ type: 'text', text: longer }] }] }],
    ['longer instructions', { system: [{ role: 'system', content: [{ type: 'text', text: longer }] }] }],
  ])('is claimed anew when a plugin sends the call on with %s', async (_what, edits) => {
    const changing = definePlugin({
      name: 'changing',
      stage: 'shape',
      setup: () => (call: Call, next) => next(call.with(edits)),
    });
    const { run, reservedAmounts, released } = await started({
      behind: changing(),
      settings: { maxOutput: 10 },
    });
    const { sent: calls, charged } = await run([dollars]);
    expect(calls).toHaveLength(1);
    expect(reservedAmounts).toHaveLength(2);
    expect(reservedAmounts[1]?.microDollars).toBeGreaterThan(reservedAmounts[0]?.microDollars ?? Infinity);
    expect([released, charged?.reservation?.id]).toEqual([['rsv_1'], 'rsv_2']);
  });

  test('is claimed once when a plugin sends the call on as it is', async () => {
    const passing = definePlugin({
      name: 'passing',
      stage: 'shape',
      setup: () => (call, next) => next(call.with({})),
    });
    const { run, reservedAmounts, released } = await started({ behind: passing() });
    const { charged } = await run([dollars]);
    expect(reservedAmounts).toHaveLength(1);
    expect([released, charged?.reservation?.id]).toEqual([[], 'rsv_1']);
  });

  test('is given back when the client left while it was made, and no provider is asked', async () => {
    const { run, released, state } = await started();
    const { promise, resolve } = Promise.withResolvers<Reservation>();
    const client = new AbortController();
    state.reserve = () => {
      client.abort();
      return promise;
    };
    const outcome = await run([dollars], [attempt, usageEvent], { signal: client.signal });
    resolve(claim('rsv_late', { microDollars: 1, tokens: 1 }));
    await nextTurn();
    expect(outcome.error).toMatchObject({ code: 'client_closed_request' });
    expect([released, outcome.sent]).toEqual([['rsv_late'], []]);
  });
});

describe('a call is refused', () => {
  test('with what the ledger says when a budget has no room', async () => {
    const { run, state } = await started();
    const spent = new GatewayError('insufficient_quota', 'The daily budget is used up.');
    state.reserve = () => Promise.reject(spent);
    expect(await run([dollars])).toMatchObject({ error: spent, sent: [] });
  });

  test('with 503 when the budget cannot be checked; the reason is for the log', async () => {
    const { run, state } = await started();
    state.reserve = () => Promise.reject(new Error('no such host db.internal'));
    const { error, wire } = await run([dollars]);
    expect(error).toMatchObject({
      status: 503,
      code: 'server_is_overloaded',
      message: 'The budget of this API key cannot be checked now.',
      retryAfter: 5,
      cause: { message: 'no such host db.internal' },
    });
    expect(wire).not.toContain('internal');
  });

  test('with 503 when too many settlements wait, also without a budget', async () => {
    const { run } = await started({ full: true });
    expect((await run(undefined)).error).toMatchObject({
      status: 503,
      code: 'server_is_overloaded',
      retryAfter: 5,
    });
  });

  test('with 403 when its model has no price and a budget is in dollars', async () => {
    const { run, reservedAmounts } = await started({ settings: { maxOutput: 5 } });
    const unpriced = { model: 'unpriced' };
    expect((await run([tokens, dollars], undefined, unpriced)).error).toMatchObject({
      status: 403,
      param: 'model',
      message: expect.stringContaining('The model unpriced has no price here') as string,
    });
    await run([tokens], undefined, unpriced);
    expect(reservedAmounts).toMatchObject([{ microDollars: 0, tokens: 5 }]);
  });
});

test.each<CallOptions & Pick<Required<CallOptions>, 'operation'>>([
  { operation: 'count-tokens', format: 'messages' },
  { operation: 'list-models' },
  { operation: 'state' },
  { operation: 'realtime', format: 'realtime', body: { model: 'x' } },
])('$operation costs nothing and asks nobody', async (call) => {
  const { plugins, passed } = between(quota());
  const refusing = () => Promise.reject(new Error('asked'));
  const bookkeeper = { full: true, reserve: refusing } as unknown as Bookkeeper;
  const tested = await testPlugins(plugins, { tools: { bookkeeper } });
  onTestFinished(() => tested.close());
  const { outcome, error } = await tested.run({ ...call, key: { budgets: [dollars] } });
  expect(error).toBeUndefined();
  expect(passed[0]?.got).toBeDefined();
  expect(passed[0]?.gave).toBe(passed[0]?.got);
  expect(outcome).not.toHaveProperty('cost');
});

test('without a budget nobody waits for the ledger', async () => {
  const { tested, charged, reservedAmounts } = await started();
  for (const key of [{ key: { id: 'key_1' } }, { key: { budgets: [] } }, {}]) {
    // oxlint-disable-next-line no-await-in-loop
    await tested.run({ model: 'x', ...key }, { reply: [attempt, usageEvent] });
    expect(charged()).toMatchObject({ amounts: { microDollars: 2_000, tokens: 150 } });
  }
  expect(reservedAmounts).toEqual([]);
});

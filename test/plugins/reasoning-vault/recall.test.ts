import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Channel, Target } from '../../../core/sdk/call.ts';
import type { Block, Message } from '../../../core/model/chat.ts';
import type { Proof } from '../../../core/model/extra.ts';
import { openStores, type Stores } from '../../../core/state/stores.ts';
import { Listener } from '../../../plugins/reasoning-vault/listener.ts';
import { Memory, type MemoryOptions } from '../../../plugins/reasoning-vault/memory.ts';
import { asItIs, Before } from '../../../plugins/reasoning-vault/conversation.ts';
import { forgottenTurns, recall, type Recalled } from '../../../plugins/reasoning-vault/recall.ts';
import { makerOf, type Turn } from '../../../plugins/reasoning-vault/turn.ts';

let stores: Stores;
let memory: Memory;

beforeEach(() => {
  stores = openStores('sqlite::memory:');
  memory = memoryOf({});
});
afterEach(() => stores.close());

const memoryOf = (options: Partial<MemoryOptions>): Memory =>
  new Memory(stores, {
    ttl: 60_000,
    copies: 1_000_000,
    failed: (error) => {
      throw error;
    },
    ...options,
  });

const targetAt = (channel: string, model = 'm', kind = 'k'): Target =>
  ({
    channel: { id: channel, kind } as Channel,
    key: { id: '', index: 0 },
    model,
    traits: {},
  }) satisfies Target;

const user = (words: string): Message => ({ role: 'user', content: [{ type: 'text', text: words }] });
const assistant = (...content: Block[]): Message => ({ role: 'assistant', content, at: 'messages[1]' });
const call = (id: string, name = 'find'): Block => ({ type: 'tool-call', id, name, input: '{}' });
const withoutPosition = (block: Block): Block => {
  const { at: _, ...rest } = block;
  return rest as Block;
};
const signed = (value: string, kind: Proof['kind'] = 'signature'): Proof => ({ format: 'f', kind, value });

/** Stores a turn as the plugin does. */
async function keep(turn: Turn, history: readonly Message[], owner = 'o'): Promise<void> {
  const before = new Before(() => asItIs(history)).digest(history.length);
  await memory.write(memory.entriesOf(owner, turn, before));
}

const turnOf = (id: string, proof: Proof, channel = 'a'): Turn => ({
  maker: makerOf(targetAt(channel)),
  format: 'f',
  thoughts: [{ text: 'Hm.', proof, calls: 0, spoken: false }],
  calls: [{ id, name: 'find' }],
});

async function recalled(
  messages: readonly Message[],
  target = targetAt('a'),
  to = 'f',
  owner = 'o',
): Promise<Recalled> {
  const scope = { owner, opening: JSON.stringify(messages[0]) };
  const forgotten = await forgottenTurns(
    messages,
    memory,
    () => scope,
    () => asItIs(messages),
  );
  return recall(messages, forgotten, { target, from: 'c', to });
}

describe('which turn a call belongs to', () => {
  const random = 'call_9fK2mQ7xLp3Z';

  test.each([
    random,
    'call_qWzRtYpLkJhGfDsAzXcVbNmQ',
    'toolu_01D7FLrfh4GYq7yT1ULFeyMV',
    'function-call-1234567890123456789',
    'aB3dE6gH9',
    'chatcmpl-tool-0123456789abcdef',
    'call_a1b2c3d4',
    'call_00_J2Eka8o9Z3lauAEj51BG8113',
  ])('its id says that holds chance, whatever the client did to the turns before: %s', async (id) => {
    await keep(turnOf(id, signed('s')), [user('Find it.')]);
    const { messages } = await recalled([user('Summary of all that was.'), assistant(call(id))]);
    expect(messages?.[1]?.content[0]).toMatchObject({ type: 'reasoning', proof: signed('s') });
  });

  test.each([
    'call_1',
    'functions.find:0',
    'find_documents_0',
    'call_function_12',
    // As the gateway spells the second one for providers that would refuse it.
    'functions_find_0_VQGzzVH4U7omF6kv',
  ])('an id that counts (%s) belongs to one conversation only', async (id) => {
    await keep(turnOf(id, signed('s')), [user('Find my keys.')]);
    const other = await recalled([user('Find the weather.'), assistant(call(id))]);
    expect(other).toEqual({ losses: [] });
    const same = await recalled([user('Find my keys.'), assistant(call(id))]);
    expect(same.messages?.[1]?.content[0]).toMatchObject({ proof: signed('s') });
  });
});

describe('who may get a turn back', () => {
  const id = 'call_9fK2mQ7xLp3Z';
  const history = [user('Find it.'), assistant(call(id))];

  test.each([
    ['a signature, on another channel of the kind', signed('s'), targetAt('b'), 'f', true],
    ['a signature, another model', signed('s'), targetAt('a', 'n'), 'f', false],
    ['a signature, another provider', signed('s'), targetAt('b', 'm', 'l'), 'f', false],
    ['a signature, another format', signed('s'), targetAt('a'), 'g', false],
    ['what is encrypted, where it was made', signed('s', 'encrypted'), targetAt('a'), 'f', true],
    ['what is encrypted, on another channel', signed('s', 'encrypted'), targetAt('b'), 'f', false],
  ] as const)('%s', async (_case, proof, target, to, fits) => {
    await keep(turnOf(id, proof), []);
    const { messages, losses } = await recalled(history, target, to);
    expect(messages !== undefined).toBe(fits);
    expect(losses).toEqual(fits ? [] : [{ path: 'messages[1].reasoning', kind: 'setting', from: 'c', to }]);
  });

  test('never another owner', async () => {
    await keep(turnOf(id, signed('s')), []);
    expect(await recalled(history, targetAt('a'), 'f', 'somebody')).toEqual({ losses: [] });
  });
});

describe('a turn whose pieces are messages of their own', () => {
  const ids = ['call_9fK2mQ7xLp3Z', 'call_8gL3nR8yMq4A'] as const;
  const result = (id: string): Message => ({
    role: 'tool',
    content: [{ type: 'tool-result', id, content: [] }],
  });
  const thought = (text: string, proof?: Proof): Message =>
    assistant({ type: 'reasoning', text, ...(proof === undefined ? {} : { proof }) });
  const turn: Turn = {
    ...turnOf(ids[0], signed('s')),
    calls: ids.map((id) => ({ id, name: 'find' })),
  };

  beforeEach(() => keep(turn, []));

  test('stays as it is when one of them is the reasoning', async () => {
    const history = [user('Find it.'), thought('Hm.', signed('s')), ...ids.map((id) => assistant(call(id)))];
    expect(await recalled(history)).toEqual({ losses: [] });
  });

  test('does not get its reasoning twice when results stand between its calls', async () => {
    const [first, second] = ids;
    const history = [
      thought('Hm.', signed('s')),
      assistant(call(first)),
      result(first),
      assistant(call(second)),
      result(second),
    ];
    expect(await recalled(history)).toEqual({ losses: [] });
  });

  test('gets the proof with the words, which then stand there once', async () => {
    const history = [user('Find it.'), thought('Hm.'), ...ids.map((id) => assistant(call(id)))];
    const { messages } = await recalled(history);
    expect(messages?.map(({ content }) => content.map(withoutPosition))).toEqual([
      history[0]?.content,
      [{ type: 'reasoning', text: 'Hm.', proof: signed('s') }, call(ids[0])],
      [call(ids[1])],
    ]);
  });
});

describe('a turn that is put together again', () => {
  const piece = fc.oneof(
    fc.record({
      type: fc.constant('reasoning' as const),
      text: fc.string(),
      proof: fc.option(fc.string(), { nil: undefined }),
    }),
    fc.record({ type: fc.constant('text' as const), text: fc.string({ minLength: 1 }) }),
    fc.record({ type: fc.constant('call' as const), proof: fc.option(fc.string(), { nil: undefined }) }),
  );

  test('has every proved thought once, in order, before the calls that it led to, and every proof on its call', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 8 }), fc.nat({ max: 1e9 }), async (pieces, number) => {
        const listener = new Listener({ bare: false, limit: 1e6 });
        const original: Block[] = [];
        pieces.forEach((made, block) => {
          const at = { block, choice: 0 };
          if (made.type === 'reasoning') {
            const proof = made.proof === undefined ? {} : { proof: signed(made.proof) };
            listener.event({ type: 'reasoning-start', ...at });
            listener.event({ type: 'reasoning-delta', ...at, text: made.text });
            listener.event({ type: 'reasoning-end', ...at, ...proof });
            if (made.proof !== undefined) original.push({ type: 'reasoning', text: made.text, ...proof });
          } else if (made.type === 'text') {
            listener.event({ type: 'text-start', ...at });
            listener.event({ type: 'text-delta', ...at, text: made.text });
            listener.event({ type: 'text-end', ...at });
            original.push({ type: 'text', text: made.text });
          } else {
            const proof = made.proof === undefined ? {} : { proof: signed(made.proof) };
            const id = `call_Zz9${number}y${block}Ab12`;
            listener.event({ type: 'tool-start', ...at, id, name: 'find', ...proof });
            listener.event({ type: 'tool-end', ...at });
            original.push({ type: 'tool-call', id, name: 'find', input: '', ...proof });
          }
        });
        listener.event({ type: 'finish', choice: 0, reason: 'stop' });
        const [recorded] = listener.take()?.turns ?? [];
        const forgotten = original
          .filter(({ type }) => type !== 'reasoning')
          .map((block): Block => {
            if (block.type !== 'tool-call') return block;
            const { proof: _, ...bare } = block;
            return bare;
          });
        const proved = original.some((block) => 'proof' in block && block.proof !== undefined);
        const called = original.some(({ type }) => type === 'tool-call');
        expect(recorded !== undefined).toBe(proved && called);
        if (recorded === undefined) return;
        await keep({ ...recorded, maker: makerOf(targetAt('a')), format: 'f' }, []);
        const { messages } = await recalled([assistant(...forgotten)]);
        const content = (messages?.[0]?.content ?? []).map(withoutPosition);
        const without = (type: Block['type']) => (block: { readonly type: string }) => block.type !== type;
        expect(content.filter(without('text'))).toEqual(original.filter(without('text')));
        expect(content.filter(without('reasoning'))).toEqual(original.filter(without('reasoning')));
      }),
    );
  });
});

describe('the memory', () => {
  test('holds no more copies than it may, and still knows all', async () => {
    const small = memoryOf({ copies: 4_000 });
    const ids = Array.from({ length: 50 }, (_, index) => `call_Ab12Cd34Ef${index}`);
    for (const id of ids) {
      const turn = turnOf(id, signed('s'.repeat(300)));
      // oxlint-disable-next-line no-await-in-loop -- one after the other is what is tested
      await small.write([{ key: id, value: { turn } }]);
    }
    const keys = ids;
    expect((await small.read(keys)).size).toBe(50);
    await stores.namespace('reasoning-vault').clear();
    const held = (await small.read(keys)).size;
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThan(10);
  });

  test('does not ask the database twice for what is not there', async () => {
    const key = 'proof:s';
    expect(await memory.read([key])).toEqual(new Map());
    await stores.close();
    expect(await memory.read([key])).toEqual(new Map());
    stores = openStores('sqlite::memory:');
  });

  test('goes on with its copies when the database fails, and says so', async () => {
    const failures: unknown[] = [];
    const calm = memoryOf({ failed: (error) => failures.push(error) });
    await stores.close();
    await calm.write([{ key: 'k', value: { maker: makerOf(targetAt('a')) } }]);
    expect([...(await calm.read(['k', 'l'])).keys()]).toEqual(['k']);
    expect(failures).toHaveLength(2);
    stores = openStores('sqlite::memory:');
  });

  test('forgets when the time is over', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const short = memoryOf({ ttl: 30 });
    await short.write([{ key: 'k', value: { maker: makerOf(targetAt('a')) } }]);
    expect((await short.read(['k'])).size).toBe(1);
    vi.advanceTimersByTime(50);
    expect((await short.read(['k'])).size).toBe(0);
  });
});

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  callOf,
  exceeds,
  isCall,
  isOutput,
  isUserMessage,
  itemsOf,
  openCalls,
  split,
  userMessages,
  weigh,
  type Item,
} from '../../../plugins/compaction/items.ts';

const user = (content: string): Item => ({ role: 'user', content });
const assistant = (content: string): Item => ({ type: 'message', role: 'assistant', content });
const call = (id: string): Item => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{}' });
const output = (id: string): Item => ({ type: 'function_call_output', call_id: id, output: 'x'.repeat(400) });
const reasoning: Item = { type: 'reasoning', summary: [] };

describe('where a context is cut', () => {
  test('before the last message of the user, when what follows is short', () => {
    const items = [user('one'), assistant('two'), user('three'), call('a'), output('a')];
    expect(split(items, 1_000)).toEqual({ head: items.slice(0, 2), kept: items.slice(2) });
  });

  test('later, when an agent worked for long since then: the user’s message stays too', () => {
    const rounds = Array.from({ length: 9 }, (_, index) => [
      reasoning,
      call(`c${index}`),
      output(`c${index}`),
    ]).flat();
    const items = [user('fix it'), ...rounds];
    const { head = [], kept = [] } = split(items, 300) ?? {};
    expect(kept[0]).toBe(items[0]);
    expect(kept.slice(1)).toEqual(items.slice(head.length));
    expect(kept[1]).toBe(reasoning);
    expect(kept.slice(1).reduce((sum, item) => sum + weigh(item), 0)).toBeLessThanOrEqual(300);
  });

  test('nowhere, when there is nothing in front', () => {
    expect(split([user('one')], 1_000)).toBeUndefined();
    expect(split([user('one'), call('a')], 1)).toBeUndefined();
    expect(split([], 1)).toBeUndefined();
  });

  test('never between a call and its output, nor behind reasoning that belongs to what follows', () => {
    const piece = fc.oneof(
      fc.string().map(user),
      fc.string().map(assistant),
      fc.constant(reasoning),
      fc.constantFrom('a', 'b', 'c').map(call),
      fc.constantFrom('a', 'b', 'c').map(output),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.nat(500), (items, budget) => {
        const parts = split(items, budget);
        if (parts === undefined) return;
        const tail = items.slice(parts.head.length);
        expect(openCalls(parts.head)).toEqual([]);
        expect(parts.head.at(-1)?.type).not.toBe('reasoning');
        expect(parts.head.length).toBeGreaterThan(0);
        expect(parts.kept.slice(parts.kept.length - tail.length)).toEqual(tail);
        expect(parts.kept.length - tail.length).toBeLessThanOrEqual(1);
        const last = items.findLast(isUserMessage);
        if (last !== undefined) expect(parts.kept).toContain(last);
      }),
    );
  });
});

describe('items', () => {
  test('a text is one message of the user, and no input is none', () => {
    expect(itemsOf({ input: 'hello' })).toEqual([{ type: 'message', role: 'user', content: 'hello' }]);
    expect(itemsOf({})).toEqual([]);
  });

  test('calls are told from records of hosted tools, and know their outputs', () => {
    expect(isCall({ type: 'custom_tool_call', call_id: 'x' })).toBe(true);
    expect(isCall({ type: 'web_search_call', id: 'ws_1' })).toBe(false);
    expect(isOutput({ type: 'local_shell_call_output', id: 'x' })).toBe(true);
    expect(callOf({ type: 'local_shell_call_output', id: 'x' })).toBe('x');
    expect(openCalls([call('a'), call('b'), output('a')])).toEqual([call('b')]);
  });

  test('an image weighs what it costs a model, not what its bytes are', () => {
    const image = { type: 'input_image', image_url: `data:image/png;base64,${'A'.repeat(4_000_000)}` };
    expect(weigh({ role: 'user', content: [image] })).toBeLessThan(2_000);
  });
});

describe('the user’s messages that are retained', () => {
  test('are written in full form, in order, each with an id', () => {
    const items = [user('one'), assistant('two'), { ...user('three'), id: 'msg_own' }];
    expect(userMessages(items, 1_000, (index) => `msg_new_${index}`)).toEqual([
      {
        id: 'msg_new_0',
        type: 'message',
        status: 'completed',
        role: 'user',
        content: [{ type: 'input_text', text: 'one' }],
      },
      {
        id: 'msg_own',
        type: 'message',
        status: 'completed',
        role: 'user',
        content: [{ type: 'input_text', text: 'three' }],
      },
    ]);
  });

  test('are the newest, as far as there is room', () => {
    const items = Array.from({ length: 10 }, (_, index) => user(`${index} ${'x'.repeat(400)}`));
    const kept = userMessages(items, 350, String);
    expect(kept).toHaveLength(3);
    expect(JSON.stringify(kept[0])).toContain('7 xxx');
  });
});

describe('whether a context is too long', () => {
  const counted = async (tokens: number, text: string, threshold: number): Promise<[boolean, number]> => {
    let counts = 0;
    const result = await exceeds(threshold, { input: text }, async () => {
      counts += 1;
      return tokens;
    });
    return [result, counts];
  };

  test('is counted where a guess does not settle it, and only there', async () => {
    expect(await counted(0, 'x'.repeat(400), 1_000)).toEqual([false, 0]);
    expect(await counted(0, 'x'.repeat(40_000), 1_000)).toEqual([true, 0]);
    expect(await counted(1_000, 'x'.repeat(4_000), 1_000)).toEqual([false, 1]);
    expect(await counted(1_001, 'x'.repeat(4_000), 1_000)).toEqual([true, 1]);
  });
});

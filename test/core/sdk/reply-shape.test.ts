import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { GatewayEvent } from 'sluice';
import { ReplyShape } from '../../../core/sdk/reply-shape.ts';

/** Returns the whole reply that these events come to. */
function shaped(events: readonly GatewayEvent[]): readonly GatewayEvent[] {
  const shape = new ReplyShape('req_1', 'm');
  const reply = events.flatMap((event) => shape.event(event));
  shape.end();
  return reply;
}

const finish = (choice = 0): GatewayEvent => ({ type: 'finish', choice, reason: 'stop' });
const text = (words: string, choice = 0, block = 0): GatewayEvent => ({
  type: 'text-delta',
  block,
  choice,
  text: words,
});
const thought = (words: string, choice = 0): GatewayEvent => ({
  type: 'reasoning-delta',
  block: 0,
  choice,
  text: words,
});

describe('a reply of deltas alone', () => {
  test('gets a head, and a start and an end of each block', () => {
    expect(shaped([thought('hm'), text('Hel'), text('lo'), finish()])).toEqual([
      { type: 'head', id: 'req_1', model: 'm' },
      { type: 'reasoning-start', block: 0, choice: 0 },
      { type: 'reasoning-delta', block: 0, choice: 0, text: 'hm' },
      { type: 'reasoning-end', block: 0, choice: 0 },
      { type: 'text-start', block: 1, choice: 0 },
      { type: 'text-delta', block: 1, choice: 0, text: 'Hel' },
      { type: 'text-delta', block: 1, choice: 0, text: 'lo' },
      { type: 'text-end', block: 1, choice: 0 },
      { type: 'finish', choice: 0, reason: 'stop' },
    ]);
  });

  test('keeps the head of the channel, the first of several', () => {
    const head = (id: string): GatewayEvent => ({ type: 'head', id, model: 'own' });
    expect(shaped([head('a'), head('b'), finish()])[0]).toEqual({ type: 'head', id: 'a', model: 'own' });
    expect(shaped([head('a'), head('b'), finish()])).toHaveLength(2);
  });

  test('may have calls of tools that interleave', () => {
    const tool = (block: number): GatewayEvent => ({
      type: 'tool-start',
      block,
      choice: 0,
      id: `c${block}`,
      name: 't',
    });
    const input = (block: number, json: string): GatewayEvent => ({
      type: 'tool-delta',
      block,
      choice: 0,
      input: json,
    });
    const types = shaped([tool(0), tool(1), input(0, '{'), input(1, '{'), input(0, '}'), finish()]).map(
      ({ type }) => type,
    );
    expect(types).toEqual([
      'head',
      'tool-start',
      'tool-start',
      'tool-delta',
      'tool-delta',
      'tool-delta',
      'tool-end',
      'tool-end',
      'finish',
    ]);
  });
});

test.each<[string, GatewayEvent]>([
  ['a delta of a tool that was not begun', { type: 'tool-delta', block: 0, choice: 0, input: '' }],
  ['an end of nothing', { type: 'text-end', block: 0, choice: 0 }],
  ['bytes', { type: 'bytes', bytes: Buffer.from('x') }],
  ['a result of another operation', { type: 'result', value: { tokens: 1 } }],
])('%s is the provider’s failure', (_what, event) => {
  expect(() => new ReplyShape('r', 'm').event(event)).toThrow(/response is invalid/);
});

test('a reply that does not finish was cut', () => {
  expect(() => shaped([text('Hel')])).toThrow(/before the response was complete/);
});

test('whatever deltas come, blocks nest and words stay in their order', () => {
  const delta = fc.record({
    isThought: fc.boolean(),
    choice: fc.nat(2),
    block: fc.nat(2),
    words: fc.string(),
  });
  fc.assert(
    fc.property(fc.array(delta, { maxLength: 30 }), (deltas) => {
      const events = deltas.map(({ isThought, choice, block, words }) =>
        isThought ? thought(words, choice) : text(words, choice, block),
      );
      const reply = shaped([...events, finish(0), finish(1), finish(2)]);
      const open = new Map<number, number>();
      const texts = new Map<number, string>();
      for (const event of reply) {
        if (!('block' in event)) continue;
        const { block, choice } = event;
        if (event.type.endsWith('-start')) {
          expect([...open.values()]).not.toContain(choice);
          open.set(block, choice);
        } else expect(open.get(block)).toBe(choice);
        if (event.type === 'text-delta') texts.set(choice, (texts.get(choice) ?? '') + event.text);
        if (event.type.endsWith('-end')) open.delete(block);
      }
      expect(open.size).toBe(0);
      for (const choice of [0, 1, 2]) {
        const words = deltas.filter((one) => one.choice === choice && !one.isThought).map((one) => one.words);
        expect(texts.get(choice) ?? '').toBe(words.join(''));
      }
    }),
    { seed: 20261125 },
  );
});

import { setImmediate as nextTurn } from 'node:timers/promises';
import * as fc from 'fast-check';
import { countTokens as reference, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base';
import { O200K_TOKEN_SPLIT_REGEX } from 'gpt-tokenizer/encodingParams/constants';
import { describe, expect, test } from 'vitest';
import type { ChatRequest } from '../../../core/model/chat.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { shareValue } from '../../../core/performance/shared-values.ts';
import { countTokens, estimateInput } from '../../../core/tokens/index.ts';
import { estimateTokens, TokenCounter } from '../../../core/tokens/counter.ts';
import { longestWord, stretches } from '../../../core/tokens/stretches.ts';
import { tries } from '../../support/tries.ts';

setMergeCacheSize(0);

const asking = (...texts: readonly string[]): ChatRequest => ({
  operation: 'count-tokens',
  format: 'plain',
  model: 'm',
  stream: false,
  system: [],
  messages: texts.map((text) => ({ role: 'user', content: [{ type: 'text', text }] })),
  tools: [],
  settings: {},
});

/** Returns the tokens besides the texts: 3 for the request, 4 for each message. */
const besides = (messages: number): number => 3 + 4 * messages;

describe('tokens of a request', () => {
  test('are those of its words', async () => {
    const texts = ['Hello, how are you today?', 'It’s fine: 1,234 things.\n\n  def f(x): return x', ''];
    const words = texts.reduce((sum, text) => sum + reference(text), 0);
    expect(await countTokens(asking(...texts))).toBe(besides(3) + words);
  });

  test('include words that look like marks of the tokenizer', async () => {
    expect(await countTokens(asking('the end: <|endoftext|>'))).toBeGreaterThan(besides(1) + 5);
  });

  test('are counted while other calls go on', async () => {
    const turns: string[] = [];
    const counting = countTokens(asking('漢'.repeat(200_000))).then(() => turns.push('counted'));
    await nextTurn();
    turns.push('another call');
    await counting;
    expect(turns).toEqual(['another call', 'counted']);
  });

  test('of a very long text are found by samples from all over it', async () => {
    const words = 'Counting the words of a long text takes as long as the text is. ';
    const many = 40_000;
    const exact = reference(words.repeat(100)) * (many / 100);
    const counted = await countTokens(asking(words.repeat(many)));
    expect(Math.abs(counted - exact) / exact).toBeLessThan(0.02);
  });

  test('of more than can wait are estimated', async () => {
    const counter = new TokenCounter();
    const text = '123'.repeat(350_000);
    const counts = await Promise.all(Array.from({ length: 9 }, () => counter.count(text)));
    expect(counts.at(-1)).toBe(estimateTokens(Buffer.byteLength(text)));
    expect(counts[0]).toBeGreaterThanOrEqual(350_000);
    expect(await counter.count('hello')).toBe(1);
  });
});

/** Texts made of a few characters, so that they repeat: letters, marks, blanks and signs of ASCII and beyond. */
const rows = fc
  .tuple(
    fc.array(
      fc.constantFrom(..."aZ09 \n\t\r!/_'’—\u00a0\u3000漢éß\u0301ǅ😀\0", '\ud800', ' a', "'s", 'the '),
      {
        minLength: 1,
        maxLength: 6,
      },
    ),
    fc.integer({ min: 1, max: 400 }),
  )
  .map(([characters, times]) => characters.join('').repeat(times));
const texts = fc.array(rows, { maxLength: 6 }).map((parts) => parts.join(''));
const seed = 20_261_122;

describe('no word that the tokenizer sees', () => {
  test('is longer than the bound, and nothing is lost', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const parts = [...stretches(text)];
        expect(parts.join('')).toBe(text);
        for (const part of parts) {
          for (const [word] of part.matchAll(O200K_TOKEN_SPLIT_REGEX))
            expect(word.length).toBeLessThanOrEqual(longestWord + 1);
        }
      }),
      { seed, numRuns: tries(500) },
    );
  });

  test('is cut at a cost of more than two tokens', () => {
    fc.assert(
      fc.property(rows, (text) => {
        const parts = [...stretches(text)];
        const sum = parts.reduce((tokens, part) => tokens + reference(part), 0);
        expect(Math.abs(sum - reference(text))).toBeLessThanOrEqual(2 * (parts.length - 1));
      }),
      { seed, numRuns: tries(200) },
    );
  });

  test('is cut where it is ordinary', () => {
    const text = 'A sentence, as people write them; 3.14 is a number, and `code(x)` is code.\n'.repeat(200);
    expect([...stretches(text)]).toEqual([text]);
  });
});

describe('estimated tokens of tools', () => {
  const schema: JsonObject = { type: 'object', properties: { größe: { type: 'number' }, text: {} } };
  const tools: ChatRequest['tools'] = [
    { type: 'function', name: 'read', description: 'Reads "it".', schema, strict: true, at: 'tools[0]' },
    { type: 'function', name: 'now' },
    { type: 'function', name: 'write', schema: shareValue(structuredClone(schema)) as JsonObject },
    { type: 'custom', name: 'free', format: { type: 'text' } },
    { type: 'opaque', name: 'x', format: 'messages', value: { type: 'x', max: 3 } },
  ];

  test('are a quarter of their bytes as JSON, also of those that many calls have in common', () => {
    for (const some of [...tools.map((_, count) => tools.slice(0, count + 1)), tools])
      expect(estimateInput({ ...asking(), tools: some })).toBe(
        estimateTokens(Buffer.byteLength(JSON.stringify(some))),
      );
  });
});

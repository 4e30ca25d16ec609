import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { differences } from '../../../plugins/dashboard/web/parts/differences.ts';
import { changesOf, draftOf, readDraft } from '../../../plugins/dashboard/web/parts/key-draft.ts';
import { fieldOf } from '../../../plugins/dashboard/web/parts/limits-draft.ts';
import { count, duration, money, percent } from '../../../plugins/dashboard/web/parts/text.ts';
import { startOf } from '../../../plugins/dashboard/web/parts/zone-time.ts';
import { wires } from '../../../plugins/dashboard/web/parts/wires.ts';
import type { KeyView } from '../../../plugins/admin/schemas/index.ts';

const key: KeyView = {
  id: 'key_1',
  version: 'v1',
  name: 'Team Blue',
  prefix: 'sk-AbCd',
  suffix: 'wxyz',
  state: 'valid',
  enabled: true,
  createdAt: 1,
  budgets: [],
};

describe('the form of a key', () => {
  test('sends dollars as micro-dollars and leaves out what is empty', () => {
    const read = readDraft({
      ...draftOf(undefined),
      name: ' Team Blue ',
      models: 'demo, gpt-*\n\nclaude-x',
      budgets: [
        { id: 0, amount: '$1,000.50', unit: 'micro-dollar', period: 'month', hours: '', timeZone: '' },
        { id: 1, amount: '2 000', unit: 'token', period: 'day', hours: '', timeZone: 'Europe/Vienna' },
      ],
      requestsPerMinute: '1_000',
    });
    expect(read).toEqual({
      value: {
        name: 'Team Blue',
        models: ['demo', 'gpt-*', 'claude-x'],
        budgets: [
          { unit: 'micro-dollar', period: 'month', amount: 1_000_500_000 },
          { unit: 'token', period: 'day', timeZone: 'Europe/Vienna', amount: 2000 },
        ],
        requestsPerMinute: 1000,
      },
    });
  });

  test.each([
    ['name', { name: '  ' }],
    ['concurrency', { concurrency: '0' }],
    ['tokensPerMinute', { tokensPerMinute: 'many' }],
    ['requestsPerMinute', { requestsPerMinute: '1.5' }],
    [
      'budgets',
      {
        budgets: [
          { id: 0, amount: '', unit: 'token', period: 'day', hours: '', timeZone: 'Europe/Vienna' } as const,
        ],
      },
    ],
    [
      'budgets',
      {
        budgets: [
          {
            id: 0,
            amount: '-1',
            unit: 'token',
            period: 'day',
            hours: '',
            timeZone: 'Europe/Vienna',
          } as const,
        ],
      },
    ],
    [
      'budgets',
      {
        budgets: [
          {
            id: 0,
            amount: 'a lot',
            unit: 'token',
            period: 'day',
            hours: '',
            timeZone: 'Europe/Vienna',
          } as const,
        ],
      },
    ],
  ])('says what is wrong with %s', (field, changes) => {
    const read = readDraft({ ...draftOf(undefined), name: 'a', ...changes });
    expect('problems' in read && Object.keys(read.problems)).toEqual([field]);
  });

  test('shows a key so that saving it untouched changes nothing', () => {
    const optionalNumber = fc.option(fc.integer({ min: 1, max: 1e9 }), { nil: undefined });
    const word = fc.stringMatching(/^[a-z][a-z0-9*-]{0,12}$/);
    fc.assert(
      fc.property(
        fc.record({
          models: fc.option(fc.array(word, { minLength: 1, maxLength: 4 }), { nil: undefined }),
          requestsPerMinute: optionalNumber,
          tokensPerMinute: optionalNumber,
          concurrency: optionalNumber,
          budgets: fc.array(
            fc.record({
              unit: fc.constantFrom('micro-dollar' as const, 'token' as const),
              period: fc.constantFrom('day' as const, 'month' as const, 'total' as const),
              amount: fc.integer({ min: 0, max: 1e15 }),
              since: fc.constant(0),
              spent: fc.nat(),
              reserved: fc.nat(),
            }),
            { maxLength: 3 },
          ),
        }),
        (limits) => {
          const shown = { ...key, ...limits };
          const read = readDraft(draftOf(shown));
          expect('value' in read && changesOf(shown, read.value)).toEqual({});
        },
      ),
    );
  });

  test('sends what was changed alone, and null for a limit that was taken away', () => {
    const before = { ...key, concurrency: 3, models: ['demo'] };
    const read = readDraft({ ...draftOf(before), concurrency: '', models: 'demo\ngpt-5' });
    expect('value' in read && changesOf(before, read.value)).toEqual({
      concurrency: null,
      models: ['demo', 'gpt-5'],
    });
  });

  test('finds the field that a refusal is about', () => {
    expect(fieldOf('budgets[0].amount', draftOf(undefined))).toBe('budgets');
    expect(fieldOf('models.1', draftOf(undefined))).toBe('models');
    expect(fieldOf('somethingElse', draftOf(undefined))).toBeUndefined();
    expect(fieldOf(undefined, draftOf(undefined))).toBeUndefined();
  });
});

describe('numbers for people', () => {
  test.each([
    [undefined, '–'],
    [0, '$0'],
    [1, '$0.000001'],
    [30_300, '$0.0303'],
    [1_500_000, '$1.50'],
    [12_345_678_900, '$12.3K'],
  ])('%s micro-dollars are %s', (value, shown) => expect(money(value)).toBe(shown));

  test.each([
    [undefined, '–'],
    [0, '0 ms'],
    [4.23, '4.2 ms'],
    [999, '999 ms'],
    [1234, '1.23 s'],
    [250_000, '4 min 10 s'],
  ])('%s milliseconds are %s', (value, shown) => expect(duration(value)).toBe(shown));

  test('shares of nothing are not a number', () => {
    expect([percent(0, 0), percent(1, 16), percent(1, 2)]).toEqual(['–', '6.3%', '50%']);
    expect(count(12_345)).toBe('12,345');
  });
});

describe('the playground', () => {
  const question = {
    turns: [],
    model: 'demo/x',
    system: 'Be kind.',
    prompt: 'Hello',
    maxTokens: 20,
    temperature: undefined,
    stream: true,
  };

  test('spells a question in each of the four formats', () => {
    const sent = wires.map(({ name, request, authorize }) => {
      const { path, headers, body } = request(question);
      return [name, path, { ...headers, ...authorize('sk-1') }, JSON.stringify(body)];
    });
    expect(sent).toEqual([
      [
        'chat-completions',
        '/v1/chat/completions',
        { authorization: 'Bearer sk-1' },
        '{"model":"demo/x","messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hello"}],"max_completion_tokens":20,"stream":true,"stream_options":{"include_usage":true}}',
      ],
      [
        'messages',
        '/v1/messages',
        { 'anthropic-version': '2023-06-01', 'x-api-key': 'sk-1' },
        '{"model":"demo/x","max_tokens":20,"system":"Be kind.","messages":[{"role":"user","content":"Hello"}],"stream":true}',
      ],
      [
        'generate-content',
        '/v1beta/models/demo%2Fx:streamGenerateContent?alt=sse',
        { 'x-goog-api-key': 'sk-1' },
        '{"contents":[{"role":"user","parts":[{"text":"Hello"}]}],"systemInstruction":{"parts":[{"text":"Be kind."}]},"generationConfig":{"maxOutputTokens":20}}',
      ],
      [
        'responses',
        '/v1/responses',
        { authorization: 'Bearer sk-1' },
        '{"model":"demo/x","instructions":"Be kind.","input":"Hello","max_output_tokens":20,"store":false,"stream":true}',
      ],
    ]);
  });

  test('reads anything that is not an answer as nothing', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        for (const wire of wires) {
          const { text = '', thinking = '' } = wire.read(value);
          expect([typeof text, typeof thinking]).toEqual(['string', 'string']);
        }
      }),
    );
  });
});

test.each([
  ['America/Santiago', '2026-09-06', '2026-09-06T04:00Z'],
  ['America/Santiago', '2026-09-07', '2026-09-07T03:00Z'],
  ['Asia/Beirut', '2026-03-29', '2026-03-28T22:00Z'],
  ['Europe/Berlin', '2026-03-30', '2026-03-29T22:00Z'],
])('in %s the day %s begins at %s, also where midnight is skipped', (zone, date, start) => {
  expect(startOf(zone, date)).toBe(Date.parse(start));
});

test('tells an administrator what somebody else has changed meanwhile', () => {
  const budget = { unit: 'micro-dollar', period: 'month', amount: 5_000_000, spent: 1 };
  const before = { version: 'v1', name: 'a', budgets: [budget], lastUsedAt: 1 };
  const after = {
    version: 'v2',
    name: 'a',
    budgets: [{ ...budget, amount: 7_500_000 }],
    requestsPerMinute: 7,
  };
  expect(differences(before, { ...after, lastUsedAt: 2 })).toEqual([
    'Budgets is now $7.5 per month',
    'Requests per minute is now 7',
  ]);
  expect(differences(before, { ...before, budgets: [{ ...budget, spent: 2 }], note: '' })).toEqual([]);
  const zoned = { ...before, budgets: [{ ...budget, timeZone: 'Europe/Berlin' }] };
  expect(differences(before, zoned)).toEqual(['Budgets is now $5 per month (Europe/Berlin)']);
  // Keys in a list have it, a key that is read by its id has not.
  const listed = { ...before, spent: { since: 1, calls: 2, microDollars: 3 } };
  expect(differences(listed, before)).toEqual([]);
});

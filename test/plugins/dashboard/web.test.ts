import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { differences } from '../../../plugins/dashboard/web/parts/differences.ts';
import { changesOf, draftOf, readDraft } from '../../../plugins/dashboard/web/parts/key-draft.ts';
import { fieldOf } from '../../../plugins/dashboard/web/parts/limits-draft.ts';
import { changesOfOwner, draftOfOwner, readOwner } from '../../../plugins/dashboard/web/parts/owner-draft.ts';
import { count, duration, money, percent } from '../../../plugins/dashboard/web/parts/text.ts';
import { startOf } from '../../../plugins/dashboard/web/parts/zone-time.ts';
import { wires } from '../../../plugins/dashboard/web/parts/wires.ts';
import type { KeyView, OwnerView } from '../../../plugins/admin/schemas/index.ts';

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

const budgetField = {
  id: 0,
  amount: '',
  unit: 'micro-dollar',
  period: 'month',
  hours: '',
  timeZone: '',
} as const;

describe('the form of a key', () => {
  test('sends dollars as micro-dollars and leaves out what is empty', () => {
    const read = readDraft({
      ...draftOf(undefined),
      name: ' Team Blue ',
      models: 'demo\n gpt-* \r\n\nMy Model, new',
      tags: 'team blue,nightly',
      budgets: [
        { id: 0, amount: '$1,000.50', unit: 'micro-dollar', period: 'month', hours: '', timeZone: '' },
        { id: 1, amount: '2 000', unit: 'token', period: 'day', hours: '', timeZone: 'Europe/Vienna' },
      ],
      requestsPerMinute: '1_000',
    });
    expect(read).toEqual({
      value: {
        name: 'Team Blue',
        models: ['demo', 'gpt-*', 'My Model, new'],
        tags: ['team blue', 'nightly'],
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
    ['requestsPerMinute', { requestsPerMinute: '1,5' }],
    ['tokensPerMinute', { tokensPerMinute: ',' }],
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

  test.each(['1,5', '1.000,50', ',', '$', '1,00', '10,0000', '0x10'])(
    'says how an amount is written that is typed as %s',
    (amount) => {
      const budget = { ...budgetField, amount };
      const read = readDraft({
        ...draftOf(undefined),
        name: 'a',
        budgets: [budget],
        endUserBudget: [budget],
      });
      const problem = expect.stringContaining('such as 1,000 or 2.50') as string;
      expect(read).toEqual({ problems: { budgets: problem, endUserBudget: problem } });
    },
  );

  test('shows a key so that saving it untouched changes nothing', () => {
    const optionalNumber = fc.option(fc.integer({ min: 1, max: 1e9 }), { nil: undefined });
    const word = fc.stringMatching(/^[a-z][a-z0-9*, -]{0,12}[a-z*]$/);
    const tag = fc.stringMatching(/^[a-z][a-z0-9 -]{0,12}[a-z]$/);
    fc.assert(
      fc.property(
        fc.record({
          models: fc.option(fc.array(word, { minLength: 1, maxLength: 4 }), { nil: undefined }),
          requestsPerMinute: optionalNumber,
          tokensPerMinute: optionalNumber,
          concurrency: optionalNumber,
          callTags: fc.option(fc.boolean(), { nil: undefined }),
          tags: fc.option(fc.array(tag, { minLength: 1, maxLength: 4 }), { nil: undefined }),
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
          const budgets = limits.budgets.map(({ unit, period, amount }) => ({ unit, period, amount }));
          expect('value' in read && read.value).toEqual({
            ...limits,
            name: key.name,
            callTags: limits.callTags === true ? true : undefined,
            budgets: budgets.length > 0 ? budgets : undefined,
          });
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

  test('keeps names with spaces when another is added', () => {
    const before = { ...key, models: ['My Model', 'a, b'], tags: ['team blue'] };
    const shown = draftOf(before);
    const read = readDraft({ ...shown, models: `${shown.models}\nnew`, tags: `${shown.tags}, team red` });
    expect('value' in read && changesOf(before, read.value)).toEqual({
      models: ['My Model', 'a, b', 'new'],
      tags: ['team blue', 'team red'],
    });
  });

  test.each(['2020-01-01T00:00:30.5Z', '2026-10-25T00:30:30.5Z', '2026-10-25T01:30:30.5Z'])(
    'leaves an expiry of %s to the millisecond, in the past and in an hour that is repeated',
    (time) => {
      vi.stubEnv('TZ', 'Europe/Berlin');
      onTestFinished(() => void vi.unstubAllEnvs());
      const before = { ...key, expiresAt: Date.parse(time) };
      const read = readDraft({ ...draftOf(before), name: 'Other' });
      expect('value' in read && changesOf(before, read.value)).toEqual({ name: 'Other' });
      const later = readDraft({ ...draftOf(before), expiresAt: '2027-03-01T12:00' });
      expect('value' in later && changesOf(before, later.value)).toEqual({
        expiresAt: new Date(2027, 2, 1, 12).getTime(),
      });
    },
  );

  test('finds the field that a refusal is about', () => {
    expect(fieldOf('budgets[0].amount', draftOf(undefined))).toBe('budgets');
    expect(fieldOf('models.1', draftOf(undefined))).toBe('models');
    expect(fieldOf('somethingElse', draftOf(undefined))).toBeUndefined();
    expect(fieldOf(undefined, draftOf(undefined))).toBeUndefined();
  });
});

describe('the form of a team', () => {
  const team: OwnerView = {
    id: 'team_1',
    version: 'v1',
    kind: 'team',
    name: 'Research',
    enabled: true,
    createdAt: 1,
    budgets: [],
  };
  const pricing = {
    factor: 1.2,
    models: [
      { model: 'internal/*', factor: 0 },
      {
        model: 'gpt-*',
        price: {
          input: 3,
          services: { 'web-search': 0.01 },
          output: 15,
          tiers: [{ above: 200_000, input: 6 }],
        },
      },
    ],
  };

  test('shows price rules and budgets of end users so that saving them untouched changes nothing', () => {
    const price = fc.double({ min: 0, max: 1e6, noNaN: true });
    const row = fc.record(
      {
        cacheWrite: price,
        perImage: price,
        input: price,
        cacheRead: price,
        output: price,
        services: fc.dictionary(fc.string(), price),
      },
      { requiredKeys: ['input', 'output'] },
    );
    const entry = fc.oneof(
      fc.record({ model: fc.constantFrom('a', 'b*'), factor: fc.double({ min: 0, max: 1000, noNaN: true }) }),
      fc.record({ model: fc.constantFrom('a', 'b*'), price: row }),
    );
    const rule = fc.record(
      {
        factor: fc.double({ min: 0, max: 1000, noNaN: true }),
        models: fc.array(entry, { minLength: 1, maxLength: 3 }),
      },
      { requiredKeys: ['factor'] },
    );
    const endUserBudget = fc.record({
      amount: fc.integer({ min: 0, max: 1e12 }),
      unit: fc.constantFrom('micro-dollar' as const, 'token' as const),
      period: fc.constantFrom('day' as const, 'month' as const),
    });
    fc.assert(
      fc.property(rule, endUserBudget, (rules, budget) => {
        const shown = { ...team, pricing: rules, endUserBudget: budget };
        const read = readOwner(draftOfOwner(shown, 'team'));
        if ('problems' in read) throw new Error(JSON.stringify(read.problems));
        expect(changesOfOwner(shown, read.value)).toEqual({});
        expect(JSON.stringify(read.value.pricing)).toBe(JSON.stringify(rules));
        expect(read.value.endUserBudget).toEqual(budget);
      }),
    );
  });

  test('leaves an empty rule as it is until it is changed', () => {
    const shown = { ...team, pricing: {} };
    const draft = draftOfOwner(shown, 'team');
    const changesFor = (factor: string): unknown => {
      const read = readOwner({ ...draft, note: 'new', pricing: { factor, models: [] } });
      return 'value' in read && changesOfOwner(shown, read.value);
    };
    expect([draft.pricing.factor, '', '1,000'].map(changesFor)).toEqual([
      { note: 'new' },
      { note: 'new', pricing: null },
      { note: 'new', pricing: { factor: 1000 } },
    ]);
  });

  test('keeps prices that it has no field for when others are changed, and takes the rule away when nothing is left', () => {
    const shown = { ...team, pricing };
    const draft = draftOfOwner(shown, 'team');
    const [first, second] = draft.pricing.models;
    if (first === undefined || second === undefined) throw new Error('The form has no rows.');
    const changed = { ...second, prices: { ...second.prices, output: ' 12.5', cacheRead: '$0.3' } };
    const read = readOwner({ ...draft, pricing: { factor: '', models: [changed] } });
    expect('value' in read && changesOfOwner(shown, read.value)).toEqual({
      pricing: {
        models: [{ model: 'gpt-*', price: { ...pricing.models[1]?.price, output: 12.5, cacheRead: 0.3 } }],
      },
    });
    const none = readOwner({ ...draft, pricing: { factor: ' ', models: [] } });
    expect('value' in none && changesOfOwner(shown, none.value)).toEqual({ pricing: null });
    const wrong = readOwner({
      ...draft,
      pricing: {
        factor: 'double',
        models: [first, { ...changed, prices: { ...changed.prices, input: '3,5' } }],
      },
    });
    expect('problems' in wrong && Object.keys(wrong.problems)).toEqual([
      'pricing.models.1.price.input',
      'pricing.factor',
    ]);
  });

  test('tells what somebody else has changed of a price rule by model, in words', () => {
    const [internal, gpt] = pricing.models;
    const after = {
      ...team,
      endUserBudget: { unit: 'token', period: 'day', amount: 5 },
      pricing: { models: [gpt, internal, { model: 'new', factor: 2 }] },
    };
    expect(differences({ ...team, pricing }, after)).toEqual([
      'Price of other models is now 1 × the cost',
      'Order of prices is now gpt-*, internal/*, new, other models',
      'End user budget is now 5 tokens per day',
      'Price of new is now 2 × the cost',
    ]);
    expect(differences(team, { ...team, pricing: { models: [gpt] } })).toEqual([
      'Price of gpt-* is now input $3, services (web-search $0.01), output $15, tiers (above 200000, input $6)',
      'Price of other models is now 1 × the cost',
    ]);
  });
});

test('what somebody else has changed of a field that is sent is told, also where its words are the same', () => {
  const row = { model: 'gpt-*', factor: 3 };
  const rules = { models: [{ model: 'gpt-*', factor: 1 }, row] };
  expect(differences({ pricing: rules }, { pricing: { models: [{ ...row, factor: 2 }, row] } })).toEqual([
    'Price of gpt-* is now 2 × the cost',
  ]);
  const budgets = [{ unit: 'token', period: 'day', amount: 5, spent: 1 }];
  const before = { models: ['a, b'], expiresAt: 1_000, budgets };
  const after = { models: ['a', 'b'], expiresAt: 1_001, budgets: [{ ...budgets[0], spent: 2 }] };
  expect(differences(before, after)).toEqual([]);
  expect(differences(before, after, ['budgets', 'models', 'name'])).toEqual(['Models is now a, b']);
  expect(differences(before, { ...after, name: 'c' }, ['expiresAt', 'name'])).toEqual([
    'Name is now c',
    expect.stringMatching(/^Expires at is now .*1970/),
  ]);
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

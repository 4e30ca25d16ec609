import { beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject, PriceRule, Usage } from 'sluice';
import type { ObjectCharge, ProviderObject } from '../../../core/model/provider-objects.ts';
import type { Format } from '../../../core/sdk/format.ts';
import { allFormats } from '../../../core/sdk/testing/formats.ts';
import { Bill, type Billing } from '../../../plugins/provider-objects/bill.ts';
import { ruleOf } from '../../../plugins/provider-objects/reserve.ts';
import type { CodecName } from '../../../plugins/provider-objects/batch-sorts.ts';

let formats: readonly Format[];
beforeAll(async () => {
  formats = await allFormats();
});

interface Setting {
  readonly models?: readonly string[] | string;
  readonly owner?: string;
  readonly codec?: CodecName;
  readonly share?: number;
  readonly pricing?: PriceRule;
  readonly charge?: Partial<ObjectCharge>;
  /** In place of the format that the codec names. */
  readonly format?: Format;
  /** Names of models at the provider, by their public names. */
  readonly there?: Readonly<Record<string, string>>;
}

/** Micro-dollars of a token, by model; a model that is not here has no price. */
const prices: Readonly<Record<string, number>> = { cheap: 1, dear: 10, odd: 0.3, served: 1 };
/** Micro-dollars that services cost on top in each answer, by model. */
const services: Readonly<Record<string, number>> = { served: 40 };
const priceQueries: unknown[] = [];
/** Usages that were priced as a whole. */
const priced: Usage[] = [];

/** A bill of a batch. */
function billOf({ models = ['cheap'], owner = 'key_1', share = 0.5, ...rest }: Setting = {}): Bill {
  const { codec = ['chat-completions', 'chat'], there = {}, charge = { id: 'batch_1' } } = rest;
  const object = {
    owner,
    kind: 'chat-completions/batches',
    id: 'b1',
    channel: 'a',
    createdAt: 1_000,
    known: { models },
    ...(charge === null ? {} : { charge }),
  } as unknown as ProviderObject;
  const tools = {
    format: (name: string) => rest.format ?? formats.find((one) => one.name === name),
    prices: {
      cost(model: string, usage: Usage, target?: unknown) {
        const { input, output } = usage;
        priceQueries.push([model, target]);
        priced.push(usage);
        const price = prices[model];
        return price === undefined
          ? undefined
          : {
              microDollars: (input + output) * price + (services[model] ?? 0),
              price: { model, input: price },
              ...(services[model] === undefined ? {} : { services: services[model] }),
            };
      },
    },
  } as unknown as Billing['tools'];
  const channel = {
    id: 'a',
    upstreamModel: (model: string) => there[model],
  } as unknown as Billing['channel'];
  return new Bill({ object, channel, codec, share, pricing: rest.pricing, tools });
}

const used = (input: number, output: number, model = 'cheap', more: JsonObject = {}) => ({
  reply: {
    object: 'chat.completion',
    model,
    choices: [],
    usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output, ...more },
  } as JsonObject,
  model,
});

/** Model, tokens and cost of each record. */
const rowsOf = (bill: Bill): unknown[] =>
  bill
    .settlements(2_000)
    .map(({ charged, record }) => [
      record?.model,
      charged.tokens,
      charged.microDollars,
      record?.microDollars,
    ]);

test('the price rule that is kept with a batch is about its models', () => {
  const models = [
    { model: 'ch*', factor: 2 },
    { model: 'other', factor: 3 },
  ];
  expect(ruleOf({ factor: 4, models }, ['dear', 'cheap'])).toEqual({ factor: 4, models: [models[0]] });
  expect(ruleOf({ factor: 4, models }, [])).toEqual({ factor: 4, models });
  expect(ruleOf(undefined, ['cheap'])).toEqual({ models: [] });
});

describe('the bill of a batch', () => {
  test('is one record with the sum of all answers, at the share of the batch', () => {
    const bill = billOf({ charge: { id: 'batch_1', reservation: 'r1' }, there: { cheap: 'cheap-there' } });
    priceQueries.length = 0;
    bill.add(used(10, 5, 'cheap-there'));
    bill.add(used(20, 4, 'whatever'));
    expect(priceQueries[0]).toEqual(['cheap', { channel: 'a', model: 'cheap-there' }]);
    const [one, ...others] = bill.settlements(2_500);
    expect(others).toEqual([]);
    expect(one).toEqual({
      keyId: 'key_1',
      reservation: 'r1',
      charged: { microDollars: 20, tokens: 39 },
      isPriced: true,
      record: {
        id: 'batch_1',
        at: 2_500,
        keyId: 'key_1',
        ip: '',
        operation: 'batch',
        format: 'chat-completions',
        upstreamFormat: 'chat-completions',
        model: 'cheap',
        upstreamModel: 'cheap-there',
        channel: 'a',
        stream: false,
        status: 200,
        ended: 'complete',
        reason: 'The answers of batch b1.',
        input: 30,
        output: 9,
        cacheRead: 0,
        cacheWrite: 0,
        reasoning: 0,
        microDollars: 20,
        price: { model: 'cheap', input: 1, batchShare: 0.5 },
        ms: 1_500,
      },
    });
    expect(bill.settlements(500)[0]?.record?.ms).toBe(0);
  });

  test.each([
    ['a factor', { factor: 1.5 }, 30],
    ['a row of prices', { factor: 3, models: [{ model: 'ch*', price: { input: 2, output: 4 } }] }, 48],
    ['nothing', { models: [{ model: 'cheap', factor: 0 }] }, 0],
  ] as const)('is charged by the price rule of the owners of the key: %s', (_name, pricing, charged) => {
    const bill = billOf({ pricing });
    bill.add(used(10, 5));
    bill.add(used(20, 4));
    expect(bill.settlements(2_500)).toMatchObject([
      {
        charged: { microDollars: charged, tokens: 39 },
        isPriced: true,
        record: { microDollars: 20, chargedMicroDollars: charged },
      },
    ]);
  });

  test('gives an answer of an unknown model to the one for which owners are charged most', () => {
    const pricing = { models: [{ model: 'cheap', price: { input: 50, output: 50 } }] };
    const bill = billOf({ models: ['dear', 'cheap'], pricing });
    bill.add(used(10, 0, 'of another name'));
    expect(rowsOf(bill)).toEqual([['cheap', 10, 250, 5]]);
  });

  test('has a record for each model, with ids of their own', () => {
    const bill = billOf({ models: ['cheap', 'dear'] });
    bill.add(used(10, 0, 'dear'));
    bill.add(used(10, 0, 'cheap'));
    bill.add(used(5, 0, 'dear'));
    expect(rowsOf(bill)).toEqual([
      ['dear', 15, 75, 75],
      ['cheap', 10, 5, 5],
    ]);
    expect(bill.settlements(1).map(({ record }) => record?.id)).toEqual(['batch_1', 'batch_1_2']);
  });

  test('rounds what costs a part of a micro-dollar up, and not what only floating point adds', () => {
    const bill = billOf({ models: ['odd'], share: 0.5 });
    bill.add(used(1, 0, 'odd'));
    expect(rowsOf(bill)).toEqual([['odd', 1, 1, 1]]);
    const exact = billOf({ models: ['cheap'], share: 0.1 });
    exact.add(used(30, 0));
    expect(rowsOf(exact)).toEqual([['cheap', 30, 3, 3]]);
  });

  test('of a model without a price charges tokens alone, and records no cost', () => {
    const bill = billOf({ models: ['free'] });
    bill.add(used(10, 5, 'free'));
    bill.add(used(1, 1, 'free'));
    expect(rowsOf(bill)).toEqual([['free', 17, 0, undefined]]);
    expect(bill.settlements(1)[0]?.record).not.toHaveProperty('price');
  });

  test('of nobody’s batch is recorded without a key, and under the id of the batch where it has no other', () => {
    const bill = billOf({ owner: '', charge: null as never });
    bill.add(used(1, 1));
    const [one] = bill.settlements(1);
    expect([one?.record?.id, one?.record?.upstreamModel]).toEqual(['b1', 'cheap']);
    expect(one).not.toHaveProperty('keyId');
    expect(one?.record).not.toHaveProperty('keyId');
    expect(one).not.toHaveProperty('reservation');
  });

  test('counts what a provider gets wrong within bounds, and cached and reasoning tokens as such', () => {
    const bill = billOf();
    bill.add(used(1e15, 2.5));
    bill.add(
      used(100, 50, 'cheap', {
        prompt_tokens_details: { cached_tokens: 40 },
        completion_tokens_details: { reasoning_tokens: 20 },
      }),
    );
    const [one] = bill.settlements(1);
    expect(one?.record).toMatchObject({ input: 1e9 + 100, cacheRead: 40, reasoning: 20 });
    expect(one?.record?.output).toBeLessThanOrEqual(53);
    const wrong = billOf();
    wrong.add(used(-5, 10));
    expect(wrong.settlements(1)[0]?.record?.input ?? 0).toBeGreaterThanOrEqual(0);
  });

  test('counts the answers that do not tell what they used, and charges the others', () => {
    const bill = billOf();
    bill.add({ reply: { choices: [] }, model: 'cheap' });
    bill.add({ reply: {}, model: undefined });
    expect([bill.withoutUsage, bill.settlements(1)]).toEqual([2, []]);
    bill.add(used(1, 1));
    expect([bill.withoutUsage, rowsOf(bill)]).toEqual([2, [['cheap', 2, 1, 1]]]);
    const unknown = billOf({ codec: ['nothing', 'chat'] });
    unknown.add(used(1, 1));
    expect(unknown.withoutUsage).toBe(1);
  });

  test('reads what an answer that is no chat has used', () => {
    const bill = billOf({ codec: ['embeddings', 'embed'] });
    bill.add({
      reply: {
        object: 'list',
        model: 'cheap',
        data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
        usage: { prompt_tokens: 8, total_tokens: 8 },
      },
      model: 'cheap',
    });
    expect(rowsOf(bill)).toEqual([['cheap', 8, 4, 4]]);
    const images = billOf({ codec: ['images', 'generate-image'] });
    images.add({
      reply: { created: 1, data: [{ url: 'https://x' }, { url: 'https://y' }] },
      model: undefined,
    });
    expect(images.withoutUsage + images.settlements(1).length).toBe(1);
  });
});

test('what an answer has used is found wherever it stands in it, the last of several', () => {
  const decoding = (decodeWhole: () => unknown): Format =>
    ({ codecs: { chat: { usageTap: () => ({ read: () => undefined }), decodeWhole } } }) as unknown as Format;
  const usage = (input: number) => ({
    type: 'usage',
    usage: {
      input,
      output: 0,
      cacheRead: 0,
      cacheWrite: 0,
      reasoning: 0,
      cacheWriteLong: 2,
      units: { images: 3 },
    },
  });
  const bill = billOf({ format: decoding(() => [{ type: 'head' }, usage(5), usage(7), { type: 'end' }]) });
  bill.add({ reply: {}, model: undefined });
  expect(rowsOf(bill)).toEqual([['cheap', 7, 4, 4]]);
  expect(bill.settlements(1)[0]?.record?.units).toEqual({ images: 3 });
  const silent = billOf({ format: decoding(() => [{ type: 'head' }, { type: 'end' }]) });
  silent.add({ reply: {}, model: undefined });
  const failing = billOf({
    format: decoding(() => {
      throw new Error('no reply');
    }),
  });
  failing.add({ reply: {}, model: undefined });
  expect([silent.withoutUsage, failing.withoutUsage]).toEqual([1, 1]);
});

test('services cost what they cost outside of a batch', () => {
  const bill = billOf({ models: ['served'], share: 0.5 });
  bill.add(used(60, 40, 'served'));
  expect(rowsOf(bill)).toEqual([['served', 100, 90, 90]]);
  bill.add(used(60, 40, 'served'));
  expect(rowsOf(bill)).toEqual([['served', 200, 180, 180]]);
});

test('further models and kinds of tokens of an answer are priced with it, within the same bounds', () => {
  const counts = { cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  const usage = {
    ...counts,
    input: 10,
    output: 5,
    cacheWriteLong: -1,
    units: { images: 2 },
    byModality: { input: { audio: 3 } },
    otherModels: [{ model: 'dear', usage: { ...counts, input: 1e12, output: -3 } }],
  };
  const format = { codecs: { chat: { usageTap: () => ({ read: () => usage }) } } } as unknown as Format;
  priced.length = 0;
  billOf({ format }).add(used(1, 1));
  expect(priced).toEqual([
    {
      ...counts,
      input: 10,
      output: 5,
      cacheWriteLong: 0,
      units: { images: 2 },
      byModality: { input: { audio: 3 } },
      otherModels: [{ model: 'dear', usage: { ...counts, input: 1e9, output: 0 } }],
    },
  ]);
});

describe('the model of an answer', () => {
  test('is the only one of the batch, whatever the answer says', () => {
    const bill = billOf({ models: ['dear'] });
    bill.add(used(1, 0, 'cheap'));
    bill.add({ ...used(1, 0), model: undefined });
    expect(rowsOf(bill)).toEqual([['dear', 2, 10, 10]]);
  });

  test('is the one whose name at the provider it begins with, the longest first', () => {
    const bill = billOf({
      models: ['cheap', 'dear', 'odd'],
      there: { cheap: 'gpt', dear: 'gpt-large' },
      share: 1,
    });
    bill.add(used(1, 0, 'gpt-2026-01-01'));
    bill.add(used(1, 0, 'gpt-large-2026-01-01'));
    bill.add(used(1, 0, 'gpt-large'));
    bill.add(used(1, 0, 'gpt'));
    bill.add(used(10, 0, 'odd'));
    expect(rowsOf(bill)).toEqual([
      ['cheap', 2, 2, 2],
      ['dear', 2, 20, 20],
      ['odd', 10, 3, 3],
    ]);
  });

  test('that is none of the batch’s is the one that costs most', () => {
    for (const model of ['gptx', 'strange', undefined]) {
      const bill = billOf({ models: ['cheap', 'free', 'dear'], share: 1, there: { cheap: 'gpt' } });
      bill.add({ ...used(1, 0), model });
      expect([model, rowsOf(bill)]).toEqual([model, [['dear', 1, 10, 10]]]);
    }
  });

  test('is what the answer says where the batch names none', () => {
    for (const models of [[], 'nonsense']) {
      const bill = billOf({ models, share: 1 });
      bill.add(used(1, 0, 'cheap'));
      bill.add({ ...used(1, 0), model: undefined });
      expect(rowsOf(bill)).toEqual([
        ['cheap', 1, 1, 1],
        ['', 1, 0, undefined],
      ]);
    }
  });
});

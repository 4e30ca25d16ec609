import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { Keyv } from 'keyv';
import { describe, expect, test } from 'vitest';
import { rowSchema } from '../../../core/settings/prices.ts';
import { importKnownModels, writeKnownModels } from '../../../core/models/import.ts';
import vertex from '../../../channels/vertex/index.ts';
import watsonx from '../../../channels/watsonx/index.ts';
import { KnownModels, shippedModels } from '../../../core/models/catalogue.ts';
import { type KnownModel } from '../../../core/sdk/channel.ts';
import type { Usage } from '../../../core/model/usage.ts';
import { createPrices } from '../../../core/money/prices/index.ts';
import { readConfig } from '../../../core/config/config.ts';
import { createLog } from '../../../core/log.ts';
import { makeChannel } from '../../../core/config/configured-channel.ts';
import { ModelDiscovery } from '../../../core/routing/model-discovery.ts';
import { createCatalog, type Catalog } from '../../../core/routing/catalog.ts';
import type { ChannelEntry } from '../../../core/sdk/define.ts';
import anthropic from '../../../channels/anthropic.ts';
import cohere from '../../../channels/cohere/index.ts';
import dashscope from '../../../channels/dashscope/index.ts';
import deepseek from '../../../channels/deepseek.ts';
import demo from '../../../channels/demo/index.ts';
import gemini from '../../../channels/gemini.ts';
import groq from '../../../channels/groq.ts';
import jina from '../../../channels/jina.ts';
import mistral from '../../../channels/mistral/index.ts';
import ollama from '../../../channels/ollama/index.ts';
import openai from '../../../channels/openai.ts';
import openrouter from '../../../channels/openrouter.ts';
import voyage from '../../../channels/voyage/index.ts';
import { operatorFolder } from '../../support/operator-folder.ts';
import { sluice } from '../cli/_process.ts';

const key = 'k';

function catalogOf(...entries: readonly ChannelEntry[]): Catalog {
  const { settings } = readConfig({}, '/x/gateway.config.ts');
  const problems: string[] = [];
  const channels = entries.map((entry) =>
    makeChannel(entry, {
      settings,
      where: 'here',
      problems,
      warnings: [],
      log: createLog('silent'),
      format: () => undefined,
      discovery: (cacheKey, listModels, log) =>
        new ModelDiscovery({ cacheKey, listModels, log, kept: new Keyv() }),
      onClose: () => {},
    }),
  );
  expect(problems).toEqual([]);
  return createCatalog(
    channels.filter((channel) => channel !== undefined),
    0,
  );
}

const everyone = catalogOf(
  openai({ key }),
  anthropic({ key }),
  gemini({ key }),
  groq({ key }),
  deepseek({ key }),
  mistral({ key }),
  cohere({ key }),
  jina({ key }),
  voyage({ key }),
  ollama(),
  demo(),
  openrouter({ key }),
);

function used(usage: Partial<Usage>): Usage {
  return { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0, ...usage };
}

const million = 1_000_000;

describe('what known models cost without a word in the config', () => {
  const prices = createPrices({}, {}, everyone);
  const { date } = shippedModels();

  // Micro-dollars, reckoned by hand from the price pages' figures: dollars per million tokens in the comments.
  test.each([
    // 2.50, 0.25 cached, 15
    ['openai', 'gpt-5.4', { input: 200_000, cacheRead: 100_000, output: 1000 }, 250_000 + 25_000 + 15_000],
    // above 272k: 5, 0.50 cached, 22.50
    ['openai', 'gpt-5.4', { input: 300_000, cacheRead: 100_000, output: 1000 }, 1_000_000 + 50_000 + 22_500],
    // 0.15, 0.60
    ['openai', 'gpt-4o-mini', { input: 10_000, output: 1000 }, 1500 + 600],
    // 0.02
    ['openai', 'text-embedding-3-small', { input: million }, 20_000],
    // 0.006 dollars a minute
    ['openai', 'whisper-1', { units: { seconds: 60 } }, 6000],
    // 15 dollars for a million characters
    ['openai', 'tts-1', { units: { characters: 1000 } }, 15_000],
    // sound: 32 in, 64 out
    ['openai', 'gpt-realtime', { input: 1000, output: 1000 }, 32_000 + 64_000],
    // pictures: 32 out, 8 in
    ['openai', 'gpt-image-1.5', { input: 100, output: 1000, units: { images: 1 } }, 800 + 32_000],
    // 5, 25; writes 6.25 for five minutes and 10 for an hour; reads 0.50
    [
      'anthropic',
      'claude-opus-4-8',
      { input: 100_000, cacheRead: 50_000, cacheWrite: 30_000, cacheWriteLong: 10_000, output: 1000 },
      100_000 + 25_000 + 125_000 + 100_000 + 25_000,
    ],
    // 1, 5
    ['anthropic', 'claude-haiku-4-5', { input: 1000, output: 1000, reasoning: 400 }, 1000 + 5000],
    // 1.25, 10; above 200k: 2.50, 15
    ['gemini', 'gemini-2.5-pro', { input: 200_000, output: 1000 }, 250_000 + 10_000],
    ['gemini', 'gemini-2.5-pro', { input: 200_001, output: 1000 }, 500_003 + 15_000],
    // 0.30, 2.50
    ['gemini', 'gemini-2.5-flash', { input: 10_000, output: 1000, reasoning: 500 }, 3000 + 2500],
    // a film of eight seconds, at 0.40
    ['gemini', 'veo-3.1-generate-001', { units: { seconds: 8 } }, 3_200_000],
    // a picture, at 0.04
    ['gemini', 'imagen-3.0-generate-001', { units: { images: 2 } }, 80_000],
    // 0.15, 0.60; the name has a slash of its own
    ['groq', 'openai/gpt-oss-120b', { input: million, output: million }, 150_000 + 600_000],
    // 0.28, 0.028 cached, 0.42
    ['deepseek', 'deepseek-chat', { input: million, cacheRead: million, output: million }, 28_000 + 420_000],
    // 0.50, 1.50
    ['mistral', 'mistral-large-2512', { input: million, output: million }, 500_000 + 1_500_000],
    // two dollars for a thousand searches
    ['cohere', 'rerank-v3.5', {}, 2000],
    // 2.50, 10
    ['cohere', 'command-a-03-2025', { input: 1000, output: 1000 }, 2500 + 10_000],
    // 0.05
    ['jina', 'jina-reranker-v2-base-multilingual', { input: million }, 50_000],
    // 0.06
    ['voyage', 'voyage-3.5', { input: million }, 60_000],
    // this machine's own
    ['ollama', 'llama3.3', { input: million, output: million }, 0],
    // 0.10, 0.40
    ['demo', 'demo', { input: million, output: million }, 100_000 + 400_000],
  ] as const)('%s: %s for %j', (channel, model, usage, microDollars) => {
    expect(prices.cost(model, used(usage), { channel, model })?.microDollars).toBe(microDollars);
  });

  test('is told with where it comes from', () => {
    expect(
      prices.cost('voyage-3.5', used({ input: 1 }), { channel: 'voyage', model: 'voyage-3.5' })?.price,
    ).toEqual({ model: 'voyage-3.5', source: `list of ${date}`, input: 0.06, output: 0 });
    expect(prices.row('demo')).toMatchObject({ model: '*', source: 'channel kind demo' });
  });

  test('is found under the names that a provider has for the same', () => {
    expect(prices.row('x', { channel: 'gemini', model: 'models/gemini-2.5-pro' })).toMatchObject({
      input: 1.25,
    });
    expect(prices.row('x', { channel: 'gemini', model: 'toString' })).toBeUndefined();
    expect(prices.row('x', { channel: 'nobody', model: 'gemini-2.5-pro' })).toBeUndefined();
    expect(prices.row('vendor/unknown')).toBeUndefined();
  });

  test('is not what the config says: its row wins by the public name, exact or by pattern', () => {
    const own = createPrices(
      { 'gpt-*': { input: 7, output: 7 }, 'gpt-5.4': { input: 9, output: 9 } },
      {},
      everyone,
    );
    const server = (model: string) => ({ channel: 'openai', model });
    expect(own.cost('gpt-5.4', used({ input: million }), server('gpt-5.4'))?.microDollars).toBe(9 * million);
    expect(own.cost('gpt-5.4', used({ input: million }), server('gpt-5.4'))?.price).toEqual({
      model: 'gpt-5.4',
      input: 9,
      output: 9,
    });
    expect(own.cost('gpt-5', used({ input: million }), server('gpt-5'))?.microDollars).toBe(7 * million);
    expect(own.cost('o3', used({ input: million }), server('o3'))?.microDollars).toBe(2 * million);
    expect(own.most('gpt-5', million, 0)).toBe(7 * million);
  });
});

describe('a model that several channels serve at different prices', () => {
  const two = catalogOf(
    openai({ id: 'cheap', key, models: { fast: 'gpt-5-nano' } }),
    anthropic({ id: 'dear', key, models: { fast: 'claude-haiku-4-5' }, priority: -1 }),
  );
  const prices = createPrices({}, {}, two);

  test('is charged at the price of the one that answered', () => {
    const cost = (channel: string, model: string): number | undefined =>
      prices.cost('fast', used({ input: million }), { channel, model })?.microDollars;
    expect(cost('cheap', 'gpt-5-nano')).toBe(50_000);
    expect(cost('dear', 'claude-haiku-4-5')).toBe(million);
    expect(prices.cost('fast', used({ input: million }))?.microDollars).toBe(million);
  });

  test('is reserved at the most that any of them may charge', () => {
    expect(prices.most('fast', million, 0)).toBe(2 * million);
    expect(prices.most('fast', 0, million)).toBe(5 * million);
  });

  test('is charged as at the dearest by one that has a pattern for it and knows nothing of it', () => {
    const some = createPrices({}, {}, catalogOf(openai({ key }), groq({ key }), openrouter({ key })));
    const usage = used({ units: { seconds: 60 } });
    expect(some.most('whisper-1', 0, 0, { seconds: 60 })).toBe(6000);
    expect(some.cost('whisper-1', usage, { channel: 'groq', model: 'whisper-1' })?.microDollars).toBe(6000);
    expect(some.most('openai/gpt-oss-120b', million, 0)).toBe(150_000);
    const elsewhere = { channel: 'openrouter', model: 'openai/gpt-oss-120b' };
    expect(some.cost('openai/gpt-oss-120b', used({ input: million }), elsewhere)?.microDollars).toBe(150_000);
    expect(some.unpriced('whisper-1')).toBe(false);
    expect(some.unpriced('vendor/unknown')).toBe(true);
  });

  test('has no price as long as one that the config names for it has none: that one would be free', () => {
    const missing: string[] = [];
    const some = createPrices(
      {},
      { unknown: (model) => missing.push(model) },
      catalogOf(
        openai({ key, models: { fast: 'gpt-5-nano' } }),
        openrouter({ key, models: { fast: 'openai/gpt-5-nano' } }),
      ),
    );
    expect(some.most('fast', 1, 1)).toBeUndefined();
    const elsewhere = { channel: 'openrouter', model: 'openai/gpt-5-nano' };
    expect(some.cost('fast', used({ input: 1 }), elsewhere)).toBeUndefined();
    expect(missing).toEqual(['fast']);
    expect(some.row('fast')).toMatchObject({ model: 'gpt-5-nano' });
  });
});

test('no call costs more than what was reserved for it, whichever channel answers', () => {
  const names = Object.keys(shippedModels().models['openai'] ?? {});
  const count = fc.nat({ max: 400_000 });
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 3 }),
      fc.record({ input: count, output: count, cacheRead: count, cacheWrite: count, reasoning: count }),
      (models, { input, output, cacheRead, cacheWrite, reasoning }) => {
        const catalog = catalogOf(
          ...models.map((model, index) => openai({ id: `c${index}`, key, models: { m: model } })),
        );
        const prices = createPrices({}, {}, catalog);
        const most = prices.most('m', input, output);
        expect(most === undefined).toBe(prices.unpriced('m'));
        const usage: Usage = {
          input,
          output,
          cacheRead: Math.min(cacheRead, input),
          cacheWrite: Math.min(cacheWrite, input - Math.min(cacheRead, input)),
          reasoning: Math.min(reasoning, output),
        };
        const costs = models.map(
          (model, index) => prices.cost('m', usage, { channel: `c${index}`, model })?.microDollars,
        );
        if (most === undefined) expect(costs).toContain(undefined);
        else for (const cost of costs) expect(cost).toBeLessThanOrEqual(most);
        const known = costs.filter((cost) => cost !== undefined);
        expect(prices.cost('m', usage)?.microDollars ?? -1).toBe(Math.max(-1, ...known));
      },
    ),
  );
});

describe('the limits of a model', () => {
  const of = (entry: ChannelEntry, model: string) => {
    const { inputLimit, outputLimit } = catalogOf(entry).targets(model)[0]?.traits ?? {};
    return { inputLimit, outputLimit };
  };

  // https://cloud.google.com/gemini-enterprise-agent-platform/generative-ai/pricing; https://www.ibm.com/products/watsonx-ai/pricing
  test.each([
    [vertex, 'deepseek-ai/deepseek-v3.1-maas', { input: 0.6 }],
    [vertex, 'zai-org/glm-5-maas', { input: 1 }],
    [vertex, 'openai/gpt-oss-120b-maas', { input: 0.09 }],
    [watsonx, 'ibm/granite-3-8b-instruct', { input: 0.2, output: 0.2 }],
  ])('prices models of other makers: %#, %s', ({ spec }, name, price) => {
    const known = (spec.catalogue ?? []).flatMap((list) => shippedModels().models[list]?.[name] ?? []);
    expect(known[0]?.price).toMatchObject(price);
  });

  test('are those of the config, else of the list, else of the channel’s kind', () => {
    const name = 'deepseek-v4-pro';
    const known = shippedModels().models['dashscope']?.[name];
    const listed = { inputLimit: known?.inputLimit, outputLimit: known?.outputLimit };
    expect(listed.outputLimit).toBeLessThan(listed.inputLimit ?? 0);
    expect(of(dashscope({ key, models: [name] }), name)).toEqual(listed);
    expect(of(dashscope({ key, models: [name], traits: { [name]: { outputLimit: 5 } } }), name)).toEqual({
      ...listed,
      outputLimit: 5,
    });
    // DeepSeek's own kind says less for a model of which it knows nothing but the name.
    const row = shippedModels().models['deepseek']?.[name];
    expect(of(deepseek({ key, models: [name] }), name)).toEqual({
      inputLimit: row?.inputLimit,
      outputLimit: row?.outputLimit,
    });
  });

  test('an output limit as long as the context is none: nobody knew it', () => {
    expect(of(mistral({ key }), 'mistral-small-latest')).toEqual({
      inputLimit: 262_144,
      outputLimit: undefined,
    });
  });

  test('a model that nobody knows has none', () => {
    expect(of(mistral({ key }), 'mistral-mine')).toEqual({ inputLimit: undefined, outputLimit: undefined });
  });
});

describe('the list that comes along', () => {
  const { source, date, licence, models } = shippedModels();

  test('says where it comes from, of which day it is, and under which terms', () => {
    expect(source).toMatch(/\w/);
    expect(date).toMatch(/^20\d\d-\d\d-\d\d$/);
    expect(licence).toContain('MIT License');
    const page = readFileSync(new URL('../../../docs/guides/keys-and-budgets.md', import.meta.url), 'utf8');
    expect(page).toContain(date);
  });

  test('has rows that the config would take, and nothing that is free without being said to be', () => {
    const all = Object.values(models).flatMap(Object.entries<KnownModel>);
    const priced = all.filter(([, { price }]) => price !== undefined);
    expect(priced.length).toBeGreaterThan(300);
    const unsound = priced.filter(([, { price }]) => !rowSchema.safeParse(price).success);
    expect(unsound).toEqual([]);
    const free = priced.filter(
      ([, { price, operation }]) =>
        operation !== 'moderate' && !Object.values(price ?? {}).some((value) => value !== 0),
    );
    expect(free).toEqual([]);
  });

  test.each([
    'openai',
    'azure',
    'anthropic',
    'gemini',
    'groq',
    'deepseek',
    'mistral',
    'cohere',
    'jina_ai',
    'voyage',
  ])('knows models of %s', (name) => {
    expect(Object.keys(models[name] ?? {}).length).toBeGreaterThan(0);
  });

  test('is small, and in the order of its names', () => {
    const text = readFileSync(new URL('../../../core/models/catalogue.json', import.meta.url), 'utf8');
    expect(text.length).toBeLessThan(650_000);
    expect(writeKnownModels(shippedModels())).toBe(text);
    for (const names of [models, ...Object.values(models)].map(Object.keys))
      expect(names).toEqual(names.toSorted((one, other) => (one < other ? -1 : 1)));
  });
});

/** Entries as the source has them. */
const list = {
  sample_spec: { mode: 'chat', litellm_provider: 'one' },
  'one/b': { mode: 'chat', litellm_provider: 'one', input_cost_per_token: 2e-6, output_cost_per_token: 4e-6 },
  b: { mode: 'chat', litellm_provider: 'one', input_cost_per_token: 0, output_cost_per_token: 0 },
  a: {
    mode: 'responses',
    litellm_provider: 'one',
    input_cost_per_token: 1e-6,
    output_cost_per_token: 2e-6,
    max_input_tokens: 1000,
    max_output_tokens: 100,
    deprecation_date: '2026-01-01',
  },
  'one/vector': {
    mode: 'embedding',
    litellm_provider: 'one',
    input_cost_per_token: 1e-7,
    max_output_tokens: 5,
    deprecation_date: 'some day',
  },
  'one/free': { mode: 'chat', litellm_provider: 'one', input_cost_per_token: 0, output_cost_per_token: 0 },
  'one/judge': {
    mode: 'moderation',
    litellm_provider: 'one',
    input_cost_per_token: 0,
    output_cost_per_token: 0,
  },
  'one/talker': {
    mode: 'realtime',
    litellm_provider: 'one',
    input_cost_per_token: 4e-6,
    input_cost_per_audio_token: 3.2e-5,
    cache_read_input_token_cost: 4e-7,
    cache_read_input_audio_token_cost: 5e-7,
    output_cost_per_token: 1.6e-5,
    output_cost_per_audio_token: 6.4e-5,
    input_cost_per_second: 1e-4,
  },
  'one/listens-a-little': {
    mode: 'chat',
    litellm_provider: 'one',
    input_cost_per_token: 1e-6,
    input_cost_per_audio_token: 9e-6,
    output_cost_per_token: 2e-6,
  },
  'one/painter': {
    mode: 'image_generation',
    litellm_provider: 'one',
    input_cost_per_token: 1e-6,
    output_cost_per_image: 0.04,
    output_cost_per_image_token: 3e-5,
    output_cost_per_token: 2e-6,
  },
  lost: { mode: 'chat', litellm_provider: 'one', input_cost_per_token: 1e-6, output_cost_per_token: 1e-6 },
  'low/1024-x-1024/one': { mode: 'image_generation', litellm_provider: 'one', input_cost_per_image: 0.01 },
  'one/pages': { mode: 'ocr', litellm_provider: 'one', ocr_cost_per_page: 0.01 },
  'two/x': { mode: 'chat', litellm_provider: 'two' },
  broken: 3,
};
const options = {
  source: 'a test',
  date: '2026-06-01',
  licence: 'none',
  providers: ['one'],
  without: (name: string) => name.startsWith('lost'),
};

describe('a list made from a price list', () => {
  const known = importKnownModels(list, options);

  test('has what is wanted of each model, and nothing that is not served here', () => {
    expect(known.models).toEqual({
      one: {
        a: { inputLimit: 1000, outputLimit: 100, retired: true, price: { input: 1, output: 2 } },
        b: { price: { input: 2, output: 4 } },
        free: {},
        pages: { operation: 'ocr', price: { perPage: 0.01 } },
        judge: { operation: 'moderate', price: { input: 0, output: 0 } },
        'listens-a-little': { price: { input: 1, output: 2, inputAudio: 9 } },
        one: { operation: 'generate-image', price: { perImageAt: { 'low/1024x1024': 0.01 } } },
        painter: { operation: 'generate-image', price: { input: 1, output: 30, outputText: 2 } },
        talker: {
          operation: 'realtime',
          price: { input: 32, inputText: 4, cacheRead: 0.5, cacheReadText: 0.4, output: 64, outputText: 16 },
        },
        vector: { operation: 'embed', price: { input: 0.1, output: 0 } },
      },
    });
  });

  test('has the traits that entries state: efforts, thinking, forced tools, endpoints and settings', () => {
    const entry = { mode: 'chat', litellm_provider: 'openai', supports_reasoning: true };
    const entries = {
      plain: entry,
      gpt: {
        ...entry,
        supports_none_reasoning_effort: true,
        supports_minimal_reasoning_effort: false,
        supports_xhigh_reasoning_effort: true,
        supports_prompt_cache_breakpoint: true,
      },
      pro: {
        ...entry,
        supports_none_reasoning_effort: false,
        supports_low_reasoning_effort: false,
        supported_endpoints: ['/v1/batch', '/v1/responses'],
      },
      levels: { ...entry, reasoning_effort_levels: ['low', 'max'] },
      switched: { ...entry, supports_adaptive_thinking: true, supports_max_reasoning_effort: true },
      always: {
        ...entry,
        litellm_provider: 'one',
        supports_adaptive_thinking: true,
        supports_max_reasoning_effort: true,
        supports_forced_tool_use: false,
        supports_mid_conversation_system: true,
        supports_prompt_cache_breakpoint: true,
        supports_sampling_params: false,
        thinking_always_on: true,
      },
      vector: { ...entry, mode: 'embedding', supports_sampling_params: false },
    };
    const { models } = importKnownModels(entries, { ...options, providers: ['openai', 'one'] });
    const traits = Object.entries({ ...models['openai'], ...models['one'] }).map(
      ([name, model]) => [name, model.traits] as const,
    );
    expect(Object.fromEntries(traits)).toEqual({
      gpt: { efforts: ['none', 'low', 'medium', 'high', 'xhigh'], cacheMark: 'prompt_cache_breakpoint' },
      levels: { efforts: ['low', 'max'] },
      plain: undefined,
      pro: { formats: ['responses'], efforts: ['medium', 'high'] },
      switched: { efforts: ['none', 'low', 'medium', 'high', 'max'] },
      vector: undefined,
      always: {
        efforts: ['low', 'medium', 'high', 'max'],
        thinksByDefault: true,
        stopsThinking: false,
        forcedTools: 'never',
        midSystem: true,
        cacheMark: 'prompt_cache_breakpoint',
        refuses: ['temperature', 'topP', 'topK'],
      },
    });
  });

  test('calls models as their provider does, also where it is told apart by what they are for', () => {
    const entry = { mode: 'chat', input_cost_per_token: 1e-6, output_cost_per_token: 2e-6 };
    const families = {
      'one_ai/x': { ...entry, litellm_provider: 'one_ai-chat_models' },
      'one_ai/maker/y': { ...entry, litellm_provider: 'one_ai-chat_models' },
    };
    const { models } = importKnownModels(families, { ...options, providers: ['one_ai-chat_models'] });
    expect(Object.keys(models['one_ai-chat_models'] ?? {})).toEqual(['maker/y', 'x']);
  });

  test('is the same text whatever the order of the entries, and reads back as what it was', () => {
    const text = writeKnownModels(known);
    const turned = Object.fromEntries(Object.entries(list).toReversed());
    expect(writeKnownModels(importKnownModels(turned, options))).toBe(text);
    expect(JSON.parse(text)).toEqual(known);
  });

  test('is made of whatever stands in the entries, and has no row that the config would not take', () => {
    const member = fc.constantFrom(
      'input_cost_per_token',
      'output_cost_per_token',
      'input_cost_per_token_above_200k_tokens',
      'output_cost_per_image_token',
      'cache_read_input_audio_token_cost',
      'input_cost_per_second',
      'output_cost_per_image',
      'tiered_pricing',
      'max_input_tokens',
      'deprecation_date',
      'mode',
    );
    const value = fc.oneof(
      fc.jsonValue(),
      fc.double({ min: -1, max: 2 }),
      fc.constantFrom('chat', 'realtime', 'image_generation', '2020-01-01'),
    );
    const entry = fc.dictionary(member, value).map((some) => ({ ...some, litellm_provider: 'one' }));
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.oneof(entry, fc.jsonValue())), (entries) => {
        const { models } = importKnownModels(entries, options);
        for (const { price } of Object.values(models['one'] ?? {}))
          if (price !== undefined) expect(rowSchema.safeParse(price).success).toBe(true);
        expect(JSON.parse(writeKnownModels(importKnownModels(entries, options)))).toMatchObject({ models });
      }),
    );
  });

  test('is asked by provider, name and what is served: nobody knows a stranger', () => {
    const some = new KnownModels(['nobody', 'one'], known);
    expect(some.find('b')?.price).toEqual({ input: 2, output: 4 });
    expect(some.find('constructor')).toBeUndefined();
    expect(some.names({ chat: ['x'], embed: ['x'] })).toEqual(['b', 'free', 'listens-a-little', 'vector']);
    expect(new KnownModels(['toString'], known).names({ chat: [] })).toEqual([]);
    expect(new KnownModels([], known).find('b')).toBeUndefined();
  });

  test('is made by the command, for the providers that the channel kinds name', async () => {
    const own = { 'voyage/v-1': { ...list['one/vector'], litellm_provider: 'voyage' }, ...list };
    const folder = operatorFolder({ 'list.json': JSON.stringify(own), terms: 'Take it.\n' });
    const at = (name: string): string => join(folder, name);
    const sourceOptions = ['--source', 'a test', '--date', '2026-06-01', '--licence', at('terms')];
    const run = (...args: string[]) => sluice(['models', 'import', at('list.json'), ...args]);
    expect(await run(...sourceOptions, '--out', at('known.json'))).toMatchObject({
      code: 0,
      stderr: 'Imported 1 models of 1 providers.\n',
    });
    expect(JSON.parse(readFileSync(at('known.json'), 'utf8'))).toEqual({
      source: 'a test',
      date: '2026-06-01',
      licence: 'Take it.',
      models: { voyage: { 'v-1': { operation: 'embed', price: { input: 0.1, output: 0 } } } },
    });
    expect(await run(...sourceOptions, '--out', at('known.json'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--force') as string,
    });
    expect(await run(...sourceOptions)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('A catalogue needs --source') as string,
    });
  });
});

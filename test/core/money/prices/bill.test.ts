import { Keyv } from 'keyv';
import { expect, test } from 'vitest';
import { openrouterPrices } from '../../../../channels/_kit/http/listed-prices.ts';
import anthropic from '../../../../channels/anthropic.ts';
import gemini from '../../../../channels/gemini.ts';
import openai from '../../../../channels/openai.ts';
import openrouter from '../../../../channels/openrouter.ts';
import perplexity from '../../../../channels/perplexity/index.ts';
import { readConfig } from '../../../../core/config/config.ts';
import { makeChannel } from '../../../../core/config/configured-channel.ts';
import { readUsage as readChat } from '../../../../core/formats/chat-completions/usage.ts';
import { readUsage as readGemini } from '../../../../core/formats/generate-content/usage.ts';
import { decodeUsage as readMessages } from '../../../../core/formats/messages/usage.ts';
import { readUsage as readResponses } from '../../../../core/formats/responses/usage.ts';
import { createLog } from '../../../../core/log.ts';
import type { JsonObject } from '../../../../core/model/json.ts';
import type { Units, Usage } from '../../../../core/model/usage.ts';
import { createPrices, type CallBounds } from '../../../../core/money/prices/index.ts';
import { createCatalog } from '../../../../core/routing/catalog.ts';
import { ModelDiscovery } from '../../../../core/routing/model-discovery.ts';

const key = 'k';

/** Entry of OpenRouter's list. https://openrouter.ai/docs/api-reference/list-available-models */
const listed = { id: 'vendor/model', pricing: { prompt: '0.000001', completion: '0.000005', request: '0' } };

async function pricesOfAll() {
  const { settings } = readConfig({}, '/x/gateway.config.ts');
  const discoveries: ModelDiscovery[] = [];
  const prices = Object.fromEntries(
    openrouterPrices(listed, listed.id).map(({ name, price }) => [name, price ?? {}]),
  );
  const channels = [
    openai({ key }),
    anthropic({ key }),
    gemini({ key }),
    perplexity({ key }),
    openrouter({ key }),
  ].flatMap((entry) => {
    const channel = makeChannel(entry, {
      settings,
      where: 'here',
      problems: [],
      warnings: [],
      log: createLog('silent'),
      format: () => undefined,
      discovery: (cacheKey, listModels, log) => {
        const kept = new Keyv({ store: new Map() });
        const get = () => Promise.resolve({ at: Date.now(), names: [listed.id], prices });
        const discovery = new ModelDiscovery({
          cacheKey,
          listModels,
          log,
          kept: Object.assign(kept, { get }),
        });
        discoveries.push(discovery);
        return discovery;
      },
      onClose: () => {},
    });
    return channel === undefined ? [] : [channel];
  });
  for (const discovery of discoveries) await discovery.load();
  return createPrices(settings.prices, {}, createCatalog(channels, 0));
}

interface Bill {
  readonly channel: string;
  readonly model: string;
  readonly usage: Usage;
  readonly microDollars: number;
  /** What the request shows before the call. */
  readonly bounds?: CallBounds;
  readonly units?: Units;
}

const chat = { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 };
const chatUsage = (more: JsonObject = {}, reply: JsonObject = {}): Usage =>
  readChat({ ...chat, ...more }, reply);
const nothing: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
const film = (resolution: string): Units => ({ seconds: 8, secondsAt: { [resolution]: 8 } });
const responses = { input_tokens: 1000, output_tokens: 100, total_tokens: 1100 };

// Dollars per million tokens in the comments, with the page that states them. All calls have 1,000 tokens of input and 100 of output.
const bills: Readonly<Record<string, Bill>> = {
  // Audio 1, text 0.30, output 2.50: https://ai.google.dev/gemini-api/docs/pricing
  'audio that Gemini listens to': {
    channel: 'gemini',
    model: 'gemini-2.5-flash',
    usage: readGemini({
      promptTokenCount: 1000,
      candidatesTokenCount: 100,
      totalTokenCount: 1100,
      promptTokensDetails: [
        { modality: 'AUDIO', tokenCount: 900 },
        { modality: 'TEXT', tokenCount: 100 },
      ],
    }),
    bounds: { media: { input: new Set(['audio']) } },
    microDollars: 900 + 30 + 250,
  },
  // Twice 5 and 25: https://platform.claude.com/docs/en/about-claude/pricing (fast mode)
  'Claude in fast mode': {
    channel: 'anthropic',
    model: 'claude-opus-4-8',
    usage: readMessages({ input_tokens: 1000, output_tokens: 100, speed: 'fast', service_tier: 'standard' }),
    bounds: { serviceTier: 'fast' },
    microDollars: 10_000 + 5000,
  },
  // 0.40 and 2.40: https://developers.openai.com/api/docs/pricing (priority)
  'GPT with priority': {
    channel: 'openai',
    model: 'gpt-5.6-luna',
    usage: chatUsage({}, { service_tier: 'priority' }),
    bounds: { serviceTier: 'priority' },
    microDollars: 400 + 240,
  },
  // 0.10 and 0.60: https://developers.openai.com/api/docs/pricing (flex). Reserved without the tier: the provider may not use it.
  'GPT with flex': {
    channel: 'openai',
    model: 'gpt-5.6-luna',
    usage: chatUsage({}, { service_tier: 'flex' }),
    microDollars: 100 + 60,
  },
  // 0.25 and 2.50, and 2.50 dollars for 1,000 searches: https://docs.perplexity.ai/docs/getting-started/pricing
  'Sonar with one search': {
    channel: 'perplexity',
    model: 'sonar',
    usage: readResponses(responses),
    microDollars: 250 + 250 + 2500,
  },
  // The same call as its provider states it: https://docs.perplexity.ai/api-reference/agent-post
  'Sonar with a stated cost': {
    channel: 'perplexity',
    model: 'sonar',
    usage: readResponses({ ...responses, cost: { tool_calls_cost: 0.0025, total_cost: 0.0029 } }),
    microDollars: 2900,
  },
  // https://openrouter.ai/docs/use-cases/usage-accounting
  'OpenRouter with a stated cost': {
    channel: 'openrouter',
    model: 'vendor/model',
    usage: chatUsage({ cost: 0.001_230_1 }),
    microDollars: 1231,
  },
  // 0.40 a second, 0.60 of 4k; fast: 0.10, 0.12 and 0.30: https://ai.google.dev/gemini-api/docs/pricing
  'a film by its resolution': {
    channel: 'gemini',
    model: 'veo-3.1-generate-001',
    usage: { ...nothing, units: film('2160p') },
    units: film('2160p'),
    microDollars: 8 * 600_000,
  },
  'a film of a resolution without a price of its own': {
    channel: 'gemini',
    model: 'veo-3.1-fast-generate-001',
    usage: { ...nothing, units: film('1440p') },
    units: film('1440p'),
    microDollars: 8 * 120_000,
  },
  // 1 and 5, as `listed` says
  'OpenRouter with a listed price only': {
    channel: 'openrouter',
    model: 'vendor/model',
    usage: chatUsage(),
    microDollars: 1000 + 500,
  },
};

test.each(Object.entries(bills))(
  '%s costs what the provider bills, and no less is reserved',
  async (_what, bill) => {
    const { channel, model, usage, microDollars, bounds, units } = bill;
    const prices = await pricesOfAll();
    expect(prices.cost(model, usage, { channel, model })?.microDollars).toBe(microDollars);
    expect(prices.most(model, 1000, 100, units, bounds)).toBeGreaterThanOrEqual(microDollars);
  },
);

test.each([-1, -0.001, 1e12, Number.NaN, Number.POSITIVE_INFINITY, '0.5', null, [1], {}])(
  'a stated cost that is none, such as %s, is not charged: the price is',
  async (cost) => {
    const prices = await pricesOfAll();
    const usage = { ...chatUsage(), raw: { ...chat, cost } as JsonObject };
    expect(
      prices.cost('vendor/model', usage, { channel: 'openrouter', model: 'vendor/model' }),
    ).toMatchObject({
      microDollars: 1500,
    });
  },
);

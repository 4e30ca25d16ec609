import { describe, expect, onTestFinished, test } from 'vitest';
import anthropicChannel from '../../channels/anthropic.ts';
import azureOpenai from '../../channels/azure-openai.ts';
import demo from '../../channels/demo/index.ts';
import openaiChannel from '../../channels/openai.ts';
import openrouter from '../../channels/openrouter.ts';
import vllm from '../../channels/vllm.ts';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import type { Budget } from '../../core/sdk/budget.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { anthropic, genai, openai } from '../clients/sdks.ts';
import { startGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

const dollars = (amount: number): Budget => ({ unit: 'micro-dollar', period: 'day', amount: amount * 1e6 });

/** A gateway, and a key of it with a budget in dollars. */
async function withBudget(config: GatewayConfig, amount: number) {
  const gateway = await startGateway(config);
  onTestFinished(() => gateway.close());
  const budgets = [dollars(amount)];
  const { value, record } = await gateway.apiKeys.create({ name: 'spender', budgets });
  const ledger = openLedger(gateway.stores);
  const log = openUsageLog(gateway.stores);
  return {
    access: { url: gateway.url, key: value },
    spent: async () => (await ledger.states(record.id, budgets))[0]?.spent,
    reserved: async () => (await ledger.states(record.id, budgets))[0]?.reserved,
    records: async () => (await log.page({}, 10)).records,
  };
}

const completion = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 },
});
const message = JSON.stringify({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 1000, output_tokens: 100 },
});

async function provider(
  script: (count: number) => [status: number, body: string],
): Promise<ScriptedUpstream> {
  const upstream = await startUpstream((_request, response, count) => {
    const [status, body] = script(count);
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(body);
  });
  onTestFinished(() => upstream.close());
  return upstream;
}

const messages = [{ role: 'user' as const, content: 'hello' }];

describe('the first budget in dollars', () => {
  test('is kept with the demo, in every format, without a price in the config', async () => {
    const one = await withBudget({ channels: [demo()] }, 1);
    await openai(one.access).chat.completions.create({ model: 'demo', messages });
    await anthropic(one.access).messages.create({ model: 'demo', max_tokens: 100, messages });
    await genai(one.access).models.generateContent({ model: 'demo', contents: 'hello' });
    await openai(one.access).embeddings.create({ model: 'demo', input: 'hello' });
    await openai(one.access).images.generate({ model: 'demo', prompt: 'a house' });
    await expect.poll(async () => (await one.records()).length).toBe(5);
    const records = await one.records();
    expect(records.filter(({ microDollars = 0 }) => microDollars === 0)).toEqual([]);
    expect(records[0]?.price).toMatchObject({ model: '*', source: 'channel kind demo' });
    const sum = records.reduce((all, { microDollars = 0 }) => all + microDollars, 0);
    await expect.poll(one.spent).toBe(sum);
  });

  test('that cannot be kept is refused with what the operator can do about it', async () => {
    const upstream = await provider(() => [200, completion]);
    const one = await withBudget(
      { channels: [openrouter({ key: 'k', baseUrl: `${upstream.url}/v1`, models: ['vendor/"new"'] })] },
      1,
    );
    await expect(
      openai(one.access).chat.completions.create({ model: 'vendor/"new"', messages }),
    ).rejects.toMatchObject({
      status: 403,
      message: expect.stringContaining(
        'prices: { "vendor/\\"new\\"": { input: 1, output: 5 } }. "sluice prices import FILE"',
      ) as string,
    });
    expect(upstream.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});

describe('a model that two channels serve', () => {
  const cheapFirst = (cheap: ScriptedUpstream, dear: ScriptedUpstream): GatewayConfig => ({
    channels: [
      openaiChannel({
        id: 'cheap',
        key: 'k',
        baseUrl: `${cheap.url}/v1`,
        models: { fast: 'gpt-5-nano' },
        priority: 1,
      }),
      anthropicChannel({
        id: 'dear',
        key: 'k',
        baseUrl: `${dear.url}/v1`,
        models: { fast: 'claude-haiku-4-5' },
      }),
    ],
  });

  test('costs what the one charges that answers', async () => {
    // The second call finds the first channel down.
    const cheap = await provider((count) => (count === 1 ? [200, completion] : [500, '{}']));
    const dear = await provider(() => [200, message]);
    const one = await withBudget(cheapFirst(cheap, dear), 1);
    const sendChat = () => openai(one.access).chat.completions.create({ model: 'fast', messages });
    await sendChat();
    // 0.05 and 0.40 dollars for a million tokens.
    await expect.poll(one.spent).toBe(50 + 40);
    await sendChat();
    // 1 and 5.
    await expect.poll(one.spent).toBe(50 + 40 + 1000 + 500);
    const [second, first] = await one.records();
    expect(first).toMatchObject({ channel: 'cheap', microDollars: 90, price: { model: 'gpt-5-nano' } });
    expect(second).toMatchObject({
      channel: 'dear',
      microDollars: 1500,
      price: { model: 'claude-haiku-4-5', source: expect.stringMatching(/^list of 20/) as string },
    });
  });

  test('is reserved as if the dearest answered', async () => {
    const cheap = await provider(() => [200, completion]);
    const dear = await provider(() => [200, message]);
    const sendChat = (one: Awaited<ReturnType<typeof withBudget>>) =>
      openai(one.access).chat.completions.create({ model: 'fast', max_completion_tokens: 1000, messages });
    // A thousand tokens come to 0.0004 dollars at the cheap one, and to 0.005 at the other.
    await expect(sendChat(await withBudget(cheapFirst(cheap, dear), 0.004))).rejects.toMatchObject({
      status: 429,
    });
    expect(cheap.requests).toEqual([]);
    const rich = await withBudget(cheapFirst(cheap, dear), 0.01);
    await sendChat(rich);
    await expect.poll(rich.spent).toBe(90);
    await expect.poll(rich.reserved).toBe(0);
  });
});

describe('a model that has a name of the operator’s own at its provider', () => {
  const sendChat = (one: Awaited<ReturnType<typeof withBudget>>, model: string) =>
    openai(one.access).chat.completions.create({ model, messages });

  test('costs what the catalogue says of its public name, as an Azure deployment', async () => {
    const upstream = await provider(() => [200, completion]);
    const one = await withBudget(
      {
        channels: [azureOpenai({ key: 'k', baseUrl: upstream.url, models: { 'gpt-4o': 'team-blue-prod' } })],
      },
      1,
    );
    await sendChat(one, 'gpt-4o');
    // 2.5 and 10 dollars for a million tokens.
    await expect.poll(one.spent).toBe(2500 + 1000);
    expect((await one.records())[0]?.price).toMatchObject({ model: 'gpt-4o' });
  });

  test('costs what the catalogue says of its base model, whatever its public name', async () => {
    const upstream = await provider(() => [200, completion]);
    const channel = (kind: typeof azureOpenai | typeof vllm | typeof openrouter, id: string, base: string) =>
      kind({
        id,
        key: 'k',
        baseUrl: `${upstream.url}/v1`,
        models: { [id]: { name: `/models/${id}`, baseModel: base } },
      });
    const one = await withBudget(
      {
        channels: [
          channel(azureOpenai, 'blue', 'gpt-4o-2024-08-06'),
          channel(vllm, 'own', 'openai/gpt-4o-mini'),
          channel(openrouter, 'resold', 'anthropic/claude-haiku-4-5'),
        ],
      },
      1,
    );
    for (const [model, cost] of [
      ['blue', 2500 + 1000],
      ['own', 150 + 60],
      ['resold', 1000 + 500],
    ] as const) {
      const before = (await one.spent()) ?? 0;
      await sendChat(one, model);
      await expect.poll(one.spent).toBe(before + cost);
      expect(JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '')).toMatchObject({
        model: `/models/${model}`,
      });
    }
  });

  test('has the price of the config before that of its base model', async () => {
    const upstream = await provider(() => [200, completion]);
    const one = await withBudget(
      {
        prices: { chat: { input: 1, output: 1 } },
        channels: [
          azureOpenai({
            key: 'k',
            baseUrl: upstream.url,
            models: { chat: { name: 'blue', baseModel: 'gpt-4o' } },
          }),
        ],
      },
      1,
    );
    await sendChat(one, 'chat');
    await expect.poll(one.spent).toBe(1000 + 100);
  });

  test('is refused to a budget in dollars where nothing tells what stands behind it', async () => {
    const upstream = await provider(() => [200, completion]);
    const one = await withBudget(
      { channels: [azureOpenai({ key: 'k', baseUrl: upstream.url, models: { blue: 'team-blue-prod' } })] },
      1,
    );
    await expect(sendChat(one, 'blue')).rejects.toMatchObject({ status: 403 });
    expect(upstream.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
  });
});

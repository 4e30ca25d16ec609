import OpenAI from 'openai';
import { ended, reply, toolCall } from 'sluice/testing';
import { expect, test } from 'vitest';
import { openUsageLog } from '../../../core/money/usage-log/open.ts';
import { eventually } from '../../support/eventually.ts';
import { lastResult, startAgent, startWeather, type Agent, type Model } from './_agent.ts';

const twoRounds: Model = (request, round) =>
  round % 2 === 1
    ? ended({ usage: { input: 1_000, output: 100 } }, toolCall('forecast', { city: 'Oslo' }))
    : ended({ usage: { input: 2_000, output: 200 } }, lastResult(request));

const prices = { 'of-*': { input: 10, output: 100 } };
const tools = [{ type: 'mcp', server_label: 'weather', require_approval: 'never' }] as never;

const clientOf = ({ gateway }: Agent, apiKey = gateway.key): OpenAI =>
  new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });

test('each round is charged by the usage of the model, and each tool by its price', async () => {
  const weather = await startWeather();
  const agent = await startAgent(
    twoRounds,
    { servers: { weather: { url: weather.server.url, chargeMicroDollars: 500_000 } } },
    { prices },
  );
  const answer = await clientOf(agent).responses.create({ model: 'of-messages', input: 'Oslo?', tools });
  expect(answer.usage).toMatchObject({ input_tokens: 3_000, output_tokens: 300 });
  const log = openUsageLog(agent.gateway.stores);
  const records = await eventually(async () => {
    const { records: all } = await log.page({}, 10);
    expect(all).toHaveLength(2);
    return all;
  });
  // 3,000 tokens at 10 dollars a million and 300 at 100; half a dollar for the tool, which is a call of its own.
  expect(records.find(({ operation }) => operation === 'chat')).toMatchObject({
    input: 3_000,
    output: 300,
    microDollars: 30_000 + 30_000,
  });
  expect(records.find(({ operation }) => operation === 'tool')).toMatchObject({
    model: 'weather/forecast',
    microDollars: 500_000,
  });
});

test('a key whose budget has no room for the next round is refused there, and pays for what was done', async () => {
  const weather = await startWeather();
  // A round reserves the output that the request allows: 1,000 tokens at 100 dollars a million are 0.1 dollars.
  const agent = await startAgent(
    (request, round) =>
      round === 1
        ? ended(
            { usage: { input: 1_000, output: 900 } },
            'Let me look.',
            toolCall('forecast', { city: 'Oslo' }),
          )
        : reply(lastResult(request)),
    { servers: { weather: { url: weather.server.url } } },
    { prices },
  );
  const { value, record } = await agent.gateway.apiKeys.create({
    name: 'poor',
    budgets: [{ unit: 'micro-dollar', period: 'total', amount: 200_000 }],
  });
  const seen: string[] = [];
  const events = await clientOf(agent, value).responses.create({
    model: 'of-messages',
    input: 'Oslo?',
    max_output_tokens: 1_000,
    tools,
    stream: true,
  });
  let failure: unknown;
  try {
    for await (const event of events) seen.push(event.type);
  } catch (error) {
    failure = error;
  }
  expect([seen.includes('response.mcp_call.completed'), failure, agent.requests.length]).toEqual([
    true,
    expect.anything(),
    1,
  ]);
  const log = openUsageLog(agent.gateway.stores);
  const found = await eventually(async () => {
    const { records } = await log.page({ keyId: record.id }, 10);
    expect(records).toHaveLength(1);
    return records[0];
  });
  expect(found).toMatchObject({ microDollars: 10_000 + 90_000 });
});

test('a tool runs also for a key that may have one call at a time, and not where the budget has no room for its price', async () => {
  const weather = await startWeather();
  const agent = await startAgent(
    twoRounds,
    { servers: { weather: { url: weather.server.url, chargeMicroDollars: 500_000 } } },
    { prices },
  );
  const callsOf = async (amount: number): Promise<readonly unknown[]> => {
    const { value } = await agent.gateway.apiKeys.create({
      name: 'limited',
      concurrency: 1,
      requestsPerMinute: 1,
      budgets: [{ unit: 'micro-dollar', period: 'total', amount }],
    });
    const { output } = await clientOf(agent, value).responses.create({
      model: 'of-messages',
      input: 'Oslo?',
      max_output_tokens: 1_000,
      tools,
    });
    return output.flatMap((item) => (item.type === 'mcp_call' ? [item.error] : []));
  };
  expect(await callsOf(2_000_000)).toEqual([null]);
  expect(await callsOf(500_000)).toEqual([expect.anything()]);
});

test('many small rounds cannot exceed a budget that has room for each of them', async () => {
  const weather = await startWeather();
  // Each round costs 0.05 dollars and may cost a little more than 0.1.
  const agent = await startAgent(
    () => ended({ usage: { input: 0, output: 500 } }, toolCall('forecast', { city: 'Oslo' })),
    { servers: { weather: { url: weather.server.url } }, maxRounds: 50 },
    { prices },
  );
  const { value, record } = await agent.gateway.apiKeys.create({
    name: 'poor',
    budgets: [{ unit: 'micro-dollar', period: 'total', amount: 500_000 }],
  });
  const answer = clientOf(agent, value).responses.create({
    model: 'of-messages',
    input: 'Oslo?',
    max_output_tokens: 1_000,
    tools,
  });
  await expect(answer).rejects.toMatchObject({ status: 429 });
  const log = openUsageLog(agent.gateway.stores);
  const found = await eventually(async () => {
    const { records } = await log.page({ keyId: record.id }, 10);
    expect(records).toHaveLength(1);
    return records[0];
  });
  expect(agent.requests.length).toBeGreaterThan(2);
  expect(found?.microDollars).toBeGreaterThanOrEqual(agent.requests.length * 50_000);
  expect(found?.microDollars).toBeLessThanOrEqual(500_000);
});

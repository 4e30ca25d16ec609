import OpenAI, { toFile } from 'openai';
import { onTestFinished } from 'vitest';
import type { ChannelEntry } from '../../../core/sdk/define.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import type { Json } from '../../support/object-server.ts';

/** Of keys in these tests: a dollar. */
export const budget = { unit: 'micro-dollar', period: 'total', amount: 1_000_000 } as const;

/** A gateway before one provider, and the official SDK with a key that has a budget. It is closed after the test. */
export async function stageOf(
  channel: ChannelEntry,
  settings: object = {},
): Promise<{ readonly gateway: TestGateway; readonly client: OpenAI; readonly keyId: string }> {
  const gateway = await startGateway({
    plugins: [providerObjects({ poll: { first: 60_000, most: 60_000 } })],
    prices: { 'model-*': { input: 2, output: 8 } },
    channels: [channel],
    ...settings,
  });
  onTestFinished(() => gateway.close());
  const { value, record } = await gateway.apiKeys.create({ name: 'one', budgets: [budget] });
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: value, maxRetries: 0 });
  return { gateway, client, keyId: record.id };
}

/** A file with one line. */
export const fileOf = (line: Json) => toFile(Buffer.from(JSON.stringify(line)), 'batch.jsonl');
/** A request of a batch. */
export const batchBody = {
  model: 'model-a',
  max_tokens: 1000,
  messages: [{ role: 'user', content: 'Hello' }],
};
/** Reply: a thousand input and five hundred output tokens. */
export const reply = {
  object: 'chat.completion',
  model: 'model-there',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1000, completion_tokens: 500, total_tokens: 1500 },
};

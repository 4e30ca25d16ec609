import { onTestFinished } from 'vitest';
import OpenAI from 'openai';
import openai from '../../../channels/openai.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startOpenaiObjects, type OpenaiObjects } from '../../support/openai-objects.ts';

/** A gateway before two providers of the chat-completions API, of which `a` comes first. */
export interface Stage {
  readonly a: OpenaiObjects;
  readonly b: OpenaiObjects;
  readonly gateway: TestGateway;
  /** The official SDK with a new key. */
  client(record?: object): Promise<OpenAI & { readonly keyId: string }>;
}

/** Starts one; it is closed after the test. */
export async function startStage(options: Parameters<typeof providerObjects>[0] = {}): Promise<Stage> {
  const a = await startOpenaiObjects('a');
  const b = await startOpenaiObjects('b');
  const gateway = await startGateway({
    plugins: [providerObjects(options)],
    prices: { 'gpt-*': { input: 2, output: 8 } },
    channels: [
      openai({ id: 'a', key: 'sk-of-a', baseUrl: `${a.url}/v1`, models: ['gpt-a', 'gpt-both'], priority: 1 }),
      openai({
        id: 'b',
        key: 'sk-of-b',
        baseUrl: `${b.url}/v1`,
        models: { 'gpt-b': 'gpt-b', 'gpt-both': 'gpt-both', renamed: 'gpt-there' },
      }),
    ],
  });
  onTestFinished(async () => {
    await gateway.close();
    await Promise.all([a.close(), b.close()]);
  });
  return {
    a,
    b,
    gateway,
    async client(record = {}) {
      const { value, record: made } = await gateway.apiKeys.create({ name: 'one', ...record });
      const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: value, maxRetries: 0 });
      return Object.assign(client, { keyId: made.id });
    },
  };
}

/** A line of a batch. */
export function batchLine(model: string, id = 'one', content: unknown = 'Hello'): string {
  return JSON.stringify({
    custom_id: id,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model, messages: [{ role: 'user', content }] },
  });
}

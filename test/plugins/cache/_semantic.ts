import type { ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import type { GatewayConfig } from 'sluice';
import openai from '../../../channels/openai.ts';
import cache from '../../../plugins/cache/index.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startUpstream } from '../../support/upstream.ts';
import { startProvider, usual, type FormatName, type Provider } from './_provider.ts';

/** Vectors of questions; those that mean the same are near each other. */
const vectors: Readonly<Record<string, readonly number[]>> = {
  'How do I cancel?': [1, 0, 0.05],
  'How can I cancel?': [1, 0.01, 0],
  'Could I cancel?': [1, 0, 0],
  'What does it cost?': [0, 1, 0],
  'What is too long?': Array.from({ length: 16_001 }, () => 1),
};

/** State of the embedding model: true while it fails, and the number of its requests. */
export const embedding = { isDown: false, count: 0 };

/** A gateway whose embeddings come from one provider, and its answers from another. */
export async function started(
  options: object = {},
  {
    plugin = {},
    format = 'chat-completions',
    ...config
  }: Partial<GatewayConfig> & {
    readonly plugin?: Parameters<typeof cache>[0];
    readonly format?: FormatName;
  } = {},
): Promise<{ gateway: TestGateway; provider: Provider }> {
  const embedder = await startUpstream(({ body }, response: ServerResponse) => {
    const { input } = JSON.parse(body.toString()) as { input: string };
    embedding.count += 1;
    if (embedding.isDown) {
      response.writeHead(500).end('{}');
      return;
    }
    const vector = vectors[input] ?? [0, 0, 1];
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        object: 'list',
        model: 'e',
        data: [{ object: 'embedding', index: 0, embedding: vector }],
        usage: { prompt_tokens: 4, total_tokens: 4 },
      }),
    );
  });
  onTestFinished(() => embedder.close());
  let count = 0;
  const provider = await startProvider(format, () => usual(`Answer ${(count += 1)}.`));
  onTestFinished(() => provider.close());
  const gateway = await startGateway({
    ...config,
    plugins: [
      cache({ ...plugin, semantic: { model: 'e', threshold: 0.95, ...options } }),
      ...(config.plugins ?? []),
    ],
    channels: [
      provider.channel,
      openai({ id: 'embedder', key: 'k', baseUrl: `${embedder.url}/v1`, models: ['e', 'e2'] }),
    ],
    prices: { m: { input: 1, output: 1 }, e: { input: 1, output: 0 } },
  });
  onTestFinished(() => gateway.close());
  return { gateway, provider };
}

/** Returns a chat request whose last message has this text. */
export const chatBody = (content: string, more: object = {}): object => ({
  messages: [{ role: 'user', content }],
  ...more,
});

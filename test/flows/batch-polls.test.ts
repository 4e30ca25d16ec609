import OpenAI, { toFile } from 'openai';
import { describe, expect, onTestFinished, test } from 'vitest';
import openai from '../../channels/openai.ts';
import { startGateway } from '../support/gateway.ts';
import { startOpenaiObjects } from '../support/openai-objects.ts';
import { newDatabases } from './_one-database.ts';

const line = JSON.stringify({
  custom_id: 'one',
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'gpt-a', messages: [{ role: 'user', content: 'Hello' }] },
});

describe.each(newDatabases())('with a database of the kind $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)(
    'a batch that runs for long shows its state however often its provider was asked before',
    async () => {
      const provider = await startOpenaiObjects();
      const gateway = await startGateway({
        database: await url(),
        channels: [openai({ key: 'sk-there', baseUrl: `${provider.url}/v1`, models: ['gpt-a'] })],
      });
      onTestFinished(async () => {
        await gateway.close();
        await provider.close();
      });
      const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 });
      const file = await client.files.create({
        file: await toFile(Buffer.from(line), 'batch.jsonl'),
        purpose: 'batch',
      });
      const { id } = await client.batches.create({
        input_file_id: file.id,
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
      });
      const batch = provider.batches.get(id);
      if (batch === undefined) throw new Error('The provider has no batch.');
      for (let state = 0; state < 12; state += 1) {
        batch['metadata'] = { state: String(state) };
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        expect((await client.batches.retrieve(id)).metadata).toEqual({ state: String(state) });
      }
    },
  );
});

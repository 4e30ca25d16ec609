import OpenAI, { APIError, toFile } from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import openaiCompatible from '../../../channels/openai-compatible.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { startGateway } from '../../support/gateway.ts';
import { startOpenaiObjects } from '../../support/openai-objects.ts';

/** Uploads a file with a key of these models, at a channel that serves others. Returns the file's id, or the status of the refusal. */
async function upload(allowed: readonly string[], served: readonly string[] | Record<string, string>) {
  const provider = await startOpenaiObjects();
  const gateway = await startGateway({
    plugins: [providerObjects()],
    // A kind without a list of known models: patterns are all that is known of what it serves.
    channels: [
      openaiCompatible({
        name: 'a',
        key: 'sk-of-a',
        baseUrl: `${provider.url}/v1`,
        models: served,
        keeps: ['files'],
      }),
    ],
  });
  onTestFinished(async () => {
    await gateway.close();
    await provider.close();
  });
  const { value } = await gateway.apiKeys.create({ name: 'one', models: [...allowed] });
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: value, maxRetries: 0 });
  const file = await toFile(Buffer.from('text'), 'notes.txt');
  try {
    return (await client.files.create({ file, purpose: 'user_data' })).id;
  } catch (error) {
    return error instanceof APIError ? error.status : error;
  }
}

const made = expect.stringMatching(/^file-/);

test.each([
  { allowed: ['gpt-4o*'], served: ['gpt-*'] },
  { allowed: ['*-mini'], served: ['gpt-*'] },
  { allowed: ['gpt-*'], served: ['gpt-unlisted-*-large'] },
  { allowed: ['o9', 'gpt-4o*'], served: { 'gpt-*': 'deployment-*' } },
  { allowed: ['gpt-4o'], served: ['gpt-*'] },
])('a key with the models $allowed keeps files at a channel that serves $served', async (names) => {
  expect(await upload(names.allowed, names.served)).toEqual(made);
});

test.each([
  { allowed: ['claude-*'], served: ['gpt-*'] },
  { allowed: ['*-mini'], served: ['gpt-*-large'] },
])('a key with the models $allowed keeps none where $served are served', async (names) => {
  expect(await upload(names.allowed, names.served)).toBe(503);
});

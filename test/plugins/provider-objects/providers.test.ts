import OpenAI, { toFile } from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import azureOpenai from '../../../channels/azure-openai.ts';
import cerebras from '../../../channels/cerebras.ts';
import dashscope from '../../../channels/dashscope/index.ts';
import deepinfra from '../../../channels/deepinfra.ts';
import groq from '../../../channels/groq.ts';
import mistral from '../../../channels/mistral/index.ts';
import moonshot from '../../../channels/moonshot.ts';
import nebius from '../../../channels/nebius.ts';
import novita from '../../../channels/novita.ts';
import openaiCompatible from '../../../channels/openai-compatible.ts';
import zhipu from '../../../channels/zhipu.ts';
import type { ChannelEntry } from '../../../core/sdk/define.ts';
import { openLedger } from '../../../core/money/ledger/open.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { startGateway } from '../../support/gateway.ts';
import { fileInForm, startObjectServer, type Json } from '../../support/object-server.ts';
import { startOpenaiObjects } from '../../support/openai-objects.ts';
import { batchBody as body, budget, fileOf, reply, stageOf } from './_providers.ts';
import { charges } from './_records.ts';

/** A kind whose files and batches are those of chat completions; where it differs from the first of them. */
interface Kind {
  readonly name: string;
  readonly channelAt: (url: string) => ChannelEntry;
  readonly root?: string;
  readonly header?: string;
  readonly endpoint?: string;
  /** Of what two times three thousand micro-dollars would have been; default half. */
  readonly share?: number;
}

const kinds: readonly Kind[] = [
  {
    name: 'azure-openai',
    channelAt: (baseUrl) => azureOpenai({ key: 'k', baseUrl, models: ['model-a'] }),
    root: '/openai',
    header: 'api-key',
    endpoint: '/chat/completions',
  },
  {
    name: 'openai-compatible',
    channelAt: (url) =>
      openaiCompatible({
        name: 'mine',
        key: 'k',
        baseUrl: `${url}/v1`,
        models: ['model-a'],
        keeps: ['files', 'batches'],
        batchShare: 0.25,
      }),
    share: 0.25,
  },
  ...(
    [
      [cerebras],
      [dashscope],
      [groq],
      [nebius],
      [novita],
      [moonshot, { share: 0.6 }],
      [deepinfra, { share: 0.8 }],
      [zhipu, { endpoint: '/v4/chat/completions' }],
    ] as const
  ).map(([kind, more]) => ({
    name: kind.spec.name,
    channelAt: (url: string) => kind({ key: 'k', baseUrl: `${url}/v1`, models: ['model-a'] }),
    ...more,
  })),
];

test.each(kinds)(
  'files and batches of $name go their round with the official SDK',
  async ({
    channelAt,
    root = '',
    header = 'authorization',
    endpoint = '/v1/chat/completions',
    share = 0.5,
  }) => {
    const provider = await startOpenaiObjects('p', root);
    onTestFinished(() => provider.close());
    const { gateway, client, keyId } = await stageOf(channelAt(provider.url));
    const file = await client.files.create({
      file: await fileOf({ custom_id: 'one', method: 'POST', url: endpoint, body }),
      purpose: 'batch',
    });
    expect(provider.requests[0]?.headers[header]).toContain('k');
    const { id } = await client.batches.create({
      input_file_id: file.id,
      endpoint: endpoint as '/v1/chat/completions',
      completion_window: '24h',
    });
    const [held] = await openLedger(gateway.stores).states(keyId, [budget]);
    // The limit of the answer, at 8 dollars a million.
    expect(held?.reserved).toBeGreaterThan(8000 * share);
    provider.finish(id, () => reply);
    const done = await client.batches.retrieve(id);
    expect(done.status).toBe('completed');
    expect(await (await client.files.content(done.output_file_id ?? '')).text()).toContain('"Hi"');
    // A thousand tokens at 2 and five hundred at 8 dollars a million, at the provider's price of batches.
    expect(await charges(gateway)).toMatchObject([{ model: 'model-a', microDollars: 6000 * share }]);
  },
);

test('batch jobs of Mistral are batches for the official SDK of another provider', async () => {
  const jobs = new Map<string, Json>();
  const files = new Map<string, string>();
  const provider = await startObjectServer(({ method, path, body: sent }, answer) => {
    const [, , name = '', second = '', third = '', fourth = ''] = path.split('/');
    if (name === 'files' && method === 'POST') {
      const id = `00000000-0000-4000-8000-00000000000${files.size}`;
      files.set(id, fileInForm(sent));
      return answer(200, { id, object: 'file', bytes: 1, created_at: 1, filename: 'f', purpose: 'batch' });
    }
    if (name === 'files') return answer(200, files.get(second) ?? '');
    if (name === 'batch' && second === 'jobs' && method === 'POST' && third === '') {
      const fields = JSON.parse(sent.toString()) as Json;
      const job: Json = {
        ...fields,
        id: `job-${jobs.size}`,
        object: 'batch',
        errors: [],
        status: 'QUEUED',
        created_at: 1,
        total_requests: 1,
        succeeded_requests: 0,
        failed_requests: 0,
      };
      jobs.set(String(job['id']), job);
      return answer(200, job);
    }
    const job = jobs.get(third);
    if (job === undefined) return answer(404, { message: 'Not found' });
    if (fourth === 'cancel') job['status'] = 'CANCELLATION_REQUESTED';
    return answer(200, job);
  });
  onTestFinished(() => provider.close());
  const { gateway, client, keyId } = await stageOf(
    mistral({ key: 'k', baseUrl: `${provider.url}/v1`, models: ['model-a'] }),
  );
  const begin = async (line: Json) => {
    const file = await client.files.create({ file: await fileOf(line), purpose: 'batch' });
    const batchOptions = { endpoint: '/v1/chat/completions', completion_window: '24h' } as const;
    return client.batches.create({ input_file_id: file.id, metadata: { a: 'b' }, ...batchOptions });
  };
  await expect(begin({ custom_id: 'one', body: { ...body, max_tokens: 1e6 } })).rejects.toMatchObject({
    status: 429,
  });
  const batch = await begin({ custom_id: 'one', body });
  expect(batch).toMatchObject({ status: 'validating', input_file_id: [...files.keys()].at(-1) });
  const [[, job] = ['', {}]] = jobs;
  expect(job).toMatchObject({
    endpoint: '/v1/chat/completions',
    input_files: [batch.input_file_id],
    timeout_hours: 24,
    metadata: { a: 'b' },
  });
  expect(job).not.toHaveProperty('input_file_id');
  files.set(
    'out',
    `${JSON.stringify({ id: 'r', custom_id: 'one', response: { status_code: 200, body: reply }, error: null })}\n`,
  );
  Object.assign(job, { status: 'SUCCESS', output_file: 'out', completed_at: 2, succeeded_requests: 1 });
  const done = await client.batches.retrieve(batch.id);
  expect(done).toMatchObject({
    status: 'completed',
    output_file_id: 'out',
    request_counts: { total: 1, completed: 1, failed: 0 },
  });
  expect(await (await client.files.content('out')).text()).toContain('"Hi"');
  expect(await charges(gateway)).toMatchObject([{ model: 'model-a', microDollars: 3000 }]);
  const other = await begin({ custom_id: 'two', body });
  expect(await client.batches.cancel(other.id)).toMatchObject({ id: other.id, status: 'cancelling' });
  expect((await client.batches.list()).data.map(({ id }) => id)).toEqual([other.id, batch.id]);
  Object.assign(jobs.get(other.id) ?? {}, { status: 'CANCELLED' });
  expect(await client.batches.retrieve(other.id)).toMatchObject({ status: 'cancelled' });
  const [state] = await openLedger(gateway.stores).states(keyId, [budget]);
  expect(state).toMatchObject({ spent: 3000, reserved: 0 });
});

test('an answer of a batch that names a model nobody knows costs what the dearest of its models does', async () => {
  const provider = await startOpenaiObjects('p');
  onTestFinished(() => provider.close());
  const gateway = await startGateway({
    plugins: [providerObjects({ poll: { first: 60_000, most: 60_000 } })],
    prices: { 'model-a': { input: 2, output: 8 }, 'model-b': { input: 1, output: 1 } },
    channels: [groq({ key: 'k', baseUrl: `${provider.url}/v1`, models: ['model-a', 'model-b'] })],
  });
  onTestFinished(() => gateway.close());
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 });
  const url = '/v1/chat/completions';
  const lines = ['model-b', 'model-a'].map((model) =>
    JSON.stringify({ custom_id: model, method: 'POST', url, body: { ...body, model } }),
  );
  const file = await client.files.create({
    file: await toFile(Buffer.from(lines.join('\n')), 'b.jsonl'),
    purpose: 'batch',
  });
  const { id } = await client.batches.create({
    input_file_id: file.id,
    endpoint: url,
    completion_window: '24h',
  });
  provider.finish(id, () => reply);
  expect((await client.batches.retrieve(id)).status).toBe('completed');
  expect(await charges(gateway)).toMatchObject([{ model: 'model-a', input: 2000, microDollars: 6000 }]);
});

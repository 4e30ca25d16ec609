import OpenAI, { toFile } from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import openai from '../../../channels/openai.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { startGateway } from '../../support/gateway.ts';
import { startOpenaiObjects } from '../../support/openai-objects.ts';

async function startStage(settings: Partial<Parameters<typeof startGateway>[0]> = {}) {
  const provider = await startOpenaiObjects();
  const gateway = await startGateway({
    ...settings,
    plugins: [providerObjects({ poll: { first: 60_000, most: 60_000 } })],
    channels: [openai({ key: 'k', baseUrl: `${provider.url}/v1`, models: ['gpt-a'] })],
  });
  onTestFinished(async () => {
    await gateway.close();
    await provider.close();
  });
  const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 });
  return { provider, client };
}

type Stage = Awaited<ReturnType<typeof startStage>>;

/** A line with these settings, in a spelling that JavaScript would not write. */
const lineOf = (settings: string): string =>
  `{"custom_id":"a" ,"body":{"model":"gpt-a",${settings}"seed":12345678901234567890,"messages":[{"role":"user","content":"\\u0041"}]},"url":"/v1/chat/completions","method":"POST"}`;
const both = '"temperature":0.0,"top_p":0.95,';
const file = [lineOf(''), lineOf(both), '', lineOf('"temperature":1.0,"top_p":0.5,')].join('\r\n');

const upload = async ({ client }: Stage, headers: Record<string, string> = {}) =>
  client.files
    .create({ file: await toFile(Buffer.from(file), 'a.jsonl'), purpose: 'batch' }, { headers })
    .withResponse();

const sent = ({ provider }: Stage, id: string) => provider.files.get(id)?.content.toString();

const begin = ({ client }: Stage, id: string) =>
  client.batches.create({
    input_file_id: id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });

const refusal = {
  status: 400,
  message: expect.stringContaining('Request 2: temperature and top_p are mutually exclusive') as string,
};

test('top_p beside temperature is dropped from a line of a batch, and named in the reply to the upload', async () => {
  const stage = await startStage();
  const { data, response } = await upload(stage);
  expect(response.headers.get('x-sluice-loss')).toBe('body.top_p');
  expect(sent(stage, data.id)).toBe(file.replace('"top_p":0.95,', ''));
  expect(await begin(stage, data.id)).toMatchObject({ object: 'batch' });
});

test('lines without both go to the provider as they are, and nothing is named', async () => {
  const stage = await startStage();
  const plain = file.replace('"top_p":0.95,', '');
  const { response, data } = await stage.client.files
    .create({ file: await toFile(Buffer.from(plain), 'a.jsonl'), purpose: 'batch' })
    .withResponse();
  expect(response.headers.has('x-sluice-loss')).toBe(false);
  expect(sent(stage, data.id)).toBe(plain);
});

test('sampling: forward leaves both in a line', async () => {
  const stage = await startStage({ sampling: 'forward' });
  const { data, response } = await upload(stage);
  expect(response.headers.has('x-sluice-loss')).toBe(false);
  expect(sent(stage, data.id)).toBe(file);
  expect(await begin(stage, data.id)).toMatchObject({ object: 'batch' });
});

test.each([
  ['sampling: refuse', { sampling: 'refuse' as const }, {}],
  ['a strict upload', {}, { 'x-sluice-strict': 'true' }],
])('%s leaves the file as it is, and no batch can be made of it', async (_, settings, headers) => {
  const stage = await startStage(settings);
  const { data } = await upload(stage, headers);
  expect(sent(stage, data.id)).toBe(file);
  await expect(begin(stage, data.id)).rejects.toMatchObject(refusal);
});

test('no batch can be made of such a line in a file that was uploaded in parts', async () => {
  const stage = await startStage();
  const { uploads } = stage.client;
  const bytes = Buffer.from(file);
  const { id } = await uploads.create({
    bytes: bytes.length,
    filename: 'a.jsonl',
    mime_type: 'application/jsonl',
    purpose: 'batch',
  });
  const ids: string[] = [];
  for (const piece of [bytes.subarray(0, 300), bytes.subarray(300)])
    // oxlint-disable-next-line no-await-in-loop -- parts have an order
    ids.push((await uploads.parts.create(id, { data: await toFile(piece, 'part') })).id);
  const done = await uploads.complete(id, { part_ids: ids });
  expect(sent(stage, done.file?.id ?? '')).toBe(file);
  await expect(begin(stage, done.file?.id ?? '')).rejects.toMatchObject(refusal);
});

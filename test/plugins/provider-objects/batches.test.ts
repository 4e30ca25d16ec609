import type OpenAI from 'openai';
import { toFile } from 'openai';
import { expect, test } from 'vitest';
import { openLedger } from '../../../core/money/ledger/open.ts';
import { eventually } from '../../support/eventually.ts';
import { charges } from './_records.ts';
import { batchLine, startStage } from './_stage.ts';

const slow = { poll: { first: 60_000, most: 60_000 } };

async function upload(client: OpenAI, ...lines: readonly string[]): Promise<string> {
  const file = await toFile(Buffer.from(lines.join('\n')), 'batch.jsonl');
  return (await client.files.create({ file, purpose: 'batch' })).id;
}

async function begin(client: OpenAI, ...lines: readonly string[]): Promise<OpenAI.Batches.Batch> {
  return client.batches.create({
    input_file_id: await upload(client, ...lines),
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });
}

const answer = (model: string, input: number, output: number) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model,
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
});

test('a batch goes its round with the official SDK, and is charged half the price once, however often it is looked at', async () => {
  const { b, client, gateway } = await startStage(slow);
  const mine = await client();
  const lines = [batchLine('gpt-b', 'one'), batchLine('gpt-b', 'two'), batchLine('gpt-b', 'three')];
  const batch = await begin(mine, ...lines);
  expect(batch).toMatchObject({ id: expect.stringMatching(/^batch_b/), status: 'validating' });
  expect((await mine.batches.list()).data.map(({ id }) => id)).toEqual([batch.id]);
  b.finish(batch.id, (line) =>
    line['custom_id'] === 'three' ? undefined : answer('gpt-b-2026-01-01', 1000, 500),
  );
  const looks = await Promise.all(Array.from({ length: 6 }, () => mine.batches.retrieve(batch.id)));
  for (const { status, output_file_id: output } of looks)
    expect(status === 'completed' ? output : status).toMatch(/^file-b|^finalizing$/);
  const done = await eventually(async () => {
    const now = await mine.batches.retrieve(batch.id);
    expect(now.status).toBe('completed');
    return now;
  });
  const text = await (await mine.files.content(done.output_file_id ?? '')).text();
  expect(text.trim().split('\n')).toHaveLength(3);
  const records = await charges(gateway);
  expect(records).toHaveLength(1);
  // Two answers of 1000 tokens at 2 and 500 at 8 dollars a million: 12,000 micro-dollars by themselves.
  expect(records[0]).toMatchObject({
    keyId: mine.keyId,
    model: 'gpt-b',
    channel: 'b',
    input: 2000,
    output: 1000,
    microDollars: 6000,
    status: 200,
  });
});

test('a batch that nobody looks at is charged all the same', async () => {
  const { a, client, gateway } = await startStage({ poll: { first: 20, most: 50 }, batchShare: 1 });
  const mine = await client();
  const batch = await begin(mine, batchLine('gpt-a'));
  a.finish(batch.id, () => answer('gpt-a', 100, 10));
  await eventually(async () => expect(await charges(gateway)).toHaveLength(1));
  expect((await charges(gateway))[0]).toMatchObject({ microDollars: 280 });
});

test('results cannot be had before they are charged', async () => {
  const { a, client, gateway } = await startStage(slow);
  const mine = await client();
  const batch = await begin(mine, batchLine('gpt-a'));
  a.finish(batch.id, () => answer('gpt-a', 100, 10));
  const output = String(a.batches.get(batch.id)?.['output_file_id']);
  // Nobody has looked at the batch yet: its file is nobody's.
  await expect(mine.files.content(output)).rejects.toMatchObject({ status: 404 });
  const content = a.files.get(output);
  a.files.delete(output);
  // The provider does not give the results, so that nothing can be charged.
  expect(await mine.batches.retrieve(batch.id)).toMatchObject({ status: 'finalizing', output_file_id: null });
  expect(await charges(gateway)).toEqual([]);
  if (content !== undefined) a.files.set(output, content);
  expect(await mine.batches.retrieve(batch.id)).toMatchObject({
    status: 'completed',
    output_file_id: output,
  });
  expect(await charges(gateway)).toHaveLength(1);
});

test('answers that do not tell what they used are counted in the log, and the others are charged', async () => {
  const { a, client, gateway } = await startStage(slow);
  const mine = await client();
  const words = 'responses of a batch have no usage';
  const warnings = () => gateway.lines.filter(({ msg }) => msg === words);
  const batch = await begin(mine, batchLine('gpt-a'));
  a.finish(batch.id, () => answer('gpt-a', 100, 10));
  await mine.batches.retrieve(batch.id);
  expect(warnings()).toEqual([]);
  const silent = await begin(mine, batchLine('gpt-a', 'one'), batchLine('gpt-a', 'two'));
  a.finish(silent.id, ({ custom_id: line }) =>
    line === 'one' ? answer('gpt-a', 100, 10) : { ...answer('gpt-a', 0, 0), usage: undefined },
  );
  await mine.batches.retrieve(silent.id);
  expect(warnings()).toMatchObject([{ id: silent.id, channel: 'a', answers: 1 }]);
  expect((await charges(gateway)).map(({ input }) => input)).toEqual([100, 100]);
});

test('two keys do not see, cancel or read each other’s batches', async () => {
  const { a, client } = await startStage(slow);
  const [mine, theirs] = [await client(), await client()];
  const batch = await begin(mine, batchLine('gpt-a'));
  const requestsBefore = a.requests.length;
  expect((await theirs.batches.list()).data).toEqual([]);
  await expect(theirs.batches.retrieve(batch.id)).rejects.toMatchObject({ status: 404 });
  await expect(theirs.batches.cancel(batch.id)).rejects.toMatchObject({ status: 404 });
  await expect(
    theirs.batches.create({
      input_file_id: batch.input_file_id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    }),
  ).rejects.toMatchObject({ status: 404 });
  expect(a.requests.length).toBe(requestsBefore);
  expect(await mine.batches.cancel(batch.id)).toMatchObject({ id: batch.id, status: 'cancelling' });
});

test('a spent budget, a model that the key may not use or that has another name there refuse a batch', async () => {
  const { a, b, client, gateway } = await startStage(slow);
  const batchesOf = () => [...a.batches.keys(), ...b.batches.keys()];
  const poor = await client({ budgets: [{ unit: 'token', period: 'total', amount: 5 }] });
  // Its own call spends what there is.
  await openLedger(gateway.stores).settle([
    {
      keyId: poor.keyId,
      charged: { microDollars: 0, tokens: 5 },
      record: {
        id: 'spent',
        at: Date.now(),
        keyId: poor.keyId,
        ip: '',
        operation: 'chat',
        format: 'chat-completions',
        model: 'gpt-a',
        stream: false,
        status: 200,
        ended: 'complete',
        input: 5,
        output: 0,
        cacheRead: 0,
        cacheWrite: 0,
        reasoning: 0,
        ms: 1,
      },
    },
  ]);
  await expect(begin(poor, batchLine('gpt-a'))).rejects.toMatchObject({
    status: 429,
    code: 'insufficient_quota',
  });
  const narrow = await client({ models: ['gpt-b'] });
  await expect(begin(narrow, batchLine('gpt-b', 'one'), batchLine('gpt-both', 'two'))).rejects.toMatchObject({
    status: 403,
  });
  const free = await client();
  await expect(begin(free, batchLine('renamed'))).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('renamed'),
  });
  await expect(begin(free, batchLine('gpt-a'), 'no request')).rejects.toMatchObject({ status: 400 });
  expect(batchesOf()).toEqual([]);
});

test('what a line refers to must be the key’s own', async () => {
  const { a, client } = await startStage(slow);
  const [mine, theirs] = [await client(), await client()];
  const file = await toFile(Buffer.from('x'), 'f.txt');
  const { id } = await theirs.files.create({ file, purpose: 'user_data' });
  const line = (file_id: string) => batchLine('gpt-a', 'one', [{ type: 'file', file: { file_id } }]);
  await expect(begin(mine, line(id))).rejects.toMatchObject({ status: 404 });
  expect(a.batches.size).toBe(0);
  expect((await begin(theirs, line(id))).status).toBe('validating');
});

test('what a line refers to must lie at the provider that keeps the file of lines', async () => {
  const { a, b, client } = await startStage(slow);
  const mine = await client();
  const at = (channel: string) => ({ headers: { 'x-sluice-channel': channel } });
  const create = async (text: string, purpose: 'user_data' | 'batch', channel: string): Promise<string> => {
    const file = await toFile(Buffer.from(text), 'f.jsonl');
    return (await mine.files.create({ file, purpose }, at(channel))).id;
  };
  const image = await create('x', 'user_data', 'a');
  const line = batchLine('gpt-both', 'one', [{ type: 'file', file: { file_id: image } }]);
  const batchOf = (file: string) =>
    mine.batches.create({
      input_file_id: file,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    });
  await expect(batchOf(await create(line, 'batch', 'b'))).rejects.toMatchObject({
    status: 400,
    param: 'input_file_id',
  });
  expect([a.batches.size, b.batches.size]).toEqual([0, 0]);
  expect((await batchOf(await create(line, 'batch', 'a'))).status).toBe('validating');
});

test('a line may not go on from turns that a provider remembers', async () => {
  const { a, client } = await startStage(slow);
  const mine = await client();
  const body = { model: 'gpt-a', input: 'Go on.', previous_response_id: 'resp_of_another' };
  const line = JSON.stringify({ custom_id: 'one', method: 'POST', url: '/v1/responses', body });
  await expect(begin(mine, line)).rejects.toMatchObject({ status: 400 });
  expect(a.batches.size).toBe(0);
});

test('what is charged for a batch survives a gateway that ends before it', async () => {
  const { a, client, gateway } = await startStage({ poll: { first: 20, most: 50 } });
  const mine = await client();
  const batch = await begin(mine, batchLine('gpt-a'));
  a.failWith = { status: 503, body: { error: { message: 'Overloaded.' } } };
  a.finish(batch.id, () => answer('gpt-a', 100, 10));
  const requestsBefore = a.requests.length;
  await eventually(() => expect(a.requests.length).toBeGreaterThan(requestsBefore + 2));
  expect(await charges(gateway)).toEqual([]);
  a.failWith = undefined;
  await eventually(async () => expect(await charges(gateway)).toHaveLength(1));
});

import OpenAI, { toFile } from 'openai';
import { expect, test } from 'vitest';
import { openLedger } from '../../../core/money/ledger/open.ts';
import { batchLine, startStage } from './_stage.ts';

const text = (name: string) => toFile(Buffer.from('x'), name);

test('a file that is uploaded in parts belongs to the key that completed it', async () => {
  const { a, client } = await startStage();
  const [mine, theirs] = [await client(), await client()];
  const { id } = await mine.uploads.create({
    bytes: 5,
    filename: 'parts.txt',
    mime_type: 'text/plain',
    purpose: 'user_data',
  });
  const part = await mine.uploads.parts.create(id, { data: await text('part') });
  expect(a.requests.at(-1)).toMatchObject({
    path: `/v1/uploads/${id}/parts`,
    headers: { 'content-type': expect.stringContaining('multipart/form-data') },
  });
  await expect(theirs.uploads.parts.create(id, { data: await text('part') })).rejects.toMatchObject({
    status: 404,
  });
  await expect(theirs.uploads.complete(id, { part_ids: ['part_1'] })).rejects.toMatchObject({ status: 404 });
  const done = await mine.uploads.complete(id, { part_ids: [part.id] });
  expect((await mine.files.list()).data.map((file) => file.id)).toEqual([done.file?.id]);
  expect((await theirs.files.list()).data).toEqual([]);
});

test('a batch of a file that was uploaded in parts is checked as one of a file in one piece, in whatever order they came', async () => {
  const { a, client, gateway } = await startStage({ poll: { first: 60_000, most: 60_000 } });
  const budget = { unit: 'token', period: 'total', amount: 200_000 } as const;
  const mine = await client({ models: ['gpt-a'], budgets: [budget] });
  const uploaded = async (content: string, order: readonly number[] = [0, 1, 2]): Promise<string> => {
    const bytes = Buffer.from(content);
    const third = Math.ceil(bytes.length / 3);
    const { id } = await mine.uploads.create({
      bytes: bytes.length,
      filename: 'batch.jsonl',
      mime_type: 'application/jsonl',
      purpose: 'batch',
    });
    const parts: string[] = [];
    for (const index of order) {
      const data = await toFile(bytes.subarray(index * third, (index + 1) * third), 'part');
      parts[index] = (await mine.uploads.parts.create(id, { data })).id;
    }
    const { file } = await mine.uploads.complete(id, { part_ids: parts });
    return file?.id ?? '';
  };
  const begin = (input: string) =>
    mine.batches.create({
      input_file_id: input,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    });
  const lines = (...models: readonly string[]) =>
    models.map((model, index) => batchLine(model, `of-${index}`)).join('\n');
  await expect(begin(await uploaded(lines('gpt-a', 'gpt-both')))).rejects.toMatchObject({ status: 403 });
  await expect(begin(await uploaded(`${lines('gpt-a')}\nno request`))).rejects.toMatchObject({ status: 400 });
  // More answers of the model's longest than the budget has room for.
  const many = Array.from({ length: 13 }, () => 'gpt-a');
  await expect(begin(await uploaded(lines(...many)))).rejects.toMatchObject({ status: 429 });
  expect(a.batches.size).toBe(0);
  const input = await uploaded(lines('gpt-a', 'gpt-a'), [2, 0, 1]);
  const read = () => a.requests.filter(({ path }) => path === `/v1/files/${input}/content`).length;
  expect((await begin(input)).status).toBe('validating');
  expect(read()).toBe(1);
  const [state] = await openLedger(gateway.stores).states(mine.keyId, [budget]);
  expect(state?.reserved).toBeGreaterThan(2 * 16_384);
  expect((await begin(input)).status).toBe('validating');
  expect(read()).toBe(1);
});

test('a vector store takes the key’s own files, from the provider account where they all are', async () => {
  const { a, client } = await startStage();
  const [mine, theirs] = [await client(), await client()];
  const here = await mine.files.create({ file: await text('a'), purpose: 'assistants' });
  const there = await mine.files.create(
    { file: await text('b'), purpose: 'assistants' },
    { headers: { 'x-sluice-channel': 'b' } },
  );
  const others = await theirs.files.create({ file: await text('c'), purpose: 'assistants' });
  await expect(mine.vectorStores.create({ file_ids: [others.id] })).rejects.toMatchObject({ status: 404 });
  await expect(mine.vectorStores.create({ file_ids: [here.id, there.id] })).rejects.toMatchObject({
    status: 400,
  });
  const store = await mine.vectorStores.create({ name: 'notes', file_ids: [there.id] });
  expect(store.id).toMatch(/^vector_store_b/);
  await expect(mine.vectorStores.files.create(store.id, { file_id: here.id })).rejects.toMatchObject({
    status: 400,
  });
  expect(await mine.vectorStores.files.create(store.id, { file_id: there.id })).toMatchObject({
    at: `/v1/vector_stores/${store.id}/files`,
    body: { file_id: there.id },
  });
  await mine.vectorStores.search(store.id, { query: 'What?' });
  const requestsBefore = a.requests.length;
  await expect(theirs.vectorStores.search(store.id, { query: 'What?' })).rejects.toMatchObject({
    status: 404,
  });
  await expect(theirs.vectorStores.update(store.id, { name: 'theirs' })).rejects.toMatchObject({
    status: 404,
  });
  const answer = (from: OpenAI) =>
    from.responses.create({
      model: 'gpt-a',
      input: 'What?',
      tools: [{ type: 'file_search', vector_store_ids: [store.id] }],
    });
  await expect(answer(theirs)).rejects.toMatchObject({ status: 404 });
  expect(a.requests.length).toBe(requestsBefore);
  expect(await mine.vectorStores.delete(store.id)).toMatchObject({ deleted: true });
  expect((await mine.vectorStores.list()).data).toEqual([]);
});

test('a fine-tuning job runs where its file is, at a model that is served there and allowed', async () => {
  const { b, client } = await startStage();
  const mine = await client();
  const file = await mine.files.create(
    { file: await text('t.jsonl'), purpose: 'fine-tune' },
    { headers: { 'x-sluice-channel': 'b' } },
  );
  const create = (model: string, from = mine) =>
    from.fineTuning.jobs.create({ model, training_file: file.id });
  await expect(create('gpt-a')).rejects.toMatchObject({ status: 400 });
  const job = await create('renamed');
  expect(job).toMatchObject({ id: expect.stringMatching(/^ftjob-b/), model: 'gpt-there' });
  expect(await mine.fineTuning.jobs.listEvents(job.id)).toMatchObject({ data: [] });
  await mine.fineTuning.jobs.checkpoints.list(job.id);
  await mine.fineTuning.jobs.cancel(job.id);
  expect(b.requests.at(-1)).toMatchObject({ method: 'POST', path: `/v1/fine_tuning/jobs/${job.id}/cancel` });
  expect((await mine.fineTuning.jobs.list()).data.map(({ id }) => id)).toEqual([job.id]);
  const theirs = await client();
  await expect(theirs.fineTuning.jobs.retrieve(job.id)).rejects.toMatchObject({ status: 404 });
  await expect(theirs.fineTuning.jobs.listEvents(job.id)).rejects.toMatchObject({ status: 404 });
  const narrow = await client({ models: ['gpt-b'] });
  await expect(create('renamed', narrow)).rejects.toMatchObject({ status: 404 });
});

test('containers and evals are the key’s own, with everything below them', async () => {
  const { a, client } = await startStage();
  const [mine, theirs] = [await client(), await client()];
  const container = await mine.containers.create({ name: 'box' });
  await mine.containers.files.list(container.id);
  await mine.containers.files.create(container.id, { file: await text('f') });
  expect(a.requests.at(-1)?.path).toBe(`/v1/containers/${container.id}/files`);
  await expect(theirs.containers.files.list(container.id)).rejects.toMatchObject({ status: 404 });
  const evaluation = await mine.evals.create({
    data_source_config: { type: 'custom', item_schema: {} },
    testing_criteria: [],
  });
  await mine.evals.runs.list(evaluation.id);
  await expect(theirs.evals.runs.list(evaluation.id)).rejects.toMatchObject({ status: 404 });
  const narrow = await client({ models: ['gpt-a'] });
  await expect(
    narrow.evals.create({
      data_source_config: { type: 'custom', item_schema: {} },
      testing_criteria: [
        { type: 'label_model', name: 'n', model: 'gpt-b', input: [], labels: ['a'], passing_labels: ['a'] },
      ],
    }),
  ).rejects.toMatchObject({ status: 403 });
  // What the provider keeps for the account is other keys' too.
  await expect(
    mine.evals.create({ data_source_config: { type: 'stored_completions' }, testing_criteria: [] }),
  ).rejects.toMatchObject({ status: 400 });
  await expect(
    mine.evals.runs.create(evaluation.id, {
      data_source: { type: 'responses', model: 'gpt-a', source: { type: 'responses', metadata: {} } },
    }),
  ).rejects.toMatchObject({ status: 400 });
  expect((await mine.evals.list()).data.map(({ id }) => id)).toEqual([evaluation.id]);
});

test('a path below an object that would lead elsewhere is 404 and never asked for', async () => {
  const { a, client, gateway } = await startStage();
  const mine = await client();
  const { id } = await mine.containers.create({ name: 'box' });
  const requestsBefore = a.requests.length;
  for (const rest of ['..%2f..%2fmodels', 'files/%2e%2e%2fx', 'files//x', 'files%3Fa', 'a.b']) {
    const answer = await fetch(`${gateway.url}/v1/containers/${id}/${rest}`, {
      headers: { authorization: `Bearer ${mine.apiKey}` },
    });
    expect([rest, answer.status]).toEqual([rest, 404]);
    await answer.body?.cancel();
  }
  expect(a.requests.length).toBe(requestsBefore);
});

import { toFile } from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import fireworks from '../../../channels/fireworks/index.ts';
import siliconflow from '../../../channels/siliconflow/index.ts';
import together from '../../../channels/together/index.ts';
import voyage from '../../../channels/voyage/index.ts';
import xai from '../../../channels/xai/index.ts';
import { openLedger } from '../../../core/money/ledger/open.ts';
import { fileInForm, startObjectServer, type ObjectRequest, type Json } from '../../support/object-server.ts';
import { batchBody, budget, fileOf, reply, stageOf } from './_providers.ts';
import { charges } from './_records.ts';

const endpoint = '/v1/chat/completions';
const line = { custom_id: 'one', method: 'POST', url: endpoint, body: batchBody };
const batchOptions = { endpoint, completion_window: '24h' } as const;
const jsonIn = ({ body }: ObjectRequest): Json => JSON.parse(body.toString()) as Json;
const linesIn = (text: string): readonly Json[] =>
  text
    .trim()
    .split('\n')
    .map((one) => JSON.parse(one) as Json);

test('batches of Together are made of a file with its purpose, and told in small letters and seconds', async () => {
  const files = new Map<string, string>();
  let job: Json = {};
  const forms: string[] = [];
  const provider = await startObjectServer((request, answer) => {
    const { method, path, body } = request;
    const id = path.split('/')[3] ?? '';
    if (method === 'POST' && path === '/v1/files/upload') {
      forms.push(body.toString());
      files.set('file-1', fileInForm(body));
      return answer(200, { id: 'file-1', object: 'file', filename: 'batch.jsonl', purpose: 'batch-api' });
    }
    if (path.endsWith('/content')) return answer(200, files.get(id) ?? '');
    if (method === 'POST' && path === '/v1/batches') {
      job = {
        ...jsonIn(request),
        id: '01234567-8901-2345-6789-012345678901',
        status: 'VALIDATING',
        created_at: '2024-01-15T14:30:00Z',
        job_deadline: '2024-01-16T14:30:00Z',
        model_id: 'model-a',
      };
      return answer(201, { job, warning: 'Two lines are alike.' });
    }
    if (method === 'POST' && path.endsWith('/cancel')) job['status'] = 'CANCELLED';
    return answer(200, job);
  });
  onTestFinished(() => provider.close());
  const { gateway, client, keyId } = await stageOf(
    together({ key: 'k', baseUrl: `${provider.url}/v1`, models: ['model-a'] }),
  );
  // Bytes that look like the part of a form must come through, wherever the network cuts them.
  const text = `${JSON.stringify({ ...line, body: { ...batchBody, user: 'name="purpose"\r\n\r\nbatch\r\n' } })}\n`;
  const file = await client.files.create({
    file: await toFile(Buffer.from(text), 'b.jsonl'),
    purpose: 'batch',
  });
  expect(files.get('file-1')).toBe(text);
  expect(forms[0]).toContain('name="file_name"\r\n\r\nbatch.jsonl\r\n');
  expect(forms[0]).toContain('name="purpose"\r\n\r\nbatch-api\r\n');
  const batch = await client.batches.create({
    input_file_id: file.id,
    ...batchOptions,
    metadata: { a: 'b' },
  });
  expect(batch).toMatchObject({
    status: 'validating',
    created_at: 1_705_329_000,
    expires_at: 1_705_415_400,
    input_file_id: 'file-1',
  });
  expect(job).toMatchObject({ input_file_id: 'file-1', endpoint, completion_window: '24h' });
  files.set('out', `${JSON.stringify({ custom_id: 'one', response: { status_code: 200, body: reply } })}\n`);
  Object.assign(job, { status: 'COMPLETED', output_file_id: 'out', completed_at: '2024-01-15T15:00:00Z' });
  const done = await client.batches.retrieve(batch.id);
  expect(done).toMatchObject({ status: 'completed', output_file_id: 'out', completed_at: 1_705_330_800 });
  expect(await (await client.files.content('out')).text()).toContain('"Hi"');
  expect(await charges(gateway)).toMatchObject([{ model: 'model-a', microDollars: 3000 }]);
  const [state] = await openLedger(gateway.stores).states(keyId, [budget]);
  expect(state).toMatchObject({ spent: 3000, reserved: 0 });
});

test('pages of results of xAI are a file, of which each answer is charged', async () => {
  const batches = new Map<string, Json>();
  const provider = await startObjectServer((request, answer) => {
    const { method, path, query } = request;
    if (path === '/v1/files') return answer(200, { id: 'file-1', object: 'file', purpose: '' });
    if (method === 'POST' && path === '/v1/batches') {
      const batch: Json = {
        ...jsonIn(request),
        batch_id: `batch_${batches.size}`,
        create_time: '2026-01-15T14:30:00Z',
        expire_time: '2999-01-16T14:30:00Z',
        state: { num_requests: 0, num_pending: 0, num_success: 0, num_error: 0, num_cancelled: 0 },
      };
      batches.set(String(batch['batch_id']), batch);
      return answer(200, batch);
    }
    const [, id = '', rest = ''] = /^\/v1\/batches\/(\w+)(.*)$/.exec(path) ?? [];
    const batch = batches.get(id);
    if (batch === undefined) return answer(404, { error: 'Not found' });
    if (rest === ':cancel')
      Object.assign(batch, {
        cancel_time: '2026-01-15T15:00:00Z',
        state: { num_requests: 2, num_pending: 0, num_success: 0, num_error: 0, num_cancelled: 2 },
      });
    if (rest !== '/results') return answer(200, batch);
    const result = (name: string, batchResult: object) => ({
      batch_request_id: name,
      batch_result: batchResult,
    });
    return query.get('pagination_token') === 'next'
      ? answer(200, {
          results: [result('two', { error: { code: 3, message: 'No.' } })],
          pagination_token: null,
        })
      : answer(200, {
          results: [result('one', { response: { chat_get_completion: reply } })],
          pagination_token: 'next',
        });
  });
  onTestFinished(() => provider.close());
  const { gateway, client, keyId } = await stageOf(
    xai({ key: 'k', baseUrl: `${provider.url}/v1`, models: ['model-a'] }),
  );
  const begin = async () => {
    const file = await client.files.create({ file: await fileOf(line), purpose: 'batch' });
    return client.batches.create({ input_file_id: file.id, ...batchOptions, metadata: { name: 'nightly' } });
  };
  const batch = await begin();
  expect(batch).toMatchObject({ id: 'batch_0', status: 'validating', metadata: { name: 'nightly' } });
  expect(batches.get('batch_0')).toMatchObject({ name: 'nightly', input_file_id: 'file-1' });
  batches.get('batch_0')!['state'] = {
    num_requests: 2,
    num_pending: 0,
    num_success: 1,
    num_error: 1,
    num_cancelled: 0,
  };
  const done = await client.batches.retrieve('batch_0');
  expect(done).toMatchObject({
    status: 'completed',
    output_file_id: 'batch_0',
    request_counts: { total: 2, completed: 1, failed: 1 },
  });
  expect(linesIn(await (await client.files.content('batch_0')).text())).toMatchObject([
    { custom_id: 'one', response: { status_code: 200, body: reply }, error: null },
    { custom_id: 'two', response: null, error: { code: 3, message: 'No.' } },
  ]);
  expect(await client.files.retrieve('batch_0')).toMatchObject({ object: 'file', purpose: 'batch_output' });
  expect(await charges(gateway)).toMatchObject([{ model: 'model-a', microDollars: 3000 }]);
  const other = await begin();
  expect(await client.batches.cancel(other.id)).toMatchObject({ id: 'batch_1', status: 'cancelled' });
  expect(await client.batches.retrieve(other.id)).toMatchObject({
    status: 'cancelled',
    output_file_id: null,
  });
  const third = await begin();
  Object.assign(batches.get(third.id)!, {
    cancel_time: '2026-01-15T15:00:00Z',
    cancel_by_xai_message: 'Line 1 names a model without batches.',
  });
  expect(await client.batches.retrieve(third.id)).toMatchObject({
    status: 'failed',
    errors: { data: [{ message: 'Line 1 names a model without batches.' }] },
  });
  const [state] = await openLedger(gateway.stores).states(keyId, [budget]);
  expect(state).toMatchObject({ spent: 3000, reserved: 0 });
});

test('results of SiliconFlow are read at the address that it tells, which no client sees', async () => {
  let batch: Json = {};
  const file = {
    id: 'file-jk',
    object: 'file',
    bytes: 10,
    createdAt: 1_741_685_396,
    filename: 'b',
    purpose: 'batch',
  };
  const output = `${JSON.stringify({ custom_id: 'one', response: { status_code: 200, body: reply } })}\n`;
  const provider = await startObjectServer((request, answer) => {
    const { method, path } = request;
    const wrap = (data: Json) => answer(200, { code: 20_000, message: 'Ok', status: true, data });
    if (path === '/results') {
      expect(request.headers.authorization).toBeUndefined();
      return answer(200, output);
    }
    if (path === '/v1/files')
      return method === 'POST'
        ? wrap(file)
        : wrap({ object: 'list', data: [{ ...file, created_at: 1_741_685_396 }] });
    if (path === '/v1/batches')
      batch = { ...jsonIn(request), id: 'batch_rd', object: 'batch', status: 'in_queue', created_at: 1 };
    if (path.endsWith('/cancel')) batch['status'] = 'cancelling';
    return answer(200, batch);
  });
  onTestFinished(() => provider.close());
  const { gateway, client } = await stageOf(
    siliconflow({ key: 'k', baseUrl: `${provider.url}/v1`, models: ['model-a'] }),
    { fetch: { allow: ['127.0.0.0/8'] } },
  );
  const made = await client.files.create({ file: await fileOf(line), purpose: 'batch' });
  expect(made).toMatchObject({ id: 'file-jk', created_at: 1_741_685_396 });
  expect(await client.files.retrieve('file-jk')).toMatchObject({ id: 'file-jk', bytes: 10 });
  const { id, status } = await client.batches.create({ input_file_id: 'file-jk', ...batchOptions });
  expect(status).toBe('validating');
  Object.assign(batch, { status: 'completed', output_file_id: `${provider.url}/results`, completed_at: 2 });
  const done = await client.batches.retrieve(id);
  expect(done).toMatchObject({ status: 'completed', output_file_id: 'batch_rd-results' });
  expect(await (await client.files.content('batch_rd-results')).text()).toBe(output);
  expect(await client.files.retrieve('batch_rd-results')).toMatchObject({ filename: 'batch_rd.jsonl' });
  expect(await charges(gateway)).toMatchObject([{ model: 'model-a', microDollars: 3000 }]);
});

test('a batch of Voyage names the model of its lines, as the provider knows it', async () => {
  let batch: Json = {};
  const output = `${JSON.stringify({
    custom_id: 'one',
    response: {
      status_code: 200,
      body: {
        object: 'list',
        data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
        model: 'model-there',
        usage: { total_tokens: 3000 },
      },
    },
  })}\n`;
  const provider = await startObjectServer((request, answer) => {
    const { path } = request;
    if (path === '/v1/files')
      return answer(200, { id: 'file-in', object: 'file', created_at: '2025-12-01T19:18:23.455349+00:00' });
    if (path === '/v1/files/file-out/content') return answer(200, output);
    if (path === '/v1/batches')
      batch = {
        ...jsonIn(request),
        id: 'batch-1',
        object: 'batch',
        status: 'validating',
        created_at: '2025-12-01T19:18:24+00:00',
      };
    return answer(200, batch);
  });
  onTestFinished(() => provider.close());
  const { gateway, client } = await stageOf(
    voyage({
      key: 'k',
      baseUrl: `${provider.url}/v1`,
      models: { 'model-a': 'model-there', 'model-b': 'model-b' },
    }),
  );
  const ofLine = async (body: Json) =>
    (await client.files.create({ file: await fileOf({ custom_id: 'one', body }), purpose: 'batch' })).id;
  const make = (input_file_id: string, more: object) =>
    client.batches.create({
      input_file_id,
      endpoint: '/v1/embeddings',
      completion_window: '12h' as '24h',
      ...more,
    });
  const file = await ofLine({ input: 'a text' });
  await expect(make(file, {})).rejects.toMatchObject({ status: 400, param: 'request_params.model' });
  await expect(make(file, { model: 'model-a' })).rejects.toMatchObject({ status: 400, param: 'model' });
  await expect(make(file, { request_params: { model: 'model-c' } })).rejects.toMatchObject({ status: 400 });
  const narrow = await gateway.apiKeys.create({ name: 'narrow', models: ['model-b'] });
  const { id } = await make(file, { request_params: { model: 'model-a', input_type: 'document' } });
  expect(batch).toMatchObject({ request_params: { model: 'model-there', input_type: 'document' } });
  expect(await client.batches.retrieve(id)).toMatchObject({ created_at: 1_764_616_704 });
  Object.assign(batch, { status: 'completed', output_file_id: 'file-out' });
  expect(await client.batches.retrieve(id)).toMatchObject({ status: 'completed' });
  // Three thousand tokens at 2 dollars a million, a third less.
  expect(await charges(gateway)).toMatchObject([{ model: 'model-a', input: 3000, microDollars: 4020 }]);
  const theirs = client.withOptions({ apiKey: narrow.value });
  const own = await theirs.files.create({
    file: await fileOf({ custom_id: 'one', body: { input: 'a text' } }),
    purpose: 'batch',
  });
  const named = { request_params: { model: 'model-a' } };
  await expect(
    theirs.batches.create({
      input_file_id: own.id,
      endpoint: '/v1/embeddings',
      completion_window: '24h',
      ...named,
    }),
  ).rejects.toMatchObject({ status: 403 });
  await expect(theirs.batches.retrieve(id)).rejects.toMatchObject({ status: 404 });
});

test('datasets and jobs of a Fireworks account are files and batches', async () => {
  const datasets = new Map<string, string>();
  let job: Json = {};
  const root = '/v1/accounts/mine';
  const provider = await startObjectServer((request, answer) => {
    const { method, path, body } = request;
    if (path.startsWith('/download/')) {
      expect(request.headers.authorization).toBeUndefined();
      return answer(200, datasets.get(path.split('/')[2] ?? '') ?? '');
    }
    expect(request.headers.authorization).toBe('Bearer k');
    const [, id = '', action = ''] = /\/datasets\/([\w-]+)(?::(\w+))?$/.exec(path) ?? [];
    if (method === 'POST' && path === `${root}/datasets`) {
      datasets.set(String(jsonIn(request)['datasetId']), '');
      return answer(200, { name: `accounts/mine/datasets/${String(jsonIn(request)['datasetId'])}` });
    }
    if (action === 'upload') {
      datasets.set(id, fileInForm(body));
      return answer(200, {
        id: `accounts/mine/datasets/${id}`,
        bytes: 9,
        created_at: 1,
        filename: 'b.jsonl',
      });
    }
    if (action === 'getDownloadEndpoint')
      return answer(200, {
        filenameToSignedUrls: {
          [`dataset/${id}/error-data`]: `${provider.url}/download/errors`,
          [`dataset/${id}/BIJOutputSet.jsonl`]: `${provider.url}/download/${id}`,
        },
      });
    if (id !== '') {
      if (method === 'DELETE') datasets.delete(id);
      return answer(200, method === 'DELETE' ? {} : { name: path, createTime: '2026-08-30T03:48:42.6Z' });
    }
    if (method === 'POST' && path === `${root}/batchInferenceJobs`)
      job = {
        ...jsonIn(request),
        name: 'accounts/mine/batchInferenceJobs/job-1',
        state: 'JOB_STATE_VALIDATING',
        outputDatasetId: 'accounts/mine/datasets/bij-out',
        createTime: '2026-08-30T03:48:56.029803Z',
        jobProgress: null,
        lifecycle: null,
      };
    return answer(200, job);
  });
  onTestFinished(() => provider.close());
  const { gateway, client, keyId } = await stageOf(
    fireworks({
      key: 'k',
      account: 'mine',
      baseUrl: `${provider.url}/inference/v1`,
      models: { 'model-a': 'accounts/fireworks/models/there' },
    }),
    { fetch: { allow: ['127.0.0.0/8'] } },
  );
  const { model: _, ...nameless } = batchBody;
  const text = { custom_id: 'one', body: nameless };
  const file = await client.files.create({ file: await fileOf(text), purpose: 'batch' });
  expect(linesIn(datasets.get(file.id) ?? '')).toEqual([text]);
  expect(await client.files.retrieve(file.id)).toMatchObject({ id: file.id, created_at: 1_788_061_722 });
  const named = { model: 'model-a' };
  const batch = await client.batches.create({ input_file_id: file.id, ...batchOptions, ...named });
  expect(job).toMatchObject({
    model: 'accounts/fireworks/models/there',
    inputDatasetId: `accounts/mine/datasets/${file.id}`,
  });
  expect(batch).toMatchObject({ id: 'job-1', status: 'validating', input_file_id: file.id });
  await expect(client.batches.cancel('job-1')).rejects.toMatchObject({ status: 400 });
  const [held] = await openLedger(gateway.stores).states(keyId, [budget]);
  expect(held?.reserved).toBeGreaterThan(4000);
  datasets.set('bij-out', `${JSON.stringify({ custom_id: 'one', response: reply })}\n`);
  Object.assign(job, {
    state: 'JOB_STATE_COMPLETED',
    jobProgress: { totalInputRequests: 1, totalProcessedRequests: 1, successfullyProcessedRequests: 1 },
    lifecycle: { endTime: '2026-08-30T03:56:56Z' },
  });
  expect(await client.batches.retrieve('job-1')).toMatchObject({
    status: 'completed',
    output_file_id: 'bij-out',
    request_counts: { total: 1, completed: 1, failed: 0 },
  });
  expect(linesIn(await (await client.files.content('bij-out')).text())).toMatchObject([
    { custom_id: 'one', response: { status_code: 200, body: reply }, error: null },
  ]);
  expect(await charges(gateway)).toMatchObject([{ model: 'model-a', microDollars: 3000 }]);
  expect(await client.files.delete(file.id)).toMatchObject({ deleted: true });
  expect(datasets.has(file.id)).toBe(false);
});

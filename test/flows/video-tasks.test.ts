import { request } from 'node:http';
import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import doubao from '../../channels/doubao.ts';
import kling from '../../channels/kling/index.ts';
import sora from '../../channels/sora.ts';
import vidu from '../../channels/vidu.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { type Ledger } from '../../core/money/ledger/index.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { type UsageLog } from '../../core/money/usage-log/index.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { connectionOf } from '../support/sqlite.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';
import { fetchRaw, type Access } from './_wire.ts';

type Json = Record<string, unknown>;
let upstream: ScriptedUpstream;
let gateway: TestGateway;
let ledger: Ledger;
let usageLog: UsageLog;
let script: (request: SeenRequest, response: ServerResponse) => void = ordinary;

/** A provider of several formats whose tasks never end by themselves. */
function ordinary({ method, url }: SeenRequest, response: ServerResponse): void {
  const send = (body: Json): void =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  if (url.startsWith('/v1/videos')) {
    if (method === 'POST' && url.includes('2video'))
      send({ code: 0, data: { task_id: 'k', task_status: 'submitted' } });
    else if (url.includes('2video')) send({ code: 0, data: { task_id: 'k', task_status: 'processing' } });
    else send({ id: 's', object: 'video', status: 'in_progress', progress: 40 });
  } else if (url.startsWith('/ark'))
    send(method === 'GET' ? { id: 'a', status: 'queued' } : method === 'POST' ? { id: 'a' } : {});
  else if (url.endsWith('/cancel')) send({});
  else send(method === 'POST' ? { task_id: 'v', state: 'created' } : { state: 'processing', creations: [] });
}

const models = ['sora-2', 'kling-v1', 'doubao-seedance-1', 'viduq2'];
beforeAll(async () => {
  upstream = await startUpstream((seen, response) => script(seen, response));
  gateway = await startGateway({
    plugins: [videoTasks({ poll: { first: 30, most: 50, patience: 500 }, fresh: 0 })],
    channels: [
      sora({ key: 's', baseUrl: `${upstream.url}/v1`, models: ['sora-2'] }),
      kling({ key: 'k|k', baseUrl: upstream.url, models: ['kling-v1'] }),
      doubao({ key: 'a', baseUrl: `${upstream.url}/ark`, models: ['doubao-seedance-1'] }),
      vidu({ key: 'v', baseUrl: `${upstream.url}/vidu`, models: ['viduq2'] }),
    ],
    prices: Object.fromEntries(models.map((model) => [model, { perSecond: 0.1, perCall: 0.01 }])),
  });
  ledger = openLedger(gateway.stores);
  usageLog = openUsageLog(gateway.stores);
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
afterEach(() => {
  script = ordinary;
});

async function newAccess(budget?: number): Promise<Access & { readonly id: string }> {
  const { value, record } = await gateway.apiKeys.create({
    name: 'own',
    ...(budget === undefined ? {} : { budgets: [{ unit: 'micro-dollar', period: 'total', amount: budget }] }),
  });
  return { url: gateway.url, key: value, id: record.id };
}

async function json(
  access: Access,
  path: string,
  body?: Json,
  method?: string,
): Promise<Json & { readonly $status: number }> {
  const answer = await fetchRaw(access, path, {
    ...(body === undefined ? {} : { body }),
    ...(method === undefined ? {} : { method }),
  });
  return { ...(JSON.parse(answer.text) as Json), $status: answer.status };
}

async function spent({ id }: { readonly id: string }): Promise<number | undefined> {
  const [total] = await ledger.states(id, [{ unit: 'micro-dollar', period: 'total', amount: 1e9 }]);
  return total === undefined ? undefined : total.spent + total.reserved;
}

async function recorded({ id }: { readonly id: string }): Promise<readonly (readonly [string, number])[]> {
  const { records } = await usageLog.page({ keyId: id }, 50);
  return records.map(({ operation, microDollars = 0 }) => [operation, microDollars] as const);
}

/** The time that tasks have is over; a question that is on its way does not know it yet. */
function endTime(): void {
  connectionOf(gateway.stores).exec('UPDATE tasks SET deadline = 0');
}

describe('money', () => {
  test('a task that is not finished in time has failed, and is given back once', async () => {
    const access = await newAccess();
    const made = await json(access, '/v1/videos', { model: 'sora-2', prompt: 'x', seconds: '8' });
    expect(await spent(access)).toBe(810_000);
    await expect
      .poll(async () => {
        endTime();
        return (await json(access, `/v1/videos/${String(made.id)}`)).status;
      })
      .toBe('failed');
    expect(await json(access, `/v1/videos/${String(made.id)}`)).toMatchObject({
      error: { code: 'task_timeout' },
      progress: 100,
    });
    expect(await spent(access)).toBe(0);
    expect((await recorded(access)).toSorted()).toEqual([
      ['create-video', 810_000],
      ['refund', -810_000],
    ]);
  });

  test('a budget holds, also for a hundred at once, and what is given back may be spent again', async () => {
    const access = await newAccess(2 * 410_000 + 5);
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => json(access, '/v1/videos', { model: 'sora-2', prompt: 'x' })),
    );
    expect(answers.filter(({ $status }) => $status === 200)).toHaveLength(2);
    expect(answers.filter(({ $status }) => $status === 429)).toHaveLength(98);
    expect(await spent(access)).toBe(820_000);
    await expect
      .poll(() => {
        endTime();
        return spent(access);
      })
      .toBe(0);
    expect((await json(access, '/v1/videos', { model: 'sora-2', prompt: 'x' })).$status).toBe(200);
  });

  test('a request that the provider refuses costs nothing, and is recorded once', async () => {
    script = (_request, response) =>
      void response
        .writeHead(400, { 'content-type': 'application/json' })
        .end('{"error":{"message":"no moons","type":"invalid_request_error","param":"prompt","code":null}}');
    const access = await newAccess();
    const refused = await json(access, '/v1/videos', { model: 'sora-2', prompt: 'x' });
    expect(refused).toMatchObject({ $status: 400, error: { message: 'no moons', param: 'prompt' } });
    expect(await spent(access)).toBe(0);
    await expect.poll(() => recorded(access)).toEqual([['create-video', 0]]);
    expect(await json(access, '/v1/videos')).toMatchObject({ data: [] });
  });

  test('a client that leaves while its task is made finds it in its list, paid for once', async () => {
    const access = await newAccess();
    const begun = Promise.withResolvers<ServerResponse>();
    script = (seen, response) => {
      if (seen.method === 'POST') begun.resolve(response);
      else ordinary(seen, response);
    };
    const client = request(new URL('/v1/videos', gateway.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${access.key}`, 'content-type': 'application/json' },
      agent: false,
    });
    client.on('error', () => {});
    client.end(JSON.stringify({ model: 'sora-2', prompt: 'x' }));
    const response = await begun.promise;
    client.destroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"late","status":"queued"}');
    await expect.poll(async () => ((await json(access, '/v1/videos')).data as unknown[]).length).toBe(1);
    expect(await spent(access)).toBe(410_000);
    await expect
      .poll(async () => (await recorded(access)).filter(([name]) => name === 'create-video'))
      .toEqual([['create-video', 410_000]]);
  });

  test('a task that cannot be kept is stopped at the provider, told as an error, and costs nothing', async () => {
    const access = await newAccess();
    const connection = connectionOf(gateway.stores);
    connection.exec("CREATE TRIGGER full BEFORE INSERT ON tasks BEGIN SELECT RAISE(ABORT, 'disk full'); END");
    try {
      const before = upstream.requests.length;
      const refused = await json(access, '/v1/videos', { model: 'sora-2', prompt: 'x' });
      expect(refused).toMatchObject({ $status: 503, error: { code: 'server_is_overloaded' } });
      expect(upstream.requests.slice(before).map(({ method, url }) => `${method} ${url}`)).toContain(
        'DELETE /v1/videos/s',
      );
    } finally {
      connection.exec('DROP TRIGGER full');
    }
    await expect.poll(() => recorded(access)).toEqual([['create-video', 0]]);
    expect(await spent(access)).toBe(0);
  });
});

describe('a task is ended by its owner', () => {
  test.each([
    [
      'ark',
      '/api/v3/contents/generations/tasks',
      { model: 'doubao-seedance-1', content: [{ type: 'text', text: 'x' }] },
    ],
    ['vidu', '/ent/v2/text2video', { model: 'viduq2', prompt: 'x' }],
  ] as const)('in %s, and is given back once', async (format, path, body) => {
    const access = await newAccess();
    const made = await json(access, path, body);
    const id = String(made.id ?? made.task_id);
    const end = (): Promise<Json & { readonly $status: number }> =>
      format === 'ark'
        ? json(access, `${path}/${id}`, undefined, 'DELETE')
        : json(access, `/ent/v2/tasks/${id}/cancel`, {});
    expect(await spent(access)).toBe(510_000);
    expect((await end()).$status).toBe(200);
    expect(await spent(access)).toBe(0);
    const seen = await json(access, `/v1/videos/${id}`);
    expect(seen).toMatchObject({ status: 'failed', error: { code: 'cancelled' } });
    const own = await json(access, format === 'ark' ? `${path}/${id}` : `/ent/v2/tasks/${id}/creations`);
    expect(own.status ?? own.state).toBe('cancelled');
    await end();
    expect(await spent(access)).toBe(0);
    expect((await recorded(access)).filter(([name]) => name === 'refund')).toHaveLength(1);
  });

  test('unless its provider cannot stop: then it goes on', async () => {
    const access = await newAccess();
    const made = await json(access, '/v1/videos', { model: 'kling-v1', prompt: 'x' });
    const refused = await json(access, `/v1/videos/${String(made.id)}`, undefined, 'DELETE');
    expect(refused).toMatchObject({
      $status: 400,
      error: { message: expect.stringContaining('does not support cancellation') },
    });
    expect((await json(access, `/v1/videos/${String(made.id)}`)).$status).toBe(200);
  });
});

test('lists of each format show the tasks that were made in it', async () => {
  const access = await newAccess();
  const ark = await json(access, '/api/v3/contents/generations/tasks', {
    model: 'doubao-seedance-1',
    content: [{ type: 'text', text: 'x' }],
  });
  const text = await json(access, '/kling/v1/videos/text2video', { model_name: 'kling-v1', prompt: 'x' });
  const image = await json(access, '/kling/v1/videos/image2video', {
    model_name: 'kling-v1',
    prompt: 'x',
    image: 'https://img.example/a.png',
  });
  const idsOf = (list: unknown, name: string): unknown[] => (list as Json[]).map((one) => one[name]);
  expect(idsOf((await json(access, '/api/v3/contents/generations/tasks?page_size=5')).items, 'id')).toEqual([
    ark.id,
  ]);
  const taskId = (answer: Json): unknown => (answer.data as Json).task_id;
  expect(
    idsOf((await json(access, '/kling/v1/videos/text2video?pageNum=1&pageSize=30')).data, 'task_id'),
  ).toEqual([taskId(text)]);
  expect(idsOf((await json(access, '/kling/v1/videos/image2video')).data, 'task_id')).toEqual([
    taskId(image),
  ]);
  expect(idsOf((await json(access, '/v1/videos')).data, 'id')).toHaveLength(3);
  expect((await json(access, '/v1/videos?limit=0')).$status).toBe(400);
  expect((await json(access, '/v1/videos?after=video_none')).$status).toBe(400);
});

test('each format refuses in its own envelope', async () => {
  const access = await newAccess();
  expect(await json(access, '/kling/v1/videos/text2video', { prompt: 'x' })).toMatchObject({
    $status: 400,
    code: 1201,
    message: expect.stringContaining('model_name'),
    request_id: expect.any(String),
  });
  expect(
    await json(access, '/jimeng/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31', { prompt: 'x' }),
  ).toMatchObject({
    $status: 400,
    status: 50_215,
    message: expect.stringContaining('req_key'),
  });
  expect(await json(access, '/jimeng/?Action=Dance', {})).toMatchObject({ $status: 400, code: 50_215 });
  expect(
    await json(access, '/jimeng/?Action=CVSync2AsyncGetResult', { req_key: 'x', task_id: 'task_none' }),
  ).toMatchObject({ $status: 404, code: 50_215 });
  expect(await json(access, '/api/v3/contents/generations/tasks', { model: 'x' })).toMatchObject({
    $status: 400,
    error: { code: 'MissingParameter', param: 'content', type: 'BadRequest' },
  });
  expect(await json(access, '/ent/v2/img2video', { model: 'x', prompt: 'y' })).toMatchObject({
    $status: 400,
    code: 400,
    reason: 'BadRequest',
    metadata: { field: 'images' },
  });
  expect(await json(access, '/v1/video/generations', { model: 'x' })).toMatchObject({
    $status: 400,
    error: { param: 'prompt' },
  });
  expect(await json({ ...access, key: 'sk-nobody' }, '/kling/v1/videos/text2video/x')).toMatchObject({
    $status: 401,
    code: 1002,
  });
  expect(await json(access, '/v1/videos', { model: 'nobody-serves-this', prompt: 'x' })).toMatchObject({
    $status: 503,
    error: { code: 'no_available_channel' },
  });
});

test('a key that may not use a model cannot make it anew either', async () => {
  script = (seen, response) =>
    seen.method === 'POST' && seen.url.endsWith('/videos')
      ? void response
          .writeHead(200, { 'content-type': 'application/json' })
          .end('{"id":"s","status":"completed","progress":100}')
      : ordinary(seen, response);
  const access = await newAccess();
  const made = await json(access, '/v1/videos', { model: 'sora-2', prompt: 'x' });
  const before = upstream.requests.length;
  const anew = await json(access, `/v1/videos/${String(made.id)}/remix`, { prompt: 'y' });
  expect(anew).toMatchObject({ $status: 200, model: 'sora-2', remixed_from_video_id: made.id });
  // Tasks of other tests are asked about at the same time.
  expect(upstream.requests.slice(before)).toContainEqual(
    expect.objectContaining({ method: 'POST', url: '/v1/videos/s/remix' }),
  );
  expect((await usageLog.page({ keyId: access.id }, 1)).records[0]).toMatchObject({ model: 'sora-2' });
  await gateway.apiKeys.update(access.id, { models: ['kling-*'] });
  await expect
    .poll(async () => (await json(access, `/v1/videos/${String(made.id)}/remix`, { prompt: 'y' })).$status)
    .toBe(403);
});

import { GoogleGenAI } from '@google/genai';
import { expect, onTestFinished, test } from 'vitest';
import gemini from '../../../channels/gemini.ts';
import { openLedger } from '../../../core/money/ledger/open.ts';
import { openUsageLog } from '../../../core/money/usage-log/open.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startGeminiObjects, type GeminiObjects } from '../../support/gemini-objects.ts';
import { charges } from './_records.ts';

interface Stage {
  readonly a: GeminiObjects;
  readonly b: GeminiObjects;
  readonly gateway: TestGateway;
  client(record?: object): Promise<GoogleGenAI & { readonly keyId: string }>;
}

async function startStage(options: Parameters<typeof providerObjects>[0] = {}): Promise<Stage> {
  const a = await startGeminiObjects();
  const b = await startGeminiObjects();
  const gateway = await startGateway({
    plugins: [providerObjects({ poll: { first: 60_000, most: 60_000 }, ...options })],
    prices: { 'gemini-*': { input: 1, output: 4, cacheRead: 0.1 } },
    channels: [
      gemini({
        id: 'a',
        key: 'AIza-of-a',
        baseUrl: `${a.url}/v1beta`,
        models: ['gemini-a', 'gemini-both'],
        priority: 1,
      }),
      gemini({
        id: 'b',
        key: 'AIza-of-b',
        baseUrl: `${b.url}/v1beta`,
        models: { 'gemini-both': 'gemini-both', 'gemini-b': 'gemini-there' },
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
      const client = new GoogleGenAI({ apiKey: value, httpOptions: { baseUrl: gateway.url } });
      return Object.assign(client, { keyId: made.id });
    },
  };
}

const blob = (text: string): Blob => new Blob([text], { type: 'text/plain' });

test('a file is uploaded in the resumable protocol by the official SDK, used by its uri, and seen by its key alone', async () => {
  const { a, b, client, gateway } = await startStage();
  const [mine, theirs] = [await client(), await client()];
  const file = await mine.files.upload({ file: blob('a b c'), config: { mimeType: 'text/plain' } });
  expect(file).toMatchObject({
    name: expect.stringMatching(/^files\/x\d+-id$/),
    sizeBytes: '5',
    state: 'ACTIVE',
  });
  expect(a.requests.every(({ headers }) => headers['x-goog-api-key'] === 'AIza-of-a')).toBe(true);
  const name = file.name ?? '';
  const listed: (string | undefined)[] = [];
  for await (const one of await mine.files.list()) listed.push(one.name);
  expect(listed).toEqual([name]);
  const generate = (from: GoogleGenAI, uri: string | undefined = file.uri) =>
    from.models.generateContent({
      model: 'gemini-both',
      contents: [{ role: 'user', parts: [{ fileData: { fileUri: uri ?? '', mimeType: 'text/plain' } }] }],
    });
  for (let time = 0; time < 3; time += 1) expect((await generate(mine)).text).toBe('Hi');
  expect(b.requests).toEqual([]);
  await expect(generate(theirs)).rejects.toMatchObject({ status: 404 });
  // Other spellings of the provider's addresses lead nowhere.
  await expect(generate(theirs, file.uri?.replace('/files/', '/./files/'))).rejects.toMatchObject({
    status: 400,
  });
  await expect(theirs.files.get({ name })).rejects.toMatchObject({ status: 404 });
  const stranger = await fetch(`${gateway.url}/v1beta/${name}:download?alt=media`);
  expect(stranger.status).toBe(401);
  await stranger.body?.cancel();
  await mine.files.delete({ name });
  await expect(mine.files.get({ name })).rejects.toMatchObject({ status: 404 });
});

test('an upload goes on only for the key that began it, and never where a provider would send it', async () => {
  const { a, gateway } = await startStage();
  const [mine, theirs] = [
    await gateway.apiKeys.create({ name: 'a' }),
    await gateway.apiKeys.create({ name: 'b' }),
  ];
  const begun = await fetch(`${gateway.url}/upload/v1beta/files`, {
    method: 'POST',
    headers: {
      'x-goog-api-key': mine.value,
      'x-goog-upload-protocol': 'resumable',
      'x-goog-upload-command': 'start',
      'content-type': 'application/json',
    },
    body: '{"file":{"displayName":"d"}}',
  });
  const url = begun.headers.get('x-goog-upload-url') ?? '';
  expect(url).toContain(`${gateway.url}/upload/v1beta/files?upload_id=`);
  expect(url).not.toContain('x1-id');
  const go = (key: string, text: string, offset: number, command: string) =>
    fetch(url, {
      method: 'POST',
      headers: {
        'x-goog-api-key': key,
        'x-goog-upload-command': command,
        'x-goog-upload-offset': String(offset),
      },
      body: text,
    });
  const refused = await go(theirs.value, 'x', 0, 'upload, finalize');
  expect([refused.status, await refused.json()]).toMatchObject([404, { error: { status: 'NOT_FOUND' } }]);
  const first = await go(mine.value, 'one ', 0, 'upload');
  expect([first.status, first.headers.get('x-goog-upload-status')]).toEqual([200, 'active']);
  await first.body?.cancel();
  const last = await go(mine.value, 'two', 4, 'upload, finalize');
  expect(last.headers.get('x-goog-upload-status')).toBe('final');
  const { file } = (await last.json()) as { file: { name: string; sizeBytes: string } };
  expect(file.sizeBytes).toBe('7');
  const content = await fetch(`${gateway.url}/v1beta/${file.name}:download?alt=media`, {
    headers: { 'x-goog-api-key': mine.value },
  });
  expect(await content.text()).toBe('one two');
  expect(a.requests.at(-1)?.path).toBe(`/v1beta/${file.name}:download`);
});

test('a cached content is made where its model is, used by its name there, changed and deleted', async () => {
  const { a, b, client } = await startStage();
  const [mine, theirs] = [await client(), await client()];
  const cache = await mine.caches.create({
    model: 'gemini-b',
    config: { contents: 'long text', ttl: '60s' },
  });
  expect(a.requests).toEqual([]);
  expect(JSON.parse(b.requests[0]?.body.toString() ?? '')).toMatchObject({ model: 'models/gemini-there' });
  const name = cache.name ?? '';
  const generate = (from: GoogleGenAI, model: string) =>
    from.models.generateContent({ model, contents: 'Hello', config: { cachedContent: name } });
  for (let time = 0; time < 3; time += 1) expect((await generate(mine, 'gemini-both')).text).toBe('Hi');
  expect(a.requests).toEqual([]);
  await expect(generate(mine, 'gemini-a')).rejects.toMatchObject({ status: 400 });
  await expect(generate(theirs, 'gemini-b')).rejects.toMatchObject({ status: 404 });
  expect(await mine.caches.update({ name, config: { ttl: '90s' } })).toMatchObject({ name, ttl: '90s' });
  const listed: (string | undefined)[] = [];
  for await (const one of await mine.caches.list()) listed.push(one.name);
  expect(listed).toEqual([name]);
  await expect(theirs.caches.delete({ name })).rejects.toMatchObject({ status: 404 });
  await mine.caches.delete({ name });
  await expect(generate(mine, 'gemini-b')).rejects.toMatchObject({ status: 404 });
});

test('the keeping of a cached content is charged by the hour, more when it is kept for longer, and what is left is given back', async () => {
  const { b, client, gateway } = await startStage();
  const budget = { unit: 'micro-dollar', period: 'total', amount: 2_000_000 } as const;
  const mine = await client({ budgets: [budget] });
  const spent = async () => {
    const [state] = await openLedger(gateway.stores).states(mine.keyId, [budget]);
    return { spent: state?.spent ?? 0, reserved: state?.reserved };
  };
  const create = (ttl: string) =>
    mine.caches.create({ model: 'gemini-b', config: { contents: 'x'.repeat(400_000), ttl } });
  // Up to 400,000 tokens at a dollar a million and hour: for six hours that is more than there is.
  await expect(create('21600s')).rejects.toMatchObject({ status: 429 });
  expect(b.requests).toEqual([]);
  const { name = '', usageMetadata } = await create('7200s');
  const tokens = usageMetadata?.totalTokenCount ?? 0;
  expect(tokens).toBeGreaterThan(100_000);
  expect(await spent()).toEqual({ spent: 2 * tokens, reserved: 0 });
  // Used at the price of what is read from a cache: a thousand tokens at 0.1, three at 1 and two at 4 dollars a million.
  await mine.models.generateContent({
    model: 'gemini-b',
    contents: 'Hello',
    config: { cachedContent: name },
  });
  await eventually(async () => expect((await spent()).spent).toBe(2 * tokens + 111));
  await expect(mine.caches.update({ name, config: { ttl: '864000s' } })).rejects.toMatchObject({
    status: 429,
  });
  await mine.caches.update({ name, config: { ttl: '18000s' } });
  // Five hours from now on, which is a little later.
  const five = (await spent()).spent;
  expect(five).toBeGreaterThanOrEqual(5 * tokens + 111);
  expect(five).toBeLessThan(5.1 * tokens);
  await mine.caches.delete({ name });
  const rest = await spent();
  expect(rest.spent).toBeGreaterThanOrEqual(111);
  expect(rest.spent).toBeLessThan(0.1 * tokens);
  expect(rest.reserved).toBe(0);
  const { records } = await openUsageLog(gateway.stores).page({}, 100);
  const stored = records.filter(({ operation }) => operation === 'cache-storage');
  expect(stored.map(({ microDollars = 0 }) => Math.sign(microDollars))).toEqual([-1, 1, 1]);
  expect(stored.map(({ keyId, model, upstreamModel }) => [keyId, model, upstreamModel])).toEqual(
    stored.map(() => [mine.keyId, 'gemini-b', 'gemini-there']),
  );
  expect(stored.reduce((sum, { microDollars = 0 }) => sum + microDollars, 111)).toBe(rest.spent);
});

test('a cached content whose keeping has no price, or is free, is not charged', async () => {
  const content = { model: 'gemini-b', config: { contents: 'long', ttl: '60s' } };
  const unpriced = await startStage({ cacheStorage: {} });
  await (await unpriced.client()).caches.create(content);
  const { records } = await openUsageLog(unpriced.gateway.stores).page({}, 100);
  expect(records.filter(({ operation }) => operation === 'cache-storage')).toEqual([]);
  const free = await startStage({ cacheStorage: { 'gemini-*': 0 } });
  for (const unit of ['micro-dollar', 'token'] as const) {
    const budget = { unit, period: 'total', amount: 1 } as const;
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const mine = await free.client({ budgets: [budget] });
    // oxlint-disable-next-line no-await-in-loop -- as above
    await mine.caches.create(content);
    // oxlint-disable-next-line no-await-in-loop -- as above
    const [state] = await openLedger(free.gateway.stores).states(mine.keyId, [budget]);
    expect(state).toMatchObject({ spent: 0, reserved: 0 });
  }
});

test('a file search store takes the key’s own files, and only its key searches in it', async () => {
  const { a, client } = await startStage();
  const [mine, theirs] = [await client(), await client()];
  const { name = '' } = await mine.fileSearchStores.create({ config: { displayName: 'notes' } });
  const file = await mine.files.upload({ file: blob('a b c'), config: { mimeType: 'text/plain' } });
  const foreign = await theirs.files.upload({ file: blob('d'), config: { mimeType: 'text/plain' } });
  const put = (from: GoogleGenAI, fileName = '') =>
    from.fileSearchStores.importFile({ fileSearchStoreName: name, fileName });
  expect(await put(mine, file.name)).toMatchObject({ name: `${name}/operations/o-1` });
  await expect(put(mine, foreign.name)).rejects.toMatchObject({ status: 404 });
  await expect(put(theirs, foreign.name)).rejects.toMatchObject({ status: 404 });
  const documents: (string | undefined)[] = [];
  for await (const one of await mine.fileSearchStores.documents.list({ parent: name }))
    documents.push(one.name);
  expect(documents).toEqual([`${name}/documents/d-1`]);
  const generate = (from: GoogleGenAI, fileSearchStoreNames = [name]) =>
    from.models.generateContent({
      model: 'gemini-both',
      contents: 'What?',
      config: { tools: [{ fileSearch: { fileSearchStoreNames } }] },
    });
  expect((await generate(mine)).text).toBe('Hi');
  const requestsBefore = a.requests.length;
  await expect(generate(theirs)).rejects.toMatchObject({ status: 404 });
  await expect(generate(mine, ['fileSearchStores/of-another'])).rejects.toMatchObject({ status: 404 });
  await expect(theirs.fileSearchStores.documents.list({ parent: name })).rejects.toMatchObject({
    status: 404,
  });
  expect(a.requests.length).toBe(requestsBefore);
  const listed = async (from: GoogleGenAI) => {
    const names: (string | undefined)[] = [];
    for await (const one of await from.fileSearchStores.list()) names.push(one.name);
    return names;
  };
  expect([await listed(mine), await listed(theirs)]).toEqual([[name], []]);
  await mine.fileSearchStores.delete({ name, config: { force: true } });
  expect(a.requests.at(-1)?.query.get('force')).toBe('true');
  await expect(mine.fileSearchStores.get({ name })).rejects.toMatchObject({ status: 404 });
});

const answer = {
  response: {
    candidates: [],
    usageMetadata: { promptTokenCount: 100, candidatesTokenCount: 50, totalTokenCount: 150 },
  },
};

test('a batch of requests in its body is charged once it has come to its end, and seen by its key alone', async () => {
  const { b, client, gateway } = await startStage();
  const [mine, theirs] = [await client(), await client()];
  const job = await mine.batches.create({
    model: 'gemini-b',
    src: [{ contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }],
  });
  const name = job.name ?? '';
  expect(b.requests[0]?.path).toBe('/v1beta/models/gemini-there:batchGenerateContent');
  await expect(theirs.batches.get({ name })).rejects.toMatchObject({ status: 404 });
  b.finish(name.replace('batches/', ''), [answer, answer, { error: { code: 3 } }], 'inline');
  const done = await mine.batches.get({ name });
  expect(done).toMatchObject({ state: 'JOB_STATE_SUCCEEDED' });
  expect(done.dest?.inlinedResponses).toHaveLength(3);
  const records = await charges(gateway);
  expect(records).toHaveLength(1);
  // Twice 100 tokens at 1 and 50 at 4 dollars a million, at half the price.
  expect(records[0]).toMatchObject({ model: 'gemini-b', input: 200, output: 100, microDollars: 300 });
  const listed: (string | undefined)[] = [];
  for await (const one of await mine.batches.list()) listed.push(one.name);
  expect(listed).toEqual([name]);
  await mine.batches.delete({ name });
  await expect(mine.batches.get({ name })).rejects.toMatchObject({ status: 404 });
});

test('the requests of a batch stand in one place and are for the model of its path', async () => {
  const { b, gateway } = await startStage();
  const inputConfig = { requests: { requests: [{ request: { contents: [{ parts: [{ text: 'a' }] }] } }] } };
  const make = async (batch: object) => {
    const answered = await fetch(`${gateway.url}/v1beta/models/gemini-b:batchGenerateContent`, {
      method: 'POST',
      headers: { 'x-goog-api-key': gateway.key, 'content-type': 'application/json' },
      body: JSON.stringify({ batch }),
    });
    return [answered.status, await answered.text()] as const;
  };
  for (const batch of [
    {},
    { inputConfig: { ...inputConfig, fileName: 'files/f' } },
    { inputConfig, input_config: inputConfig },
    { inputConfig, model: 'models/gemini-a' },
    { inputConfig: { requests: { requests: 'none' } } },
  ])
    expect([JSON.stringify(batch), (await make(batch))[0]]).toEqual([JSON.stringify(batch), 400]);
  expect(b.requests).toEqual([]);
  expect((await make({ inputConfig, model: 'models/gemini-b' }))[0]).toBe(200);
  expect(JSON.parse(b.requests[0]?.body.toString() ?? '')).toMatchObject({
    batch: { model: 'models/gemini-there' },
  });
});

test('a batch of the lines of a file leaves a file that its key can download', async () => {
  const { a, client, gateway } = await startStage();
  const mine = await client();
  const line = JSON.stringify({ key: 'one', request: { contents: [{ parts: [{ text: 'Hello' }] }] } });
  const src = await mine.files.upload({ file: blob(`${line}\n`), config: { mimeType: 'jsonl' } });
  const job = await mine.batches.create({ model: 'gemini-a', src: src.name ?? '' });
  const id = (job.name ?? '').replace('batches/', '');
  a.finish(id, [{ key: 'one', ...answer }], 'file');
  const done = await mine.batches.get({ name: job.name ?? '' });
  const output = await mine.files.get({ name: done.dest?.fileName ?? '' });
  expect(output.name).toBe(done.dest?.fileName);
  expect(await charges(gateway)).toMatchObject([{ input: 100, output: 50, microDollars: 150 }]);
  const other = await mine.files.upload({ file: blob('no request'), config: { mimeType: 'text/plain' } });
  await expect(mine.batches.create({ model: 'gemini-a', src: other.name ?? '' })).rejects.toMatchObject({
    status: 400,
  });
  const named = JSON.stringify({ request: { model: 'models/gemini-both', contents: [{ parts: [] }] } });
  const another = await mine.files.upload({ file: blob(named), config: { mimeType: 'jsonl' } });
  await expect(mine.batches.create({ model: 'gemini-a', src: another.name ?? '' })).rejects.toMatchObject({
    status: 400,
  });
});

test('a batch of a file that comes in several requests is known line by line, wherever it was cut', async () => {
  const { a, client } = await startStage();
  const mine = await client();
  const line = (text: string) =>
    JSON.stringify({ key: 'one', request: { contents: [{ parts: [{ text }] }] } });
  // The official SDK sends eight mebibytes at a time: in the middle of a line.
  const lines = Array.from({ length: 20 }, () => line('x'.repeat(900_000)));
  const uploaded = async (text: string) =>
    (await mine.files.upload({ file: blob(text), config: { mimeType: 'jsonl' } })).name ?? '';
  const requestsBefore = a.requests.length;
  const good = await uploaded(lines.join('\n'));
  expect(a.requests.length - requestsBefore).toBeGreaterThan(3);
  expect((await mine.batches.create({ model: 'gemini-a', src: good })).name).toMatch(/^batches\//);
  const bad = await uploaded([...lines, 'no request'].join('\n'));
  await expect(mine.batches.create({ model: 'gemini-a', src: bad })).rejects.toMatchObject({ status: 400 });
  const theirs = await client();
  const other = await theirs.files.upload({ file: blob('x'), config: { mimeType: 'text/plain' } });
  const named = JSON.stringify({
    request: { contents: [{ parts: [{ fileData: { fileUri: other.uri } }] }] },
  });
  const foreign = await uploaded([...lines, named].join('\n'));
  await expect(mine.batches.create({ model: 'gemini-a', src: foreign })).rejects.toMatchObject({
    status: 404,
  });
});

test('a file goes straight into a file search store that is the key’s own, in the resumable protocol of the official SDK', async () => {
  const { a, client } = await startStage({ fileSize: 4096 });
  const [mine, theirs] = [await client(), await client()];
  const { name = '' } = await mine.fileSearchStores.create({ config: { displayName: 'notes' } });
  const upload = (from: GoogleGenAI, text: string, store = name) =>
    from.fileSearchStores.uploadToFileSearchStore({
      fileSearchStoreName: store,
      file: blob(text),
      config: { mimeType: 'text/plain', displayName: 'a page' },
    });
  const operation = await upload(mine, 'a b c');
  expect(operation).toMatchObject({ name: `${name}/upload/operations/o-1`, done: true });
  const sent = a.requests.filter(({ path }) => path === `/upload/v1beta/${name}:uploadToFileSearchStore`);
  expect(sent.map(({ body }) => body.toString())).toEqual([
    expect.stringContaining('"displayName":"a page"') as string,
    'a b c',
  ]);
  expect(sent[1]?.headers['x-goog-upload-command']).toBe('upload, finalize');
  await expect(upload(theirs, 'x')).rejects.toMatchObject({ status: 404 });
  await expect(upload(mine, 'x', 'fileSearchStores/of-another')).rejects.toMatchObject({ status: 404 });
  await expect(upload(mine, 'x'.repeat(5000))).rejects.toMatchObject({ status: 413 });
});

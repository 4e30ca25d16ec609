import { toFile } from 'openai';
import { describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { batchLine, startStage, type Stage } from './_stage.ts';

type Client = Awaited<ReturnType<Stage['client']>>;

/** Objects of one key, at the provider that is asked first. */
interface Objects {
  readonly file: string;
  readonly container: string;
  readonly store: string;
}

async function objectsOf(client: Client): Promise<Objects> {
  const file = await client.files.create({
    file: await toFile(Buffer.from('secret'), 'secret.txt'),
    purpose: 'user_data',
  });
  const container = await client.containers.create({ name: 'box' });
  const store = await client.vectorStores.create({ name: 'notes' });
  return { file: file.id, container: container.id, store: store.id };
}

/** Two keys with objects each. */
async function start(options: Parameters<typeof startStage>[0] = {}) {
  const stage = await startStage(options);
  const [mine, theirs] = [await stage.client(), await stage.client()];
  return { ...stage, mine, own: await objectsOf(mine), others: await objectsOf(theirs) };
}

function send(stage: Stage, from: Client, path: string, body: string | FormData, type?: string) {
  return fetch(`${stage.gateway.url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${from.apiKey}`,
      ...(type === undefined ? {} : { 'content-type': type }),
    },
    body,
  });
}

const user = { role: 'user', content: 'Hello' };

const bodies: readonly (readonly [string, string, (objects: Objects) => object])[] = [
  [
    'the container of a hosted shell',
    '/v1/responses',
    ({ container }) => ({
      input: 'Hello',
      tools: [{ type: 'shell', environment: { type: 'container_reference', container_id: container } }],
    }),
  ],
  [
    'the container of a code interpreter',
    '/v1/responses',
    ({ container }) => ({
      input: 'Hello',
      tools: [{ type: 'code_interpreter', container }],
    }),
  ],
  [
    'the container of an earlier shell call',
    '/v1/responses',
    ({ container }) => ({
      input: [
        user,
        {
          type: 'shell_call',
          call_id: 'call_1',
          action: { commands: ['ls'] },
          environment: { type: 'container_reference', container_id: container },
        },
        { type: 'shell_call_output', call_id: 'call_1', output: [] },
      ],
    }),
  ],
  [
    'the container of an earlier run of code',
    '/v1/responses',
    ({ container }) => ({
      input: [
        user,
        { type: 'code_interpreter_call', id: 'ci_1', code: 'x', container_id: container, outputs: [] },
      ],
    }),
  ],
  [
    'a file that code is said to have made',
    '/v1/responses',
    ({ file }) => ({
      input: [{ type: 'code_interpreter_call', file_id: file }, user],
    }),
  ],
  [
    'a container in another case',
    '/v1/responses',
    ({ container }) => ({
      input: 'Hello',
      tools: [{ type: 'shell', environment: { type: 'container_reference', Container_ID: container } }],
    }),
  ],
  [
    'a file, in a body that looks like the call of a tool',
    '/v1/responses',
    ({ file }) => ({
      type: 'server_tool_use',
      input: [{ role: 'user', content: [{ type: 'input_file', file_id: file }] }],
    }),
  ],
];

describe('an object of another key does not exist', () => {
  test.each(bodies)('for a call that names %s', async (_name, path, make) => {
    const stage = await start();
    const { a, b, mine, own, others } = stage;
    const sendStatus = async (objects: Objects): Promise<number> => {
      const body = JSON.stringify({ model: 'gpt-a', ...make(objects) });
      const answer = await send(stage, mine, path, body, 'application/json');
      await answer.body?.cancel();
      return answer.status;
    };
    const requestsBefore = a.requests.length + b.requests.length;
    expect(await sendStatus(others)).toBe(404);
    expect(a.requests.length + b.requests.length).toBe(requestsBefore);
    await sendStatus(own);
    expect(a.requests.at(-1)?.path).toBe(path);
  });

  test('for a file that is put into a container by its id, in a form or in JSON', async () => {
    const stage = await start();
    const { a, mine, own, others } = stage;
    const path = `/v1/containers/${own.container}/files`;
    const put = async (id: string) => {
      const form = new FormData();
      form.append('file_id', id);
      const answer = await send(stage, mine, path, form);
      return { status: answer.status, body: await answer.json() };
    };
    const hidden = { message: expect.stringContaining(others.file), param: 'file_id' };
    expect(await put(others.file)).toMatchObject({ status: 404, body: { error: hidden } });
    await expect(mine.containers.files.create(own.container, { file_id: others.file })).rejects.toMatchObject(
      { status: 404, ...hidden },
    );
    await eventually(() => expect(a.requests.filter((one) => one.path === path && !one.cut)).toEqual([]));
    expect(await put(own.file)).toMatchObject({ status: 200, body: { at: path } });
    expect(await mine.containers.files.create(own.container, { file_id: own.file })).toMatchObject({
      at: path,
    });
  });

  test.each([
    ['behind a file', 'file_id'],
    ['in a list', 'file_ids[]'],
    ['in brackets', 'options[file_id]'],
    ['in capitals', 'FILE_ID'],
  ])('for a form field %s', async (_name, field) => {
    const stage = await start();
    const { a, mine, own, others } = stage;
    const sendForm = (id: string, before: Blob) => {
      const form = new FormData();
      form.append('file', before, 'large.bin');
      form.append(field, id);
      return send(stage, mine, `/v1/containers/${own.container}/files`, form);
    };
    const small = new Blob(['text']);
    const answer = await sendForm(others.file, small);
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ error: { message: expect.stringContaining(others.file) } });
    // What was begun to be sent never comes to its end there.
    const late = await sendForm(others.file, new Blob([new Uint8Array(2 * 1024 * 1024)]));
    expect(late.status).toBe(404);
    await late.body?.cancel();
    const path = `/v1/containers/${own.container}/files`;
    await eventually(() => expect(a.requests.filter((one) => one.path === path && !one.cut)).toEqual([]));
    expect((await sendForm(own.file, small)).status).toBe(200);
  });

  test('for a form field whose text is JSON', async () => {
    const stage = await start();
    const { mine, own, others } = stage;
    const sendStatus = async (text: string): Promise<number> => {
      const form = new FormData();
      form.append('options', text);
      const answer = await send(stage, mine, `/v1/containers/${own.container}/files`, form);
      await answer.body?.cancel();
      return answer.status;
    };
    expect(await sendStatus(JSON.stringify([{ file_id: others.file }]))).toBe(404);
    expect(await sendStatus(`{"file_id":"${others.file}"${' '.repeat(64 * 1024)}}`)).toBeGreaterThanOrEqual(
      400,
    );
    expect(await sendStatus(JSON.stringify([{ file_id: own.file }]))).toBe(200);
    expect(await sendStatus('[no JSON file_id')).toBe(200);
  });

  test('for a file in a form under the name of a reference, which providers may read as an id', async () => {
    const stage = await start();
    const { a, mine, own, others } = stage;
    const form = new FormData();
    form.append('file_id', new Blob([others.file]), 'id.txt');
    const requestsBefore = a.requests.length;
    const answer = await send(stage, mine, `/v1/containers/${own.container}/files`, form);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { param: 'file_id' } });
    expect(a.requests.length).toBe(requestsBefore);
  });

  test('for a query that goes to the provider with a request', async () => {
    const { a, gateway, mine, own, others } = await start();
    const get = (query: string) =>
      fetch(`${gateway.url}/v1/vector_stores/${own.store}/files?${query}`, {
        headers: { authorization: `Bearer ${mine.apiKey}` },
      });
    const requestsBefore = a.requests.length;
    expect((await get(`file_id=${others.file}`)).status).toBe(404);
    expect((await get(`filter[file_ids][0]=${others.file}`)).status).toBe(404);
    expect(a.requests.length).toBe(requestsBefore);
    expect((await get(`file_id=${own.file}`)).status).toBe(200);
  });

  test('for lines of a batch', async () => {
    const { a, mine, own, others } = await start({ poll: { first: 60_000, most: 60_000 } });
    const begin = async (
      endpoint: '/v1/responses' | '/v1/chat/completions',
      body: object,
    ): Promise<unknown> => {
      const line = JSON.stringify({ custom_id: 'one', method: 'POST', url: endpoint, body });
      const file = await mine.files.create({
        file: await toFile(Buffer.from(line), 'l.jsonl'),
        purpose: 'batch',
      });
      return mine.batches.create({ input_file_id: file.id, endpoint, completion_window: '24h' }).then(
        ({ status }) => status,
        ({ status }: { status: number }) => status,
      );
    };
    const shell = (id: string) => ({
      model: 'gpt-a',
      input: 'Hello',
      max_output_tokens: 10,
      tools: [{ type: 'shell', environment: { type: 'container_reference', container_id: id } }],
    });
    expect(await begin('/v1/responses', shell(others.container))).toBe(404);
    for (const item of [
      { type: 'item_reference', id: 'msg_1' },
      { id: 'msg_1' },
      { type: null, id: 'msg_1' },
      { role: null, id: 'msg_1' },
    ])
      expect(await begin('/v1/responses', { model: 'gpt-a', input: [user, item] })).toBe(400);
    const compared = { prompt_cache_options: { comparison_response_id: 'resp_1' } };
    expect(await begin('/v1/responses', { model: 'gpt-a', input: 'Hello', ...compared })).toBe(400);
    expect(a.batches.size).toBe(0);
    expect(await begin('/v1/responses', shell(own.container))).toBe('validating');
    // A provider has made this one during a call, so that no key owns it.
    expect(await begin('/v1/responses', shell('cntr_of_nobody'))).toBe('validating');
    const plain = JSON.parse(batchLine('gpt-a')) as { readonly body: object };
    expect(await begin('/v1/chat/completions', plain.body)).toBe('validating');
  });
});

test('a file that no key owns cannot be used in a body that looks like a run of code', async () => {
  const stage = await start();
  const { a, b, mine } = stage;
  const requestsBefore = a.requests.length + b.requests.length;
  const body = {
    model: 'gpt-a',
    type: 'code_interpreter_call',
    input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-of-nobody' }] }],
  };
  const answer = await send(stage, mine, '/v1/responses', JSON.stringify(body), 'application/json');
  expect(answer.status).toBe(404);
  expect(a.requests.length + b.requests.length).toBe(requestsBefore);
});

test('a container that the provider has made during a call can be used, because no key owns it', async () => {
  const stage = await start();
  const body = { model: 'gpt-a', ...bodies[0]?.[2]({ file: '', container: 'cntr_of_nobody', store: '' }) };
  await send(stage, stage.mine, '/v1/responses', JSON.stringify(body), 'application/json');
  expect(stage.a.requests.at(-1)?.path).toBe('/v1/responses');
});

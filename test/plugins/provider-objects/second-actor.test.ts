import { request as httpRequest } from 'node:http';
import { toFile } from 'openai';
import { describe, expect, test } from 'vitest';
import { openLedger } from '../../../core/money/ledger/open.ts';
import { eventually } from '../../support/eventually.ts';
import { connectionOf } from '../../support/sqlite.ts';
import { batchLine, startStage, type Stage } from './_stage.ts';

type Client = Awaited<ReturnType<Stage['client']>>;

/** From now on the database takes no new objects. */
function failStore({ gateway }: Stage): void {
  connectionOf(gateway.stores).exec(
    "CREATE TRIGGER full BEFORE INSERT ON provider_objects BEGIN SELECT RAISE(ABORT, 'disk full'); END",
  );
}

function mendStore({ gateway }: Stage): void {
  connectionOf(gateway.stores).exec('DROP TRIGGER full');
}

/** Creates the prerequisites of an object while the store works. The returned function creates the object. */
type Make = (client: Client) => Promise<() => Promise<unknown>>;

const upload = async (client: Client, text: string, purpose: 'user_data' | 'batch' | 'fine-tune') =>
  client.files.create({ file: await toFile(Buffer.from(text), 'f.jsonl'), purpose });

const makes: readonly { readonly name: string; readonly make: Make; readonly back: RegExp }[] = [
  {
    name: 'a file',
    make: async (client) => () => upload(client, 'text', 'user_data'),
    back: /^DELETE \/v1\/files\/file-a\d+$/,
  },
  {
    name: 'a vector store',
    make: async (client) => () => client.vectorStores.create({ name: 'notes' }),
    back: /^DELETE \/v1\/vector_stores\/vector_store_a\d+$/,
  },
  {
    name: 'a batch',
    make: async (client) => {
      const { id } = await upload(client, batchLine('gpt-a'), 'batch');
      return () =>
        client.batches.create({
          input_file_id: id,
          endpoint: '/v1/chat/completions',
          completion_window: '24h',
        });
    },
    back: /^POST \/v1\/batches\/batch_a\d+\/cancel$/,
  },
  {
    name: 'a fine-tuning job, which can be cancelled and not deleted',
    make: async (client) => {
      const { id } = await upload(client, 'lines', 'fine-tune');
      return () => client.fineTuning.jobs.create({ model: 'gpt-a', training_file: id });
    },
    back: /^POST \/v1\/fine_tuning\/jobs\/ftjob-a\d+\/cancel$/,
  },
  {
    name: 'an upload, which can be cancelled and not deleted',
    make: async (client) => () =>
      client.uploads.create({ bytes: 1, filename: 'f', mime_type: 'text/plain', purpose: 'user_data' }),
    back: /^POST \/v1\/uploads\/upload_a\d+\/cancel$/,
  },
  {
    name: 'the file of an upload',
    make: async (client) => {
      const { id } = await client.uploads.create({
        bytes: 1,
        filename: 'f',
        mime_type: 'text/plain',
        purpose: 'user_data',
      });
      const part = await client.uploads.parts.create(id, { data: await toFile(Buffer.from('x'), 'part') });
      return () => client.uploads.complete(id, { part_ids: [part.id] });
    },
    back: /^DELETE \/v1\/files\/file-a\d+$/,
  },
];

describe.each(makes)('where the store fails after the provider has made $name', ({ make, back }) => {
  test('the provider is told to take it back, and the client gets 503', async () => {
    const stage = await startStage();
    const { a } = stage;
    const create = await make(await stage.client());
    failStore(stage);
    await expect(create()).rejects.toMatchObject({
      status: 503,
      message: expect.stringContaining('cannot keep this now'),
    });
    const { method, path, headers } = a.requests.at(-1) ?? {};
    expect(`${method} ${path}`).toMatch(back);
    expect(headers?.authorization).toBe('Bearer sk-of-a');
    // As soon as the store works again the client can try again.
    mendStore(stage);
    await expect(create()).resolves.toBeDefined();
  });
});

test('a provider that fails too while something is taken back changes nothing of the answer', async () => {
  const stage = await startStage();
  const client = await stage.client();
  const { a } = stage;
  failStore(stage);
  a.holds = (path) => {
    if (path.startsWith('/v1/files/'))
      a.failWith = { status: 500, body: { error: { message: 'words of the provider' } } };
    return false;
  };
  await expect(upload(client, 'text', 'user_data')).rejects.toMatchObject({
    status: 503,
    message: expect.not.stringContaining('words of the provider'),
  });
  expect(a.requests.at(-1)?.method).toBe('DELETE');
});

test('the budget that a batch has reserved is free again where the store fails', async () => {
  const stage = await startStage({ poll: { first: 60_000, most: 60_000 } });
  const budget = { unit: 'token', period: 'total', amount: 200_000 } as const;
  const client = await stage.client({ budgets: [budget] });
  const { id } = await upload(client, batchLine('gpt-a'), 'batch');
  failStore(stage);
  await expect(
    client.batches.create({ input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' }),
  ).rejects.toMatchObject({ status: 503 });
  await eventually(async () => {
    const [state] = await openLedger(stage.gateway.stores).states(client.keyId, [budget]);
    expect(state?.reserved).toBe(0);
  });
});

test('a description without an id is 502, and nothing is kept or taken back', async () => {
  const stage = await startStage();
  const client = await stage.client();
  stage.a.failWith = { status: 200, body: { object: 'file' } };
  await expect(upload(client, 'text', 'user_data')).rejects.toMatchObject({ status: 502 });
  stage.a.failWith = { status: 200, body: { id: '../models', object: 'file' } };
  await expect(upload(client, 'text', 'user_data')).rejects.toMatchObject({ status: 502 });
  expect(stage.a.requests.map(({ method }) => method)).toEqual(['POST', 'POST']);
  stage.a.failWith = undefined;
  expect((await client.files.list()).data).toEqual([]);
});

describe('a client that leaves while the provider makes a file', () => {
  const form = '--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--b--\r\n';

  /** Sends a request, and leaves once the provider has all of it and has not answered. The provider answers after that. */
  async function leave(
    stage: Stage,
    client: Client,
    path: string,
    type: string,
    body: string,
  ): Promise<void> {
    const { a, gateway } = stage;
    const answer = Promise.withResolvers<void>();
    a.delays = answer.promise;
    const request = httpRequest(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${client.apiKey}`, 'content-type': type },
    });
    request.on('error', () => {});
    request.end(body);
    await eventually(() => {
      const seen = a.requests.find((one) => one.path === path);
      expect(String(seen?.received)).toBe(seen?.headers['content-length']);
    });
    request.destroy();
    await eventually(() => expect(gateway.lines.some(({ status }) => status === 499)).toBe(true));
    a.delays = undefined;
    answer.resolve();
  }

  const send = (stage: Stage, client: Client): Promise<void> =>
    leave(stage, client, '/v1/files', 'multipart/form-data; boundary=b', form);

  test('finds it among its files', async () => {
    const stage = await startStage();
    const client = await stage.client();
    await send(stage, client);
    await eventually(async () => expect((await client.files.list()).data).toHaveLength(1));
  });

  test('leaves nothing behind where the store fails', async () => {
    const stage = await startStage();
    const client = await stage.client();
    failStore(stage);
    await send(stage, client);
    await eventually(() => expect(stage.a.requests.at(-1)?.method).toBe('DELETE'));
    await eventually(() => expect(stage.a.files.size).toBe(0));
  });

  test('finds it among its files where it was uploaded in parts', async () => {
    const stage = await startStage();
    const client = await stage.client();
    const { id } = await client.uploads.create({
      bytes: 1,
      filename: 'f',
      mime_type: 'text/plain',
      purpose: 'user_data',
    });
    const part = await client.uploads.parts.create(id, { data: await toFile(Buffer.from('x'), 'part') });
    const body = JSON.stringify({ part_ids: [part.id] });
    await leave(stage, client, `/v1/uploads/${id}/complete`, 'application/json', body);
    await eventually(async () => expect((await client.files.list()).data).toHaveLength(1));
  });
});

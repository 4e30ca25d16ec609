import { request as httpRequest } from 'node:http';
import { toFile } from 'openai';
import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { batchLine, startStage } from './_stage.ts';

test('a file is uploaded, listed, looked at, downloaded and deleted with the official SDK', async () => {
  const { a, client } = await startStage();
  const mine = await client();
  const file = await mine.files.create({
    file: await toFile(Buffer.from('a b c'), 'notes.txt'),
    purpose: 'user_data',
  });
  expect(file).toMatchObject({ id: expect.stringMatching(/^file-a/), filename: 'notes.txt', bytes: 5 });
  expect(a.requests[0]?.headers.authorization).toBe('Bearer sk-of-a');
  expect((await mine.files.list()).data.map(({ id }) => id)).toEqual([file.id]);
  expect((await mine.files.retrieve(file.id)).purpose).toBe('user_data');
  const content = await mine.files.content(file.id);
  expect(await content.text()).toBe('a b c');
  // What a provider calls a page must not run as one of the gateway's.
  expect(content.headers.get('content-type')).toBe('application/octet-stream');
  expect(content.headers.get('openai-organization')).toBeNull();
  expect(await mine.files.delete(file.id)).toMatchObject({ id: file.id, deleted: true });
  expect((await mine.files.list()).data).toEqual([]);
  await expect(mine.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 });
});

test('nobody sees the files of another key, in lists or by their ids', async () => {
  const { a, client } = await startStage();
  const [mine, theirs] = [await client(), await client()];
  const file = await mine.files.create({
    file: await toFile(Buffer.from('secret'), 's.txt'),
    purpose: 'user_data',
  });
  const requestsBefore = a.requests.length;
  expect((await theirs.files.list()).data).toEqual([]);
  await expect(theirs.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 });
  await expect(theirs.files.content(file.id)).rejects.toMatchObject({ status: 404 });
  await expect(theirs.files.delete(file.id)).rejects.toMatchObject({ status: 404 });
  await expect(
    theirs.chat.completions.create({
      model: 'gpt-a',
      messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: file.id } }] }],
    }),
  ).rejects.toMatchObject({ status: 404, message: expect.stringContaining(file.id) });
  expect(a.requests.length).toBe(requestsBefore);
  expect((await mine.files.retrieve(file.id)).id).toBe(file.id);
});

test('a file lies where the header says, else at the channel of the model that its first line names', async () => {
  const { client } = await startStage();
  const mine = await client();
  const upload = async (text: string, headers: Record<string, string> = {}): Promise<string> => {
    const file = await toFile(Buffer.from(text), 'f.jsonl');
    return (await mine.files.create({ file, purpose: 'batch' }, { headers })).id;
  };
  expect(await upload('anything')).toMatch(/^file-a/);
  expect(await upload('anything', { 'x-sluice-channel': 'b' })).toMatch(/^file-b/);
  expect(await upload(batchLine('gpt-b'))).toMatch(/^file-b/);
  await expect(upload('anything', { 'x-sluice-channel': 'c' })).rejects.toMatchObject({ status: 400 });
});

test('a call that names a file goes to the channel that keeps it, and is refused where that does not serve its model', async () => {
  const { client, a, b } = await startStage();
  const mine = await client();
  const { id } = await mine.files.create(
    { file: await toFile(Buffer.from('text'), 'f.txt'), purpose: 'user_data' },
    { headers: { 'x-sluice-channel': 'b' } },
  );
  const sendChat = (model: string, file: string) =>
    mine.chat.completions.create({
      model,
      messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: file } }] }],
    });
  for (let time = 0; time < 5; time += 1) {
    const { choices } = await sendChat('gpt-both', id);
    expect(choices[0]?.message.content).toBe('by b');
  }
  const calls = a.requests.length + b.requests.length;
  await expect(sendChat('gpt-a', id)).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('gpt-a'),
  });
  await expect(sendChat('gpt-both', 'file-unknown')).rejects.toMatchObject({ status: 404 });
  expect(a.requests.length + b.requests.length).toBe(calls);
});

test('a name that is written in codes is read all the same', async () => {
  const { gateway, client, a } = await startStage();
  const mine = await client();
  const theirs = await client();
  const { id } = await theirs.files.create({
    file: await toFile(Buffer.from('x'), 'f'),
    purpose: 'user_data',
  });
  const requestsBefore = a.requests.length;
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${mine.apiKey}`, 'content-type': 'application/json' },
    body: `{"model":"gpt-a","messages":[{"role":"user","content":[{"type":"file","file":{"\\u0066ile_id":"${id}"}}]}]}`,
  });
  expect(answer.status).toBe(404);
  expect(a.requests.length).toBe(requestsBefore);
});

test('a file that a long request names is found in it too', async () => {
  const { client, a, b } = await startStage();
  const [mine, theirs] = [await client(), await client()];
  const { id } = await mine.files.create(
    { file: await toFile(Buffer.from('x'), 'f'), purpose: 'user_data' },
    { headers: { 'x-sluice-channel': 'b' } },
  );
  const sendChat = (from: typeof mine) =>
    from.chat.completions.create({
      model: 'gpt-both',
      messages: [
        { role: 'user', content: 'long '.repeat(100_000) },
        { role: 'user', content: [{ type: 'file', file: { file_id: id } }] },
      ],
    });
  expect((await sendChat(mine)).choices[0]?.message.content).toBe('by b');
  const requestsBefore = a.requests.length + b.requests.length;
  await expect(sendChat(theirs)).rejects.toMatchObject({ status: 404 });
  expect(a.requests.length + b.requests.length).toBe(requestsBefore);
});

test('an operator may let ids through that nobody has here, and never those of another key', async () => {
  const { client, a } = await startStage({ foreign: 'pass' });
  const [mine, theirs] = [await client(), await client()];
  const { id } = await theirs.files.create({
    file: await toFile(Buffer.from('x'), 'f'),
    purpose: 'user_data',
  });
  const sendChat = (file_id: string) =>
    mine.chat.completions.create({
      model: 'gpt-a',
      messages: [{ role: 'user', content: [{ type: 'file', file: { file_id } }] }],
    });
  expect((await sendChat('file-made-elsewhere')).choices[0]?.message.content).toBe('by a');
  const requestsBefore = a.requests.length;
  await expect(sendChat(id)).rejects.toMatchObject({ status: 404 });
  expect(a.requests.length).toBe(requestsBefore);
});

test('words of tools that look like references are none', async () => {
  const { client } = await startStage();
  const mine = await client();
  const answer = await mine.chat.completions.create({
    model: 'gpt-a',
    messages: [{ role: 'user', content: 'The "file_id" is file-unknown.' }],
    metadata: { file_id: 'file-unknown' },
    tools: [
      {
        type: 'function',
        function: {
          name: 'f',
          parameters: { type: 'object', properties: { file_id: { default: 'file-x' } } },
        },
      },
    ],
  });
  expect(answer.choices[0]?.message.content).toBe('by a');
});

test('an id that would lead elsewhere at the provider is 404 and never asked for', async () => {
  const { gateway, a } = await startStage();
  for (const id of ['..%2Fmodels', '%2e%2e', 'a%00b', 'file-1%3Fx', 'x'.repeat(300)]) {
    const answer = await fetch(`${gateway.url}/v1/files/${id}`, {
      headers: { authorization: `Bearer ${gateway.key}` },
    });
    expect(answer.status).toBe(404);
    await answer.body?.cancel();
  }
  expect(a.requests).toEqual([]);
});

test('lists come in pages, and by purpose', async () => {
  const { client } = await startStage();
  const mine = await client();
  const ids: string[] = [];
  for (const purpose of ['user_data', 'vision', 'user_data', 'user_data', 'vision'] as const) {
    ids.push((await mine.files.create({ file: await toFile(Buffer.from('x'), 'f'), purpose })).id);
  }
  const all: string[] = [];
  for await (const { id } of mine.files.list({ limit: 2 })) all.push(id);
  expect(all).toEqual(ids.toReversed());
  const some: string[] = [];
  for await (const { id } of mine.files.list({ limit: 2, order: 'asc', purpose: 'user_data' })) some.push(id);
  expect(some).toEqual([ids[0], ids[2], ids[3]]);
  await expect(mine.files.list({ after: 'file-unknown' })).rejects.toMatchObject({ status: 400 });
});

test('of many who delete a file at once one is told that it did', async () => {
  const { client } = await startStage();
  const mine = await client();
  const { id } = await mine.files.create({ file: await toFile(Buffer.from('x'), 'f'), purpose: 'user_data' });
  const ends = await Promise.allSettled(Array.from({ length: 8 }, () => mine.files.delete(id)));
  expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  for (const end of ends) if (end.status === 'rejected') expect(end.reason).toMatchObject({ status: 404 });
});

test('an upload that is cut is cut at the provider, and nothing is kept', async () => {
  const { gateway, a } = await startStage();
  const client = httpRequest(`${gateway.url}/v1/files`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      'content-type': 'multipart/form-data; boundary=cut',
      'content-length': 64 * 1024 * 1024,
    },
  });
  client.on('error', () => {});
  client.write('--cut\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\n');
  client.write(Buffer.alloc(1024 * 1024, 0x61));
  await eventually(() => expect(a.requests[0]?.received).toBeGreaterThan(512 * 1024));
  client.destroy();
  await eventually(() => expect(a.requests[0]?.cut).toBe(true));
  const list = await fetch(`${gateway.url}/v1/files`, {
    headers: { authorization: `Bearer ${gateway.key}` },
  });
  expect(await list.json()).toMatchObject({ data: [], has_more: false });
});

test('a form that is damaged, too long or says things twice is refused in the format of the caller', async () => {
  const { gateway, a } = await startStage({ fileSize: 4096 });
  const send = async (body: string, type = 'multipart/form-data; boundary=b'): Promise<number> => {
    const answer = await fetch(`${gateway.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': type },
      body,
    });
    expect(await answer.json()).toMatchObject({
      error: { message: expect.any(String), type: expect.any(String) },
    });
    return answer.status;
  };
  const part = (name: string, value: string): string =>
    `--b\r\ncontent-disposition: form-data; name="${name}"; filename="f"\r\n\r\n${value}\r\n`;
  expect(await send('{}', 'application/json')).toBe(415);
  expect(await send('x', 'multipart/form-data')).toBe(400);
  expect(await send('no form')).toBe(400);
  expect(await send(`${part('file', 'x')}${part('other', 'y')}--b--\r\n`)).toBe(400);
  expect(await send(`${part('file', 'x')}${part('file', 'y')}--b--\r\n`)).toBe(400);
  expect(await send(`${part('file', 'x')}`)).toBe(400);
  expect(await send(`${part('file', 'x'.repeat(5000))}--b--\r\n`)).toBe(413);
  expect(a.files.size).toBe(0);
});

test('texts of a form come to 64 KiB and its parts to a hundred, and no further', async () => {
  const { gateway, a } = await startStage();
  const send = async (parts: readonly string[]): Promise<number> => {
    const file = '--b\r\ncontent-disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n';
    const texts = parts.map(
      (value, at) => `--b\r\ncontent-disposition: form-data; name="t${at}"\r\n\r\n${value}\r\n`,
    );
    const answer = await fetch(`${gateway.url}/v1/files`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.key}`,
        'content-type': 'multipart/form-data; boundary=b',
      },
      body: `${texts.join('')}${file}--b--\r\n`,
    });
    return answer.status;
  };
  const half = 'x'.repeat(32 * 1024);
  expect(await send([half, half])).toBe(200);
  expect(await send([half, half, 'x'])).toBe(413);
  expect(await send(Array.from({ length: 99 }, () => 'x'))).toBe(200);
  expect(await send(Array.from({ length: 100 }, () => 'x'))).toBe(400);
  expect(a.files.size).toBe(2);
});

test('a provider that is down or refuses the operator is no secret told, and no 401', async () => {
  const { a, client } = await startStage();
  const mine = await client();
  a.failWith = {
    status: 401,
    body: { error: { message: 'Incorrect API key provided: sk-of-a.', code: 'invalid_api_key' } },
  };
  const upload = async () =>
    mine.files.create({ file: await toFile(Buffer.from('x'), 'f'), purpose: 'user_data' });
  await expect(upload()).rejects.toMatchObject({
    status: 502,
    message: expect.not.stringContaining('sk-of-a'),
  });
  a.failWith = undefined;
  await a.close();
  await expect(upload()).rejects.toMatchObject({
    status: expect.toSatisfy((status: number) => status === 502 || status === 503),
  });
});

test('a key that may use certain models alone uses the channels that serve them', async () => {
  const { client } = await startStage();
  const onlyB = await client({ models: ['gpt-b'] });
  const file = await onlyB.files.create({ file: await toFile(Buffer.from('x'), 'f'), purpose: 'user_data' });
  expect(file.id).toMatch(/^file-b/);
  await expect(
    onlyB.files.create(
      { file: await toFile(Buffer.from('x'), 'f'), purpose: 'user_data' },
      { headers: { 'x-sluice-channel': 'a' } },
    ),
  ).rejects.toMatchObject({ status: 400 });
});

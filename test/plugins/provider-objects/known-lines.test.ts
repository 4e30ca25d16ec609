import { describe, expect, test } from 'vitest';
import { caller, type ApiKey, type JsonObject } from 'sluice';
import type { ProviderObject } from '../../../core/model/provider-objects.ts';
import chatCompletions from '../../../core/formats/chat-completions/index.ts';
import type { ObjectServices } from '../../../plugins/provider-objects/services.ts';
import type { BegunLines } from '../../../plugins/provider-objects/known-lines.ts';
import { LineAddresses } from '../../../plugins/provider-objects/line-addresses.ts';
import type { ProviderAccount } from '../../../plugins/provider-objects/account.ts';
import { RequestLines } from '../../../plugins/provider-objects/request-lines.ts';
import { measured } from '../../../plugins/provider-objects/reserve.ts';
import { requestedLines } from '../../../plugins/provider-objects/requested-lines.ts';
import { testCall } from '../../support/call.ts';

const limits = { body: 1e9, depth: 32, values: 1000, members: 100 };

/** Lines of chat completions, read by that format alone. */
function linesOf(begun?: BegunLines): RequestLines {
  return new RequestLines(
    'chat-completions',
    {
      formats: (name) => (name === 'chat-completions' ? chatCompletions : undefined),
      limits,
      sampling: 'forward',
    },
    begun,
  );
}
const lineOf = (body: JsonObject, url = '/v1/chat/completions'): string =>
  `${JSON.stringify({ custom_id: 'a', method: 'POST', url, body: { model: 'm', ...body } })}\n`;

const hello = [{ role: 'user', content: 'Hello' }];

async function readLines(...texts: readonly string[]) {
  const lines = linesOf();
  for (const text of texts)
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await lines.push(Buffer.from(text));
  return { known: lines.end(), reason: lines.reason };
}

describe('addresses in lines', () => {
  test('are known, each once, by the line that names it first', () => {
    const addresses = new LineAddresses();
    addresses.addOf({ url: 'gs://a/1', storageUri: 'gs://a/1' }, 3);
    addresses.addOf({ deep: { url: 'gs://a/1' }, more: { url: 'gs://a/2' } }, 4);
    addresses.add({ path: 'requests[9].url', value: 'gs://a/2', use: 'read' });
    expect(addresses.size).toBe(3);
    expect(addresses.all.toSorted((one, other) => one.path.localeCompare(other.path))).toEqual([
      { path: 'requests[3].storageUri', value: 'gs://a/1', use: 'write' },
      { path: 'requests[3].url', value: 'gs://a/1', use: 'read' },
      { path: 'requests[4].more.url', value: 'gs://a/2', use: 'read' },
    ]);
  });

  test('have paths that can be kept, and are refused where they are too long themselves', () => {
    const addresses = new LineAddresses();
    addresses.addOf({ ['x'.repeat(300)]: { url: 'gs://a' } }, 0);
    expect(addresses.all[0]?.path).toBe(`requests[0].${'x'.repeat(188)}`);
    const long = (length: number) => ({ url: `gs://${'a'.repeat(length - 5)}` });
    addresses.addOf(long(2000), 1);
    expect(addresses.size).toBe(2);
    expect(() => addresses.addOf(long(2001), 2)).toThrow(
      expect.objectContaining({
        code: 'invalid_value',
        message: 'An address has more than 2000 characters.',
      }) as Error,
    );
  });
});

describe('lines that come in two requests', () => {
  test('are known with all that those of the first asked for', async () => {
    const first = linesOf();
    await first.push(
      Buffer.from(
        lineOf({
          messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'gs://a/1' } }] }],
          file_id: 'file-1',
        }) +
          lineOf({ messages: hello, web_search_options: {} }) +
          lineOf({ messages: hello, model: undefined as never }, '/v1/own'),
      ),
    );
    const begun = first.begun();
    expect(begun).toMatchObject({
      models: ['m'],
      unnamed: true,
      count: 3,
      references: [['chat-completions/files', 'file-1']],
      addresses: [
        { path: 'requests[0].messages[0].content[0].image_url.url', value: 'gs://a/1', use: 'read' },
      ],
      endpoints: ['/v1/chat/completions', '/v1/own'],
      unreadable: 'request 3: its endpoint is not supported',
      rest: '',
    });
    expect(begun?.paid).not.toEqual([]);
    const second = linesOf(JSON.parse(JSON.stringify(begun)) as BegunLines);
    const { rest: _, ...all } = begun as BegunLines;
    expect(second.end()).toEqual(all);
    const third = linesOf(JSON.parse(JSON.stringify(begun)) as BegunLines);
    await third.push(Buffer.from(lineOf({ messages: hello, model: 'n', file_id: 'file-1' })));
    expect(third.end()).toMatchObject({ models: ['m', 'n'], count: 4, references: all.references });
  });

  test('of which earlier versions knew less are known as far as that', () => {
    const begun: BegunLines = { models: ['m'], references: [], count: 1, endpoints: [], rest: '' };
    expect(linesOf(begun).end()).toMatchObject({ models: ['m'], count: 1, paid: [], addresses: [] });
  });
});

describe('a file of which nothing is known', () => {
  const many = (
    count: number,
    body: (index: number) => JsonObject,
    url?: (index: number) => string,
  ): string =>
    Array.from({ length: count }, (_, index) => lineOf({ messages: [], ...body(index) }, url?.(index))).join(
      '',
    );

  test.each<[string, string, string, string]>([
    [
      'models',
      many(50, (index) => ({ model: `m${index}` })),
      lineOf({ model: 'more' }),
      'more than 50 models',
    ],
    [
      'endpoints',
      many(
        10,
        () => ({}),
        (index) => `/v1/e${index}`,
      ),
      lineOf({}, '/v1/more'),
      'more than 10 endpoints',
    ],
    [
      'references',
      many(10, (index) => ({ file_ids: Array.from({ length: 100 }, (_, at) => `f-${index}-${at}`) })),
      lineOf({ file_id: 'more' }),
      'more than 1000 references',
    ],
    [
      'addresses',
      many(10, (index) => ({ urls: Array.from({ length: 100 }, (_, at) => `gs://a/${index}-${at}`) })),
      lineOf({ url: 'gs://more' }),
      'more than 1000 addresses',
    ],
  ])('has too many %s', async (_, most, more, reason) => {
    expect((await readLines(most)).reason).toBeUndefined();
    const { known, reason: why } = await readLines(most, more);
    expect(known).toBeUndefined();
    expect(why).toContain(reason);
  });

  test('has an endpoint that is too long', async () => {
    const url = (length: number) => `/${'e'.repeat(length - 1)}`;
    expect((await readLines(lineOf({ messages: [] }, url(200)))).known?.endpoints).toEqual([url(200)]);
    expect(await readLines(lineOf({ messages: [] }, url(201)))).toEqual({
      known: undefined,
      reason: 'Request 1: The url has more than 200 characters.',
    });
  });
});

test('what requests in a body need is known, or the first that cannot be read is named', async () => {
  const codec = chatCompletions.codecs.chat;
  const request = (messages: unknown) => ({
    model: 'm',
    codec,
    body: { model: 'm', messages } as JsonObject,
  });
  const pathOf = (index: number): string => `requests[${index}].params`;
  expect(await measured([request(hello), request(hello)], pathOf)).toMatchObject({ m: { calls: 2 } });
  await expect(measured([request(hello), request(7), request(8)], pathOf)).rejects.toMatchObject({
    code: 'invalid_value',
    param: 'requests[1].params',
    message: expect.stringMatching(/^requests\[1\]\.params: messages /) as string,
  });
  // What no format reads is measured by nobody.
  expect(await measured([{ ...request(hello), codec: undefined }], pathOf)).toEqual({});
});

describe('what the lines of a file may ask for', () => {
  const channel = {
    id: 'a',
    keys: [
      { id: 'a-1', index: 0 },
      { id: 'a-2', index: 1 },
    ],
  };
  const account = { channel, key: channel.keys[0] } as unknown as ProviderAccount;
  const known = { models: ['m'], references: [], paid: [], addresses: [], count: 1, endpoints: [] };

  function checkAccess(
    requested: unknown,
    {
      key,
      kind = 'chat-completions/files',
      mayRead,
    }: { key?: object; kind?: string; mayRead?: readonly string[] } = {},
    kept: Readonly<Record<string, readonly [string, string]>> = {},
  ) {
    const { call } = testCall();
    if (key !== undefined) call.set(caller, key as ApiKey);
    const other = { ...account, channel: { ...channel, mayRead } } as unknown as ProviderAccount;
    const around = {
      tools: { settings: { sampling: 'forward' } },
      finding: {
        foreign: false,
        store: {
          find: (_owner: string, _kind: string, id: string) => {
            const there = kept[id];
            return Promise.resolve(there && { channel: there[0], key: there[1] });
          },
          isOwned: () => Promise.resolve(false),
        },
        catalog: { channels: [channel, { id: 'b', keys: [{ id: 'b-1', index: 0 }] }] },
      },
    } as unknown as ObjectServices;
    const file = { kind, id: 'f', known: { requested } } as unknown as ProviderObject;
    return requestedLines(call, file, other, 'input_file_id', around);
  }

  test('is known where all of it was read', async () => {
    expect(await checkAccess(known)).toEqual(known);
  });

  test('is models of the key alone, and paid tools that it may use', async () => {
    await expect(checkAccess(known, { key: { id: 'k', models: ['n'] } })).rejects.toMatchObject({
      code: 'model_not_allowed',
    });
    const { paid: _, ...older } = known;
    expect(await checkAccess(older)).toEqual(older);
    await expect(checkAccess(older, { key: { id: 'k', models: ['m'] } })).rejects.toMatchObject({
      code: 'invalid_value',
      param: 'input_file_id',
      message: 'The tools that the file names are not known: upload it again.',
    });
  });

  test('is addresses that the channel may use; Google’s are known, or the file is uploaded again', async () => {
    const addresses = [{ path: 'requests[0].url', value: 'gs://a/1', use: 'read' }];
    await expect(checkAccess({ ...known, addresses })).rejects.toMatchObject({
      code: 'forbidden',
      param: 'requests[0].url',
    });
    expect(await checkAccess({ ...known, addresses }, { mayRead: ['gs://a/'] })).toMatchObject({ addresses });
    const { addresses: _, ...older } = known;
    expect(await checkAccess(older)).toEqual(older);
    await expect(checkAccess(older, { kind: 'generate-content/files' })).rejects.toMatchObject({
      code: 'invalid_value',
      param: 'input_file_id',
      message: 'The addresses that the file names are not known: upload it again.',
    });
  });

  test('is objects of the key, at the account where the batch goes; containers may be made in calls', async () => {
    const references = [['chat-completions/files', 'file-1']];
    const kept = (channelId: string, keyId: string) => ({ 'file-1': [channelId, keyId] as const });
    expect(await checkAccess({ ...known, references }, {}, kept('a', 'a-1'))).toMatchObject({ references });
    for (const [channelId, keyId] of [
      ['b', 'b-1'],
      ['a', 'a-2'],
    ] as const)
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await expect(checkAccess({ ...known, references }, {}, kept(channelId, keyId))).rejects.toMatchObject({
        code: 'invalid_value',
        param: 'input_file_id',
      });
    await expect(checkAccess({ ...known, references })).rejects.toMatchObject({ code: 'not_found' });
    const containers = [['chat-completions/containers', 'cntr-1']];
    expect(await checkAccess({ ...known, references: containers })).toMatchObject({ references: containers });
  });
});

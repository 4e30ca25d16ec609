import { of } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { GatewayError, type JsonObject, type Upstream } from 'sluice';
import type { ObjectStore } from '../../../core/money/provider-objects/index.ts';
import type { ProviderObject } from '../../../core/model/provider-objects.ts';
import { makeCall } from '../../../core/sdk/testing/call.ts';
import { sendRequest, isGone, jsonOf } from '../../../plugins/provider-objects/send-request.ts';
import { collectionOf, type ObjectFormat } from '../../../plugins/provider-objects/collections.ts';
import { contentOf, eachLine, Lines, longestLine } from '../../../plugins/provider-objects/lines.ts';
import { pageOf } from '../../../plugins/provider-objects/pages.ts';
import type { ProviderAccount } from '../../../plugins/provider-objects/account.ts';

type Query = Parameters<ObjectStore['list']>[2];

/** A store of so many objects, the newest first, and what it was asked for. */
function storeOf(count: number, purposes: readonly string[] = []) {
  const queries: Query[] = [];
  const all = Array.from({ length: count }, (_, index) => ({
    id: `id${index}`,
    seen: { id: `id${index}`, purpose: purposes[index % Math.max(1, purposes.length)] ?? '' },
  })) as unknown as ProviderObject[];
  const store = {
    async list(_owner: string, _kind: string, query: Query) {
      queries.push(query);
      const indexOf = (id: string | undefined): number => all.findIndex((one) => one.id === id);
      if (query.after !== undefined && indexOf(query.after) < 0) return undefined;
      if (query.before !== undefined && indexOf(query.before) < 0) return undefined;
      const end = query.before === undefined ? count : indexOf(query.before);
      const from = query.before === undefined ? indexOf(query.after) + 1 : Math.max(0, end - query.limit);
      const objects = all.slice(from, Math.min(end, from + query.limit));
      return { objects, hasMore: query.before === undefined ? from + query.limit < count : from > 0 };
    },
  } as unknown as ObjectStore;
  return { store, queries };
}

/** A page, and what the store was asked for. */
async function page(format: ObjectFormat, name: string, query: string, store = storeOf(0)) {
  const { call } = await makeCall({ operation: 'state', query });
  const found = await pageOf(call, collectionOf(format, name), store.store);
  return { body: found.body(found.objects.map(({ seen }) => seen)), queries: store.queries };
}
const idsOf = ({ body }: { body: JsonObject }, member = 'data'): string[] =>
  (body[member] as unknown as { id: string }[]).map(({ id }) => id);
const refused = (param: string, message = /./): Error =>
  expect.objectContaining({ param, message: expect.stringMatching(message) as string }) as Error;

describe('a list of chat completions', () => {
  test('begins with the newest, and tells where it goes on', async () => {
    const got = await page('chat-completions', 'batches', 'limit=2', storeOf(3));
    expect(got.body).toMatchObject({ object: 'list', first_id: 'id0', last_id: 'id1', has_more: true });
    const next = await page('chat-completions', 'batches', 'limit=2&after=id1', storeOf(3));
    expect([idsOf(next), next.body['has_more']]).toEqual([['id2'], false]);
    const empty = await page('chat-completions', 'batches', '', storeOf(0));
    expect(empty.body).toEqual({ object: 'list', data: [], first_id: null, last_id: null, has_more: false });
  });

  test.each([
    ['files', '', 1000],
    ['files', 'limit=5000', 1000],
    ['batches', '', 100],
    ['batches', 'limit=', 100],
    ['batches', 'limit=1', 1],
    ['batches', 'limit=100', 100],
    ['batches', 'limit=101', 100],
    ['batches', 'limit=999999', 100],
  ])('of %s with %s asks for %i', async (name, query, limit) => {
    const { queries } = await page('chat-completions', name, query);
    expect(queries).toEqual([{ order: 'desc', limit }]);
  });

  test.each([
    ['limit=0', 'limit'],
    ['limit=-1', 'limit'],
    ['limit=1.5', 'limit'],
    ['limit=1000000', 'limit'],
    ['limit=x', 'limit'],
    ['order=up', 'order'],
    ['after=nobody', 'after'],
    ['after=a/b', 'after'],
    ['before=nobody', 'before'],
    ['before=a/b', 'before'],
  ])('with %s is refused', async (query, param) => {
    await expect(page('chat-completions', 'files', query, storeOf(3))).rejects.toEqual(refused(param));
  });

  test('goes on with those of a purpose until the page is full, however many others are between', async () => {
    const store = storeOf(500, ['batch', 'other', 'other']);
    const first = await page('chat-completions', 'files', 'purpose=batch&limit=100', store);
    expect(idsOf(first)).toHaveLength(100);
    expect(idsOf(first)[99]).toBe('id297');
    expect(first.body['has_more']).toBe(true);
    expect(store.queries.map(({ after }) => after)).toEqual([undefined, 'id199']);
    const rest = await page('chat-completions', 'files', 'purpose=batch&limit=100&after=id297', store);
    expect([idsOf(rest).length, rest.body['has_more']]).toEqual([67, false]);
    const exact = await page(
      'chat-completions',
      'files',
      'purpose=batch&limit=1',
      storeOf(2, ['batch', 'x']),
    );
    expect([idsOf(exact), exact.body['has_more']]).toEqual([['id0'], false]);
    const cut = await page('chat-completions', 'files', 'purpose=batch&limit=1', storeOf(2, ['batch']));
    expect([idsOf(cut), cut.body['has_more']]).toEqual([['id0'], true]);
  });

  test('in the other order is asked for as such', async () => {
    const { queries } = await page('chat-completions', 'files', 'order=asc&limit=7&after=id0', storeOf(1));
    expect(queries).toEqual([{ order: 'asc', limit: 7, after: 'id0' }]);
  });
});

describe('a list of messages', () => {
  test('has twenty objects, and goes on with a page or behind an id', async () => {
    const got = await page('messages', 'messages/batches', '', storeOf(21));
    expect(idsOf(got)).toHaveLength(20);
    expect(got.body).toMatchObject({ first_id: 'id0', last_id: 'id19', has_more: true, next_page: 'id19' });
    expect(got.body).not.toHaveProperty('object');
    for (const query of ['page=id19', 'after_id=id19']) {
      // oxlint-disable-next-line no-await-in-loop
      const next = await page('messages', 'messages/batches', query, storeOf(21));
      expect([idsOf(next), next.body['next_page'], next.body['has_more']]).toEqual([['id20'], null, false]);
    }
    const all = await page('messages', 'files', 'limit=1000', storeOf(2));
    expect(all.queries[0]?.limit).toBe(1000);
  });

  test('goes back before an id, whatever stands behind another', async () => {
    const got = await page('messages', 'files', 'before_id=id5&after_id=id9&limit=2', storeOf(9));
    expect(got.queries).toEqual([{ order: 'desc', limit: 2, before: 'id5' }]);
    expect([idsOf(got), got.body['has_more']]).toEqual([['id3', 'id4'], true]);
    await expect(page('messages', 'files', 'page=nobody', storeOf(1))).rejects.toEqual(refused('page'));
    await expect(page('messages', 'files', 'after_id=nobody', storeOf(1))).rejects.toEqual(
      refused('after_id', /the id of a file in this list/),
    );
  });
});

describe('a list of generateContent', () => {
  test('has fifty objects, a token where there are more, and nothing where there are none', async () => {
    const got = await page('generate-content', 'files', '', storeOf(51));
    expect([idsOf(got, 'files').length, got.body['nextPageToken']]).toEqual([50, 'id49']);
    const next = await page('generate-content', 'files', 'pageToken=id49&pageSize=2', storeOf(51));
    expect(next.body).toEqual({ files: [{ id: 'id50', purpose: '' }] });
    expect((await page('generate-content', 'files', '')).body).toEqual({});
    const batches = await page('generate-content', 'batches', 'pageSize=1', storeOf(1));
    expect(Object.keys(batches.body)).toEqual(['operations']);
    await expect(page('generate-content', 'files', 'pageSize=0')).rejects.toEqual(refused('pageSize'));
  });
});

describe('lines of a file', () => {
  const texts = (chunks: readonly string[]): string[] => {
    const lines = new Lines();
    const found: string[] = [];
    for (const chunk of chunks) {
      lines.add(Buffer.from(chunk));
      for (let line = lines.next(); line !== undefined; line = lines.next()) found.push(line.toString());
    }
    return [...found, lines.take().toString()];
  };

  test('are the same however the file is cut', () => {
    const text = 'one\r\n\ntwo\nthree';
    const whole = ['one\r\n', '\n', 'two\n', 'three'];
    expect(texts([text])).toEqual(whole);
    expect(texts([...text])).toEqual(whole);
    expect(texts(['one\r', '\n\ntw', 'o\nthr', 'ee'])).toEqual(whole);
  });

  test('that are not complete are held, can be looked at, and are taken once', () => {
    const lines = new Lines();
    lines.add(Buffer.from('one\ntw'));
    expect(lines.held).toBe(6);
    expect(lines.next()?.toString()).toBe('one\n');
    expect(lines.next()).toBeUndefined();
    expect([lines.held, lines.rest.toString(), lines.rest.toString()]).toEqual([2, 'tw', 'tw']);
    lines.add(Buffer.from('o'));
    expect([lines.take().toString(), lines.held, lines.take().length]).toEqual(['two', 0, 0]);
  });

  test('of 16 MiB are read, and longer ones refused', () => {
    const most = Buffer.alloc(longestLine, 'x');
    most[longestLine - 1] = 10;
    const lines = new Lines();
    lines.add(most);
    expect(lines.next()).toHaveLength(longestLine);
    lines.add(Buffer.alloc(longestLine, 'x'));
    expect(lines.next()).toBeUndefined();
    lines.add(Buffer.from('\n'));
    expect(() => lines.next()).toThrow('The line has more than 16777216 bytes.');
  });

  test.each([
    ['a\n', 'a'],
    ['a\r\n', 'a'],
    ['a\r', 'a'],
    ['a', 'a'],
    [' a \n', ' a '],
    ['\n', undefined],
    ['\r\n', undefined],
    [' \t\r \n', undefined],
    ['', undefined],
  ])('%j holds %j', (line, content) => {
    expect(contentOf(Buffer.from(line))?.toString()).toBe(content);
  });

  test('are worked on one by one, the last one without a line break too', async () => {
    const { call } = await makeCall();
    const seen: string[] = [];
    const work = (line: Buffer): void => void seen.push(line.toString());
    await eachLine(call, of(Buffer.from('a\n\nb\r\nc')), work);
    await eachLine(call, of(Buffer.from('d\n'), Buffer.from('\n')), work);
    await eachLine(call, of(), work);
    expect(seen).toEqual(['a', 'b', 'c', 'd']);
  });
});

describe('what a provider answers', () => {
  const respond = async (status: number, text: string): Promise<Upstream> => {
    const answer = { status, headers: {}, bytes: of(Buffer.from(text)) } as unknown as Upstream;
    const channel = { open: () => Promise.resolve(answer) };
    const { call } = await makeCall({ operation: 'state' });
    return sendRequest(call, { channel, key: {} } as unknown as ProviderAccount, 'chat-completions', {
      method: 'GET',
      path: '/x',
    });
  };
  const error = (message: string): string => JSON.stringify({ error: { message } });

  test('with success is its answer, and its JSON is read up to a limit', async () => {
    for (const status of [200, 299]) expect((await respond(status, '{}')).status).toBe(status);
    expect(await jsonOf(await respond(200, '{"a":1}'), 7)).toEqual({ a: 1 });
    expect(await jsonOf(await respond(200, ''), 7)).toEqual({});
    await expect(jsonOf(await respond(200, '{"a":12}'), 7)).rejects.toThrow(GatewayError);
    await expect(jsonOf(await respond(200, '[]'), 7)).rejects.toMatchObject({
      code: 'upstream_error',
      origin: 'upstream',
    });
  });

  test.each([
    [404, error('No such file.'), { code: 'not_found', origin: 'upstream', message: 'No such file.' }, true],
    [
      410,
      '',
      { code: 'not_found', origin: 'upstream', message: 'The provider does not have this object.' },
      true,
    ],
    [409, error('It is in use.'), { code: 'conflict', retryable: false, message: 'It is in use.' }, false],
    [409, '', { code: 'conflict', retryable: false }, false],
    [302, '', { status: 502 }, false],
    [199, '', { status: 502 }, false],
    [400, error('Wrong.'), { status: 400 }, false],
    [500, error('Down.'), { status: 502 }, false],
  ])('with %i and %s is an error of its own', async (status, text, expected, gone) => {
    const thrown: unknown = await respond(status, text).catch((reason: unknown) => reason);
    expect(thrown).toMatchObject(expected);
    expect((thrown as Error).message).not.toBe('');
    expect(isGone(thrown)).toBe(gone);
  });

  test('is not gone where the gateway itself has no such thing', () => {
    expect(isGone(new GatewayError('not_found', 'There is none.'))).toBe(false);
    expect(isGone(new Error('not_found'))).toBe(false);
  });
});

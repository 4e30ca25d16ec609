import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { JsonObject } from '../../core/model/json.ts';
import { deleteExpiredResponses, mostText } from '../../core/state/responses/tables.ts';
import { responsesStanding } from '../../core/state/responses/standing.ts';
import { openResponseStore } from '../../core/state/responses/open.ts';
import { type ResponseStore, type StoredResponse } from '../../core/state/responses/index.ts';
import { sqlOf } from '../../core/state/database/sql.ts';
import { openStores, type Stores } from '../../core/state/stores.ts';
import { eventually } from '../support/eventually.ts';

type Report = (error: Error) => void;

/** A kind of database, and how the suite damages it. */
export interface ResponsesDriver {
  /** The URL of a new database. */
  newUrl(): Promise<string>;
  execute(stores: Stores, sql: string): Promise<readonly unknown[]>;
  /** An expression that makes a text of so many characters. */
  text(length: number): string;
  /** Makes the table of conversation items refuse an item `last` with `disk full`. */
  readonly refuseLast: string;
}

const now = Math.floor(Date.now() / 1000);

function turn(id: string, changes: Partial<StoredResponse> = {}): StoredResponse {
  return {
    id,
    owner: 'alice',
    createdAt: now,
    expiresAt: now + 1000,
    response: { id, status: 'completed', output: [{ id: `out-${id}`, type: 'message', text: 'Hello. 😀' }] },
    input: [{ id: `in-${id}`, type: 'message', text: 'Hi.' }],
    ...changes,
  };
}

const ids = (list: readonly { readonly id: string }[] | undefined) => list?.map(({ id }) => id);
const itemIds = (list: readonly JsonObject[] | undefined) => list?.map(({ id }) => id);

function conversation(id: string, owner = 'alice', metadata: JsonObject = {}) {
  return { id, owner, createdAt: now, metadata };
}

/** By how much a run of the suite divides the limits of text and what is held against them; `npm run fuzz` takes them as they are. */
const divisor = process.env.SLUICE_FUZZ === 'all' ? 1 : 64;

function divideLimits(): void {
  const whole = { ...mostText };
  Object.assign(mostText, { history: whole.history / divisor, page: whole.page / divisor });
  onTestFinished(() => void Object.assign(mostText, whole));
}

function start(url: string, command: string, argument = ''): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [
    join(import.meta.dirname, '../core/state/responses/process.ts'),
    url,
    command,
    argument,
  ]);
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function run(url: string, command: string, argument = ''): Promise<string> {
  const child = start(url, command, argument);
  const exited = once(child, 'exit');
  const [output, errors, [code]] = await Promise.all([textOf(child.stdout), textOf(child.stderr), exited]);
  if (code !== 0) throw new Error(`${command} ended with ${String(code)}: ${errors}`);
  return output.trim();
}

/** Contract of the store of responses on every kind of database. */
export function responsesSuite({ newUrl, execute, text, refuseLast }: ResponsesDriver): void {
  async function open(
    url?: string,
    report?: Report,
  ): Promise<{ readonly stores: Stores; readonly store: ResponseStore }> {
    const stores = openStores(url ?? (await newUrl()));
    onTestFinished(() => stores.close());
    return { stores, store: openResponseStore(stores, report) };
  }

  describe('a response', () => {
    test('is found as it was saved, also after a restart', async () => {
      const url = await newUrl();
      const whole = turn('resp_1', { previous: 'resp_0', channel: 'native', runsUntil: 1_900_000_000_123 });
      const bare = turn('resp_2');
      const before = await open(url);
      await before.store.save(whole);
      await before.store.save(bare);
      await before.stores.close();
      const { store } = await open(url);
      expect(await store.find('alice', 'resp_1')).toEqual(whole);
      expect(await store.find('alice', 'resp_2')).toEqual(bare);
    });

    test('may be any JSON and megabytes large', async () => {
      const { store } = await open();
      await fc.assert(
        fc.asyncProperty(fc.jsonValue(), fc.string({ unit: 'grapheme' }), async (value, id) => {
          const kept = JSON.parse(JSON.stringify({ value })) as JsonObject;
          const stored = turn(`resp_${id}`, { response: { ...kept, status: 'completed' }, input: [kept] });
          await store.save(stored);
          expect(await store.find('alice', stored.id)).toEqual(stored);
        }),
        { numRuns: 50 },
      );
      const large = turn('resp_large', { input: [{ id: 'big', image: 'A'.repeat(8_000_000) }] });
      await store.save(large);
      expect(await store.find('alice', 'resp_large')).toEqual(large);
    });

    test('is replaced by one with the same id, with its items', async () => {
      const { store } = await open();
      await store.save(turn('resp_1'));
      const later = turn('resp_1', {
        response: { id: 'resp_1', status: 'failed', output: [] },
        input: [{ id: 'other' }],
      });
      await store.save(later);
      expect(await store.find('alice', 'resp_1')).toEqual(later);
      expect(await store.item('alice', 'in-resp_1')).toBeUndefined();
      expect(await store.item('alice', 'other')).toEqual({ id: 'other' });
    });

    test('is gone with its items when it was removed', async () => {
      const { store } = await open();
      await store.save(turn('resp_1'));
      expect(await store.remove('alice', 'resp_1')).toBe(true);
      expect(await store.remove('alice', 'resp_1')).toBe(false);
      expect(await store.find('alice', 'resp_1')).toBeUndefined();
      expect(await store.item('alice', 'out-resp_1')).toBeUndefined();
    });

    test('is changed only in the states that were named', async () => {
      const { store } = await open();
      const queued = turn('resp_1', { response: { id: 'resp_1', status: 'queued', output: [] } });
      const cancelled = turn('resp_1', { response: { id: 'resp_1', status: 'cancelled', output: [] } });
      expect(await store.saveIf(cancelled, ['queued'])).toBe(false);
      expect(await store.find('alice', 'resp_1')).toBeUndefined();
      await store.save(queued);
      expect(await store.saveIf(cancelled, ['queued', 'in_progress'])).toBe(true);
      expect(await store.saveIf(turn('resp_1'), ['queued', 'in_progress'])).toBe(false);
      expect(await store.find('alice', 'resp_1')).toEqual(cancelled);
    });
  });

  describe('a run', () => {
    const running = (id: string) =>
      turn(id, { response: { id, status: 'in_progress', output: [] }, runsUntil: 1_900_000_000_000 });

    test('tells how far it is', async () => {
      const { store } = await open();
      await store.save(running('resp_1'));
      await store.save(turn('resp_2'));
      expect(await store.state('alice', 'resp_1')).toEqual({
        status: 'in_progress',
        runsUntil: 1_900_000_000_000,
      });
      expect(await store.state('alice', 'resp_2')).toEqual({ status: 'completed' });
      expect(await store.state('alice', 'resp_3')).toBeUndefined();
      expect(await store.state('bob', 'resp_1')).toBeUndefined();
    });

    test('reports that it is alive until somebody has ended it', async () => {
      const { store } = await open();
      const states = ['queued', 'in_progress'];
      expect(await store.renew('alice', 'resp_1', 1, states)).toBe(false);
      await store.save(running('resp_1'));
      expect(await store.renew('alice', 'resp_1', 1_950_000_000_000, states)).toBe(true);
      expect(await store.renew('bob', 'resp_1', 5, states)).toBe(false);
      expect(await store.find('alice', 'resp_1')).toEqual({
        ...running('resp_1'),
        runsUntil: 1_950_000_000_000,
      });
      expect(await store.item('alice', 'in-resp_1')).toBeDefined();
      await store.save(turn('resp_1'));
      expect(await store.renew('alice', 'resp_1', 1_960_000_000_000, states)).toBe(false);
      expect(await store.find('alice', 'resp_1')).toEqual(turn('resp_1'));
    });
  });

  describe('a chain of responses', () => {
    test('comes oldest first, from any of its turns, and branches', async () => {
      const { store } = await open();
      await store.save(turn('a'));
      await store.save(turn('b', { previous: 'a' }));
      await store.save(turn('c', { previous: 'b' }));
      await store.save(turn('other', { previous: 'a' }));
      expect(ids(await store.chain('alice', 'c'))).toEqual(['a', 'b', 'c']);
      expect(ids(await store.chain('alice', 'b'))).toEqual(['a', 'b']);
      expect(ids(await store.chain('alice', 'other'))).toEqual(['a', 'other']);
      expect(await store.chain('alice', 'a')).toEqual([turn('a')]);
    });

    test('is unknown when a turn is missing', async () => {
      const { store } = await open();
      await store.save(turn('a'));
      await store.save(turn('b', { previous: 'a' }));
      await store.remove('alice', 'a');
      expect(await store.chain('alice', 'b')).toBeUndefined();
      expect(await store.chain('alice', 'never')).toBeUndefined();
    });

    test('ends where it would go round', async () => {
      const { store } = await open();
      await store.save(turn('a', { previous: 'c' }));
      await store.save(turn('b', { previous: 'a' }));
      await store.save(turn('c', { previous: 'b' }));
      await store.save(turn('self', { previous: 'self' }));
      expect(ids(await store.chain('alice', 'c'))).toEqual(['a', 'b', 'c']);
      expect(ids(await store.chain('alice', 'self'))).toEqual(['self']);
    });

    test('of more than a thousand turns is refused with a sentence', async () => {
      const { store } = await open();
      for (let number = 0; number <= 1000; number += 1) {
        await store.save(turn(`t${number}`, number === 0 ? {} : { previous: `t${number - 1}` }));
      }
      expect(await store.chain('alice', 't999')).toHaveLength(1000);
      await expect(store.chain('alice', 't1000')).rejects.toMatchObject({
        code: 'invalid_request',
        status: 400,
        param: 'previous_response_id',
        message: expect.stringContaining("'t1000' is too long") as string,
      });
    });

    test('that would fill the memory is refused before it is read', async () => {
      divideLimits();
      const { store, stores } = await open();
      await store.save(turn('a'));
      await store.save(turn('b', { previous: 'a' }));
      await execute(stores, `UPDATE responses SET input = ${text(140_000_000 / divisor)}`);
      await expect(store.chain('alice', 'b')).rejects.toMatchObject({ code: 'invalid_request' });
    });
  });

  describe('an item', () => {
    test('is found by its id, whether it was input or output', async () => {
      const { store } = await open();
      await store.save(turn('a'));
      expect(await store.item('alice', 'in-a')).toEqual({ id: 'in-a', type: 'message', text: 'Hi.' });
      expect(await store.item('alice', 'out-a')).toMatchObject({ text: 'Hello. 😀' });
      expect(await store.item('alice', 'never')).toBeUndefined();
    });

    test('with an id that no index takes is kept with its response all the same', async () => {
      const { store } = await open();
      const endless = Array.from({ length: 10_000 }, (_, number) => number).join('-');
      const stored = turn('a', { input: [{ id: endless, text: 'odd' }] });
      await store.save(stored);
      expect(await store.find('alice', 'a')).toEqual(stored);
      expect(await store.item('alice', endless)).toBeUndefined();
      await store.createConversation(conversation('conv_1'), []);
      const [kept] = (await store.appendItems('alice', 'conv_1', [{ id: endless, text: 'odd' }])) ?? [];
      expect(await store.findItem('alice', 'conv_1', String(kept?.['id']))).toEqual(kept);
      expect(kept).toMatchObject({ text: 'odd', id: expect.stringMatching(/^item_/) as string });
    });

    test('of several responses comes from the newest', async () => {
      const { store } = await open();
      await store.save(turn('new', { createdAt: now + 5, input: [{ id: 'same', text: 'new' }] }));
      await store.save(turn('old', { input: [{ id: 'same', text: 'old' }] }));
      expect(await store.item('alice', 'same')).toEqual({ id: 'same', text: 'new' });
    });

    test('of a conversation is found as well', async () => {
      const { store } = await open();
      await store.createConversation(conversation('conv_1'), [{ id: 'first' }]);
      expect(await store.item('alice', 'first')).toEqual({ id: 'first' });
      await store.removeConversation('alice', 'conv_1');
      expect(await store.item('alice', 'first')).toBeUndefined();
    });
  });

  describe('a conversation', () => {
    test('keeps its metadata and its items in order', async () => {
      const { store } = await open();
      await store.createConversation(conversation('conv_1', 'alice', { topic: 'a' }), [
        { id: '1' },
        { id: '2' },
      ]);
      expect(await store.appendItems('alice', 'conv_1', [{ id: '3' }])).toEqual([{ id: '3' }]);
      expect(await store.findConversation('alice', 'conv_1')).toEqual(
        conversation('conv_1', 'alice', { topic: 'a' }),
      );
      expect(itemIds(await store.allItems('alice', 'conv_1'))).toEqual(['1', '2', '3']);
      expect(await store.updateConversation(conversation('conv_1', 'alice', { topic: 'b' }))).toBe(true);
      expect((await store.findConversation('alice', 'conv_1'))?.metadata).toEqual({ topic: 'b' });
    });

    test('is listed page by page, in both directions, as if it were one list', async () => {
      const { store } = await open();
      const count = 23;
      const all = Array.from({ length: count }, (_, index) => ({ id: `item-${index}` }));
      await store.createConversation(conversation('conv_1'), all);
      for (const order of ['asc', 'desc'] as const) {
        for (const limit of [1, 5, 22, 23, 100]) {
          const seen: JsonObject[] = [];
          for (let after: string | undefined, more = true; more;) {
            const page = await store.listItems('alice', 'conv_1', {
              order,
              limit,
              ...(after === undefined ? {} : { after }),
            });
            seen.push(...(page?.items ?? []));
            more = page?.hasMore === true;
            after = String(seen.at(-1)?.['id']);
          }
          expect(seen).toEqual(order === 'asc' ? all : all.toReversed());
        }
      }
      expect(
        await store.listItems('alice', 'conv_1', { order: 'asc', limit: 5, after: 'x' }),
      ).toBeUndefined();
    });

    test('loses nothing when clients use an id twice', async () => {
      const { store } = await open();
      await store.createConversation(conversation('conv_1'), [{ id: 'msg_1', text: 'first' }]);
      const kept = await store.appendItems('alice', 'conv_1', [
        { id: 'msg_1', text: 'second' },
        { text: 'no id' },
        { id: 'msg_1', text: 'third' },
      ]);
      expect(new Set(itemIds(kept)).size).toBe(3);
      const all = await store.allItems('alice', 'conv_1');
      expect(all.map((item) => item['text'])).toEqual(['first', 'second', 'no id', 'third']);
      expect(all.slice(1)).toEqual(kept);
      expect(all[0]?.['id']).toBe('msg_1');
    });

    test('gives one item, and lets go of it', async () => {
      const { store } = await open();
      await store.createConversation(conversation('conv_1'), [{ id: '1' }, { id: '2' }]);
      expect(await store.findItem('alice', 'conv_1', '1')).toEqual({ id: '1' });
      expect(await store.removeItem('alice', 'conv_1', '1')).toBe(true);
      expect(await store.removeItem('alice', 'conv_1', '1')).toBe(false);
      expect(await store.findItem('alice', 'conv_1', '1')).toBeUndefined();
      await store.appendItems('alice', 'conv_1', [{ id: '1', again: true }]);
      expect(itemIds(await store.allItems('alice', 'conv_1'))).toEqual(['2', '1']);
    });

    test('of very large items comes in smaller pages, and is refused as a whole', async () => {
      divideLimits();
      const { store, stores } = await open();
      const all = ['1', '2', '3'].map((id) => ({ id }));
      await store.createConversation(conversation('conv_1'), all);
      await execute(
        stores,
        `UPDATE conversation_items SET value = '{"id":"' || item || '","text":"' || ${text(90_000_000 / divisor)} || '"}'`,
      );
      const first = await store.listItems('alice', 'conv_1', { order: 'asc', limit: 100 });
      expect([itemIds(first?.items), first?.hasMore]).toEqual([['1'], true]);
      const last = await store.listItems('alice', 'conv_1', { order: 'asc', limit: 100, after: '2' });
      expect([itemIds(last?.items), last?.hasMore]).toEqual([['3'], false]);
      await expect(store.allItems('alice', 'conv_1')).rejects.toMatchObject({
        code: 'invalid_request',
        param: 'conversation',
      });
      // A question that was broken off keeps no lock.
      expect(await store.appendItems('alice', 'conv_1', [{ id: '4' }])).toEqual([{ id: '4' }]);
    });

    test('that is not there takes nothing', async () => {
      const { store } = await open();
      expect(await store.appendItems('alice', 'conv_1', [{ id: '1' }])).toBeUndefined();
      expect(await store.updateConversation(conversation('conv_1'))).toBe(false);
      expect(await store.removeConversation('alice', 'conv_1')).toBe(false);
      expect(await store.allItems('alice', 'conv_1')).toEqual([]);
    });
  });

  test('nothing is there for anybody but its owner', async () => {
    const { store } = await open();
    await store.save(turn('resp_1'));
    await store.createConversation(conversation('conv_1'), [{ id: 'first' }]);
    expect(await store.find('bob', 'resp_1')).toBeUndefined();
    expect(await store.chain('bob', 'resp_1')).toBeUndefined();
    expect(await store.item('bob', 'in-resp_1')).toBeUndefined();
    expect(await store.item('bob', 'first')).toBeUndefined();
    expect(await store.remove('bob', 'resp_1')).toBe(false);
    expect(await store.saveIf(turn('resp_1', { owner: 'bob' }), ['completed'])).toBe(false);
    expect(await store.findConversation('bob', 'conv_1')).toBeUndefined();
    expect(await store.updateConversation(conversation('conv_1', 'bob', { mine: 'now' }))).toBe(false);
    expect(await store.appendItems('bob', 'conv_1', [{ id: 'x' }])).toBeUndefined();
    expect(await store.allItems('bob', 'conv_1')).toEqual([]);
    expect((await store.listItems('bob', 'conv_1', { order: 'asc', limit: 10 }))?.items).toEqual([]);
    expect(await store.findItem('bob', 'conv_1', 'first')).toBeUndefined();
    expect(await store.removeItem('bob', 'conv_1', 'first')).toBe(false);
    expect(await store.removeConversation('bob', 'conv_1')).toBe(false);
    // Two owners may even use the same ids.
    await store.save(turn('resp_1', { owner: 'bob', input: [] }));
    await store.createConversation(conversation('conv_1', 'bob'), []);
    expect(await store.find('alice', 'resp_1')).toEqual(turn('resp_1'));
    expect(itemIds(await store.allItems('alice', 'conv_1'))).toEqual(['first']);
  });

  describe('what has expired', () => {
    test('is not found in any way', async () => {
      const { store } = await open();
      await store.save(turn('old', { expiresAt: now - 1 }));
      await store.save(turn('young', { previous: 'old' }));
      expect(await store.find('alice', 'old')).toBeUndefined();
      expect(await store.chain('alice', 'young')).toBeUndefined();
      expect(await store.item('alice', 'in-old')).toBeUndefined();
      expect(await store.saveIf(turn('old'), ['completed'])).toBe(false);
      expect(await store.remove('alice', 'old')).toBe(false);
      expect(await store.find('alice', 'young')).toBeDefined();
    });

    test('leaves a gap in a chain that nothing bridges', async () => {
      const { store } = await open();
      await store.save(turn('first'));
      await store.save(turn('old', { previous: 'first', expiresAt: now - 1 }));
      await store.save(turn('young', { previous: 'old' }));
      expect(await store.chain('alice', 'young')).toBeUndefined();
      expect(ids(await store.chain('alice', 'first'))).toEqual(['first']);
    });

    test('is removed in batches, and nothing else is', async () => {
      // The gateway's own sweeping never comes to its turn.
      vi.useFakeTimers({ toFake: ['setTimeout'] });
      const { stores, store } = await open().finally(() => vi.useRealTimers());
      for (let number = 0; number < 7; number += 1)
        await store.save(turn(`old-${number}`, { expiresAt: now - 10 }));
      await store.save(turn('young'));
      const tables = sqlOf(stores.database);
      expect(await deleteExpiredResponses(tables, 5)).toBe(5);
      expect(await deleteExpiredResponses(tables, 5)).toBe(2);
      expect(await deleteExpiredResponses(tables, 5)).toBe(0);
      expect(await execute(stores, 'SELECT id FROM responses')).toHaveLength(1);
      expect(await execute(stores, 'SELECT item FROM response_items')).toHaveLength(2);
    });

    test('is removed while the gateway runs', async () => {
      const { stores, store } = await open();
      await store.save(turn('old', { expiresAt: now - 10 }));
      await eventually(async () => expect(await execute(stores, 'SELECT id FROM responses')).toEqual([]));
      expect(await store.item('alice', 'in-old')).toBeUndefined();
    });
  });

  test('the operator is told how many conversations are kept, and for how long removal is overdue', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const { stores, store } = await open().finally(() => vi.useRealTimers());
    await store.createConversation(conversation('conv_1'), []);
    await store.createConversation(conversation('conv_2'), []);
    const figures = async () =>
      Object.fromEntries((await responsesStanding(stores.database)).map((kept) => [kept.what, kept]));
    expect(await figures()).toMatchObject({
      responses: { overdueSeconds: 0 },
      conversations: { rows: 2, overdueSeconds: 0 },
    });
    await store.save(turn('old', { expiresAt: now - 200_000 }));
    const { responses } = await figures();
    expect(responses?.overdueSeconds).toBeGreaterThanOrEqual(200_000);
    expect(responses?.warning).toMatch(/not removed/);
  });

  describe('when something is wrong with the database', () => {
    test('a damaged row counts as missing, is reported, and hides no other', async () => {
      const report = vi.fn<Report>();
      const { stores, store } = await open(undefined, report);
      const damage = (sql: string) => execute(stores, sql);
      await store.save(turn('a'));
      await store.save(turn('b'));
      await store.save(turn('c', { previous: 'b' }));
      await store.createConversation(conversation('conv_1'), [{ id: '1' }, { id: '2' }, { id: '3' }]);
      await damage(`UPDATE responses SET response = '{"id": "a", "out' WHERE id = 'a'`);
      await damage(`UPDATE responses SET input = '[1]' WHERE id = 'b'`);
      await damage(`UPDATE conversation_items SET value = 'null' WHERE item = '2'`);
      expect(await store.find('alice', 'a')).toBeUndefined();
      expect(report.mock.calls.map(([error]) => error.message)).toEqual([
        'The response a is damaged in the database and counts as missing.',
      ]);
      expect(await store.find('alice', 'b')).toBeUndefined();
      expect(await store.chain('alice', 'c')).toBeUndefined();
      expect(await store.find('alice', 'c')).toBeDefined();
      expect(await store.item('alice', 'in-a')).toBeUndefined();
      expect(itemIds(await store.allItems('alice', 'conv_1'))).toEqual(['1', '3']);
      expect(await store.findItem('alice', 'conv_1', '2')).toBeUndefined();
      await damage(`UPDATE conversations SET metadata = ''`);
      expect(await store.findConversation('alice', 'conv_1')).toBeUndefined();
      // A damaged record can still be removed and written anew.
      await store.save(turn('a'));
      expect(await store.find('alice', 'a')).toEqual(turn('a'));
      expect(await store.remove('alice', 'b')).toBe(true);
    });

    test('a write that fails changes nothing', async () => {
      const { stores, store } = await open();
      await store.createConversation(conversation('conv_1'), [{ id: '1' }]);
      await execute(stores, refuseLast);
      await expect(store.appendItems('alice', 'conv_1', [{ id: '2' }, { id: 'last' }])).rejects.toThrow(
        'disk full',
      );
      await expect(store.createConversation(conversation('conv_2'), [{ id: 'last' }])).rejects.toThrow(
        'disk full',
      );
      expect(itemIds(await store.allItems('alice', 'conv_1'))).toEqual(['1']);
      expect(await store.findConversation('alice', 'conv_2')).toBeUndefined();
      expect(await store.appendItems('alice', 'conv_1', [{ id: '2' }])).toHaveLength(1);
    });

    test('a closed database rejects', async () => {
      const { stores, store } = await open();
      await stores.close();
      await expect(store.find('alice', 'a')).rejects.toThrow(/finalized|not open|is closed/);
      await expect(store.save(turn('a'))).rejects.toThrow(/finalized|not open|is closed/);
    });
  });

  describe('several processes on one database', () => {
    test('add to one conversation at once without losing or mixing anything', async () => {
      const url = await newUrl();
      const { store } = await open(url);
      await store.createConversation(conversation('conv_shared'), []);
      const batches = 60;
      const other = run(url, 'append', String(batches));
      let othersWere = 0;
      for (let batch = 0; batch < batches; batch += 1) {
        const items = [0, 1, 2].map((part) => ({ id: `own-${batch}-${part}`, type: 'message' }));
        await store.appendItems('alice', 'conv_shared', items);
        // Lets the other process start before all is done here.
        for (let wait = 0; wait < 40 && othersWere === 0; wait += 1) {
          await new Promise((resolve) => setTimeout(resolve, 50));
          const all = await store.allItems('alice', 'conv_shared');
          othersWere = all.filter(({ id }) => String(id).startsWith('other')).length;
        }
      }
      expect(await other).toBe('appended');
      const all = itemIds(await store.allItems('alice', 'conv_shared'))?.map(String) ?? [];
      expect(all).toHaveLength(batches * 6);
      for (const who of ['own', 'other']) {
        expect(all.filter((id) => id.startsWith(`${who}-`))).toEqual(
          Array.from({ length: batches * 3 }, (_, index) => `${who}-${Math.floor(index / 3)}-${index % 3}`),
        );
      }
      // A batch is never torn apart.
      for (let at = 0; at < all.length; at += 3) {
        expect(new Set(all.slice(at, at + 3).map((id) => id.replace(/-\d$/, ''))).size).toBe(1);
      }
    });

    test('that end a run at the same time do not overrule each other', async () => {
      const url = await newUrl();
      const stores = await Promise.all(Array.from({ length: 4 }, () => open(url)));
      for (let round = 0; round < 10; round += 1) {
        const id = `resp_${round}`;
        await stores[0]?.store.save(turn(id, { response: { id, status: 'in_progress', output: [] } }));
        const ends = ['completed', 'cancelled', 'failed', 'incomplete'];
        const won = await Promise.all(
          stores.map(({ store }, index) =>
            store.saveIf(turn(id, { response: { id, status: ends[index] ?? '', output: [] } }), [
              'in_progress',
            ]),
          ),
        );
        expect(won.filter(Boolean)).toHaveLength(1);
        expect(await stores[0]?.store.state('alice', id)).toEqual({ status: ends[won.indexOf(true)] });
      }
    });

    test('may save, remove and sweep the same rows at once without blocking each other', async () => {
      const url = await newUrl();
      const all = await Promise.all(Array.from({ length: 3 }, () => open(url)));
      await Promise.all(
        all.flatMap(({ store, stores }) =>
          Array.from({ length: 15 }, async (_, round) => {
            const id = `resp_${round % 4}`;
            await store.save(turn(id, { expiresAt: now + (round % 3 === 0 ? -5 : 100) }));
            await deleteExpiredResponses(sqlOf(stores.database), 2);
            await store.remove('alice', id);
          }),
        ),
      );
      expect(await execute(all[0]?.stores as Stores, 'SELECT item FROM response_items')).toEqual([]);
    });

    test('see each other`s responses at once', async () => {
      const url = await newUrl();
      const { store } = await open(url);
      await store.save(turn('a'));
      await store.save(turn('b', { previous: 'a' }));
      expect(JSON.parse(await run(url, 'chain', 'b'))).toEqual(['a', 'b']);
    });

    test('a process that is killed while it writes leaves whole turns only', async () => {
      const url = await newUrl();
      const child = start(url, 'write-until-killed');
      let printed = '';
      child.stdout.on('data', (chunk: Buffer) => {
        printed += chunk.toString();
      });
      await expect.poll(() => printed.split('\n').length).toBeGreaterThan(20);
      child.kill('SIGKILL');
      await once(child, 'exit');
      const confirmed = Number(printed.trim().split('\n').at(-1));
      const { store } = await open(url);
      expect(await store.chain('alice', `resp_${confirmed}`)).toHaveLength(confirmed + 1);
      expect((await store.item('alice', `out_${confirmed}`))?.['content']).toHaveLength(20_000);
      const items = itemIds(await store.allItems('alice', 'conv_killed')) ?? [];
      expect(items.length).toBeGreaterThanOrEqual(2 * (confirmed + 1));
      expect(items).toEqual(
        Array.from({ length: items.length / 2 }, (_, n) => [`in_${n}`, `out_${n}`]).flat(),
      );
      await store.appendItems('alice', 'conv_killed', [{ id: 'after' }]);
      expect((await store.allItems('alice', 'conv_killed')).at(-1)).toEqual({ id: 'after' });
    });
  });
}

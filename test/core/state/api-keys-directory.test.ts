import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createApiKeys } from '../../../core/state/api-keys/open.ts';
import { keyListsStanding } from '../../../core/state/api-keys/standing.ts';
import type { ApiKeys } from '../../../core/state/api-keys/index.ts';
import { scopeCondition, type KeyScope } from '../../../core/state/api-keys/key-scope.ts';
import { searching } from '../../../core/state/api-keys/search.ts';
import { operatorReads } from '../../../core/state/database/long-reads.ts';
import { openStores, type Stores } from '../../../core/state/stores.ts';
import { row, rows, sqlOf } from '../../../core/state/database/sql.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../support/postgres.ts';
import { temporaryDatabase } from './support.ts';

const missing = withoutPostgres();

describe('on an SQLite file', () => {
  suite(async () => temporaryDatabase());
});

describe.skipIf(missing !== undefined)(`on PostgreSQL${missing === undefined ? '' : `, ${missing}`}`, () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  suite(() => server.createDatabaseWithTables());
});

function suite(url: () => Promise<string>): void {
  async function opened(): Promise<{ stores: Stores; keys: ApiKeys }> {
    const stores = openStores(await url());
    await stores.ready();
    const keys = createApiKeys(stores);
    onTestFinished(async () => {
      await keys.stop();
      await stores.close();
    });
    return { stores, keys };
  }

  async function namesOf(keys: ApiKeys, search: string): Promise<string[]> {
    return (await keys.page(20, undefined, search)).keys.map(({ name }) => name);
  }

  test('keys are listed by owner, and follow each change of owner, rotation and removal', async () => {
    const { keys } = await opened();
    const team = await keys.owners.create({ kind: 'team', name: 'Research' });
    const other = await keys.owners.create({ kind: 'team', name: 'Sales' });
    const member = await keys.owners.create({ kind: 'member', name: 'Ada' });
    const owned = async (owner: string, search?: string): Promise<string[]> =>
      (await keys.page(20, undefined, search, owner)).keys.map(({ name }) => name);
    await keys.create({ name: 'nobody' });
    const first = await keys.create({ name: 'first', team: team.id });
    await keys.create({ name: 'second', team: team.id, member: member.id, note: 'for ÉCLAIR' });
    await keys.create({ name: 'third', team: other.id });
    expect(await owned(team.id)).toEqual(['second', 'first']);
    expect(await owned(member.id)).toEqual(['second']);
    expect(await owned(team.id, 'FIR')).toEqual(['first']);
    expect(await owned(team.id, 'clair')).toEqual(['second']);
    expect(await owned('team_unknown')).toEqual([]);
    const page = await keys.page(1, undefined, undefined, team.id);
    expect((await keys.page(1, page.next, undefined, team.id)).keys.map(({ name }) => name)).toEqual([
      'first',
    ]);
    await keys.rotate(first.record.id);
    expect((await owned(team.id)).toSorted()).toEqual(['first', 'second']);
    await keys.update(first.record.id, { team: other.id });
    expect(await owned(team.id)).toEqual(['second']);
    expect((await owned(other.id)).toSorted()).toEqual(['first', 'third']);
    await keys.update(first.record.id, { team: undefined });
    expect(await owned(other.id)).toEqual(['third']);
    await keys.revoke('second');
    expect(await owned(member.id)).toEqual([]);
  });

  test('keys of a scope are those of its member and teams, or of its organisation, and follow each change of owners', async () => {
    const { keys, stores } = await opened();
    const { owners } = keys;
    const organisation = await owners.create({ kind: 'organisation', name: 'One' });
    const other = await owners.create({ kind: 'organisation', name: 'Other' });
    const team = await owners.create({ kind: 'team', name: 'Research', organisation: organisation.id });
    const free = await owners.create({ kind: 'team', name: 'Free' });
    const member = await owners.create({ kind: 'member', name: 'Ada', organisation: organisation.id });
    const foreign = await owners.create({ kind: 'member', name: 'Eve', organisation: other.id });
    await keys.create({ name: 'nobody' });
    await keys.create({ name: 'of the team', team: team.id });
    await keys.create({ name: 'of both', team: free.id, member: member.id });
    const lent = await keys.create({ name: 'of another', member: foreign.id, team: free.id });
    const named = async (scope: KeyScope, search?: string, owner?: string): Promise<string[]> =>
      (await keys.page(20, undefined, search, owner, scope)).keys.map(({ name }) => name);
    expect(await named({ member: member.id })).toEqual(['of both']);
    expect(await named({ member: member.id, teams: [team.id, free.id] })).toEqual([
      'of another',
      'of both',
      'of the team',
    ]);
    expect(await named({ teams: [free.id] }, 'ANOTH')).toEqual(['of another']);
    expect(await named({ organisation: organisation.id })).toEqual(['of both', 'of the team']);
    expect(await named({ organisation: organisation.id }, undefined, team.id)).toEqual(['of the team']);
    expect(await named({ organisation: other.id })).toEqual(['of another']);
    expect(await named({})).toEqual([]);
    expect(await keys.count({ member: member.id, teams: [free.id] })).toBe(2);
    // The member's organisation decides before the team's.
    await owners.update(free.id, { organisation: organisation.id });
    expect(await named({ organisation: organisation.id })).toEqual(['of both', 'of the team']);
    await owners.update(foreign.id, { organisation: undefined });
    expect(await named({ organisation: organisation.id })).toEqual(['of another', 'of both', 'of the team']);
    expect(await keys.count({ organisation: organisation.id })).toBe(3);
    await keys.update(lent.record.id, { member: undefined, team: undefined });
    expect(await keys.count({ organisation: organisation.id })).toBe(2);
    expect(await keys.count({ member: foreign.id })).toBe(0);
    const { database } = stores;
    if (database.kind !== 'sqlite') return;
    for (const scope of [{ member: member.id, teams: [team.id] }, { organisation: organisation.id }]) {
      const { sql, values } = scopeCondition('sqlite', scope);
      const plan = database.connection
        .prepare(`EXPLAIN QUERY PLAN SELECT COUNT(*) FROM keyv e WHERE e.namespace = 'api-keys' AND ${sql}`)
        .all(...values);
      const steps = plan.map(({ detail }) => String(detail));
      // One by one by their hashes, never all entries of keys.
      expect(steps).toContainEqual(expect.stringMatching(/^SEARCH e USING .* \(namespace=\? AND key=\?\)$/));
      expect(steps.filter((step) => step.startsWith('SCAN'))).toEqual([]);
    }
  });

  test('pages go from the newest to the oldest, with every key once, also when keys are deleted meanwhile', async () => {
    const { keys } = await opened();
    const made: string[] = [];
    for (let number = 0; number < 25; number += 1)
      made.push((await keys.create({ name: `key ${number}` })).record.id);
    const seen: string[] = [];
    let next: string | undefined;
    do {
      const page = await keys.page(10, next);
      seen.push(...page.keys.map(({ id }) => id));
      next = page.next;
      // The key that the next page begins behind.
      await keys.revoke(seen.at(-1) ?? '');
    } while (next !== undefined);
    expect(seen).toEqual(made.toReversed());
    expect((await keys.page(50)).keys).toHaveLength(22);
    expect((await keys.page(50, 'no page has this!')).keys).toEqual([]);
  });

  test('a search finds any part of a name, a note or an id, and the beginning of a secret, ignoring case', async () => {
    const { keys } = await opened();
    const { record } = await keys.create({
      name: 'Zoë Ångström "billing"',
      value: `sk-QrSt${'a'.repeat(44)}`,
    });
    const { record: grace } = await keys.create({
      name: '100%_of',
      note: 'Team\nGrace',
      value: `sk-UvWx${'a'.repeat(44)}`,
    });
    const { record: colon } = await keys.create({
      name: ':colon',
      note: '::two',
      value: `sk-QrYz${'a'.repeat(44)}`,
    });
    const { record: own } = await keys.create({ name: 'a qrs in between', value: `own-${'b'.repeat(44)}` });
    expect(await namesOf(keys, 'ZOË å')).toEqual([record.name]);
    expect(await namesOf(keys, '"BILL')).toEqual([record.name]);
    expect(await namesOf(keys, record.id.slice(3, 12).toUpperCase())).toEqual([record.name]);
    expect(await namesOf(keys, 'grace')).toEqual(['100%_of']);
    expect(await namesOf(keys, '%_o')).toEqual(['100%_of']);
    expect(await namesOf(keys, '%')).toEqual(['100%_of']);
    expect(await namesOf(keys, 'b*g')).toEqual([]);
    expect(await namesOf(keys, ':co')).toEqual([':colon']);
    expect(await namesOf(keys, 'sk-qr')).toEqual([':colon', record.name]);
    // A secret has to begin with it; a name may have it anywhere.
    // An id is random, and may have these letters.
    const found = (text: string, ...those: readonly (typeof own)[]): readonly string[] =>
      [own, colon, grace, record]
        .filter((key) => those.includes(key) || key.id.toLowerCase().includes(text))
        .map(({ name }) => name);
    expect(await namesOf(keys, 'qrs')).toEqual(found('qrs', own));
    expect(await namesOf(keys, 'k-')).toEqual(found('k-'));
    expect(await namesOf(keys, 'sk')).toEqual(found('sk', colon, grace, record));
    expect(await namesOf(keys, 'in betweenkey_')).toEqual([]);
    expect(await namesOf(keys, '\0')).toEqual([]);
    await keys.update(record.id, { name: 'other', note: undefined });
    expect(await namesOf(keys, 'ZOË å')).toEqual([]);
    await keys.rotate(record.id);
    expect(await namesOf(keys, 'OTHER')).toEqual(['other']);
    await keys.revoke(record.id);
    expect(await namesOf(keys, 'other')).toEqual([]);
  });

  test('a search goes on page by page through keys that many have in common, and finds what only the oldest have', async () => {
    const { keys, stores } = await opened();
    const [rare] = [(await keys.create({ name: 'pilot of the year' })).record];
    const template = { ...rare, name: 'x' };
    await stores.namespace('api-keys').setMany(
      Array.from({ length: 3_000 }, (_, number) => {
        const hash = String(number).padStart(64, '0');
        return {
          key: hash,
          value: {
            ...template,
            id: `key_${number}`,
            name: `team ${number}`,
            hash,
            createdAt: rare.createdAt + number,
          },
        };
      }),
    );
    expect(await namesOf(keys, 'pilot')).toEqual([rare.name]);
    expect(await namesOf(keys, 'team 17')).toHaveLength(20);
    const first = await keys.page(400, undefined, 'team 1');
    const second = await keys.page(400, first.next, 'team 1');
    const third = await keys.page(400, second.next, 'team 1');
    const found = [...first.keys, ...second.keys, ...third.keys].map(({ name }) => name);
    const expected = Array.from({ length: 3_000 }, (_, number) => `team ${number}`).filter((name) =>
      name.startsWith('team 1'),
    );
    expect(found).toEqual(expected.toReversed());
    expect(third.next).toBeUndefined();
  });

  test('a search for two characters looks at some keys a page, and goes on behind them until it has found what only the oldest has', async () => {
    const { keys, stores } = await opened();
    const { record } = await keys.create({ name: 'on the §9 list' });
    await stores.namespace('api-keys').setMany(
      Array.from({ length: 250 }, (_, number) => {
        const hash = String(number).padStart(64, '0');
        const value = { ...record, id: `key_${number}`, name: `team ${number}`, hash };
        return { key: hash, value: { ...value, createdAt: record.createdAt + 1 + number } };
      }),
    );
    await keys.page(1);
    const { database } = stores;
    const search = searching(database.kind, operatorReads(database), 100);
    let before = '9223372036854775807';
    const pages: number[] = [];
    for (;;) {
      const { rows: found, unread } = await search('§9', before, 10);
      pages.push(found.length);
      if (unread === undefined) break;
      before = unread;
    }
    expect(pages).toEqual([0, 0, 1]);
    // A full page needs no look at the rest.
    expect(await search('te', '9223372036854775807', 10)).not.toHaveProperty('unread');
    expect((await search('te', '9223372036854775807', 101)).rows).toHaveLength(100);
    expect((await keys.page(10, undefined, '§9')).keys.map(({ name }) => name)).toEqual([record.name]);
  });

  test('a key can be named by its name or its first characters, and one of too many not', async () => {
    const { keys } = await opened();
    await keys.create({ name: ':colon' });
    expect((await keys.revoke(':colon')).name).toBe(':colon');
    const { record } = await keys.create({ name: 'plain', value: `sk-AbCd${'x'.repeat(40)}wxyz` });
    expect((await keys.update('sk-AbCd…wxyz', { note: 'found' })).id).toBe(record.id);
    expect((await keys.update('sk-AbCd', { note: 'again' })).id).toBe(record.id);
    for (let number = 0; number < 25; number += 1) await keys.create({ name: 'many' });
    await expect(keys.revoke('many')).rejects.toThrow(
      '"many" matches more than 20 keys. Use the id of one: key_',
    );
  });

  test('keys from before the table are found, also those that a gateway of the version before writes', async () => {
    const { keys, stores } = await opened();
    const records = stores.namespace<Record<string, unknown>>('api-keys');
    const sql = sqlOf(stores.database);
    const before = [];
    for (let number = 0; number < 30; number += 1)
      before.push((await keys.create({ name: `before ${number}` })).record);
    // As it stands after a migration.
    await sql.run(() => rows('DELETE FROM api_keys'));
    await sql.run(() => row("INSERT INTO api_keys_filling (one, after) VALUES (1, '')"));
    await sql.run(() =>
      row("UPDATE sluice_additions SET applied = applied - 90000 WHERE name = 'api-keys-1'"),
    );
    const backlog = await keyListsStanding(stores.database);
    expect(backlog).toMatchObject({ what: 'api-key-lists', rows: 30 });
    expect(backlog.warning).toMatch(/^30 API keys from before the upgrade cannot be listed/);
    expect(backlog.overdueSeconds).toBeGreaterThanOrEqual(90);
    const [gone, changed] = before;
    await records.delete(gone?.hash ?? '');
    await records.set(changed?.hash ?? '', { ...changed, name: 'changed' });
    const others = createApiKeys(stores);
    const [one, other] = await Promise.all([keys.page(100), others.page(100)]);
    expect(one).toEqual(other);
    expect(one.keys.map(({ id }) => id).toSorted()).toEqual(
      before
        .slice(1)
        .map(({ id }) => id)
        .toSorted(),
    );
    expect(await namesOf(keys, 'changed')).toEqual(['changed']);
    expect(await keys.names([changed?.id ?? '', before[2]?.id ?? ''])).toEqual(
      new Map([
        [changed?.id, 'changed'],
        [before[2]?.id, 'before 2'],
      ]),
    );
    expect(await sql.run(() => row('SELECT * FROM api_keys_filling'))).toBeUndefined();
    const done = await keyListsStanding(stores.database);
    expect([done.rows, done.overdueSeconds, done.warning]).toEqual([0, 0, undefined]);
  });

  test('a key that is rotated meanwhile is found all the same, by its id and by its name', async () => {
    const { keys, stores } = await opened();
    const others = createApiKeys(stores);
    onTestFinished(() => others.stop());
    const { record } = await keys.create({ name: 'turning' });
    const state = { isOver: false };
    const rotate = async (): Promise<void> => {
      // oxlint-disable-next-line no-await-in-loop -- one rotation after the other
      for (let round = 0; round < 100; round += 1) await others.rotate(record.id);
      state.isOver = true;
    };
    const look = async (): Promise<void> => {
      // oxlint-disable-next-line no-await-in-loop -- one look after the other
      while (!state.isOver) expect((await keys.byId(record.id))?.name).toBe('turning');
    };
    await Promise.all([rotate(), look(), look()]);
    expect((await keys.update('turning', { note: 'turned' })).note).toBe('turned');
  });

  test('keys are found by many ids at once, in the order of the ids, without those that are gone', async () => {
    const { keys } = await opened();
    const made: string[] = [];
    // oxlint-disable-next-line no-await-in-loop -- one key after the other
    for (const name of ['a', 'b', 'c']) made.push((await keys.create({ name })).record.id);
    const [first = '', gone = '', last = ''] = made;
    await keys.revoke(gone);
    const unknown = Array.from({ length: 600 }, (_, index) => `key_unknown${index}`);
    const found = await keys.byIds([last, gone, ...unknown, first]);
    expect(found).toEqual([await keys.byId(last), await keys.byId(first)]);
    expect(found.map(({ name }) => name)).toEqual(['c', 'a']);
    expect(await keys.byIds([])).toEqual([]);
  });

  test('an entry that is no key is in no list, and keeps no other from being written', async () => {
    const { keys, stores } = await opened();
    const { record } = await keys.create({ name: 'torn' });
    const good = await keys.create({ name: 'good' });
    const sql = sqlOf(stores.database);
    const write = (value: string) =>
      sql.run(() =>
        row(
          "UPDATE keyv SET value = ? WHERE namespace = 'api-keys' AND key = ? RETURNING 1",
          value,
          record.hash,
        ),
      );
    for (const value of [
      '{"value":{"id":"key_',
      '{}',
      '[]',
      '{"value":7}',
      JSON.stringify({ value: good.record }),
    ]) {
      expect(await write(value)).toBeDefined();
      expect((await keys.list()).map(({ name }) => name)).toEqual(['good']);
    }
    await write(JSON.stringify({ value: { ...record, name: 'mended \0 and \ud800' } }));
    expect((await keys.list()).map(({ name }) => name)).toHaveLength(2);
    await write(JSON.stringify({ value: { ...record, name: 'mended' } }));
    expect((await keys.list()).map(({ name }) => name).toSorted()).toEqual(['good', 'mended']);
  });
}

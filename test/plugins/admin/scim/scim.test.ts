import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { GatewayError, type JsonObject, type RouteContext } from 'sluice';
import type { Owners } from '../../../../core/state/owners/index.ts';
import type { User, Users } from '../../../../core/state/users/index.ts';
import { openStores } from '../../../../core/state/stores.ts';
import { userAttributes } from '../../../../plugins/admin/scim/attributes.ts';
import { Directory } from '../../../../plugins/admin/scim/directory.ts';
import { refuse } from '../../../../plugins/admin/scim/exchange.ts';
import { matches, parseFilter } from '../../../../plugins/admin/scim/filter.ts';
import { ScimGroups } from '../../../../plugins/admin/scim/groups.ts';
import { listQuery, listResponse } from '../../../../plugins/admin/scim/list.ts';
import { patched } from '../../../../plugins/admin/scim/patch.ts';
import { FollowedRows } from '../../../../plugins/admin/scim/rows.ts';
import { ScimUsers } from '../../../../plugins/admin/scim/users.ts';

const user = {
  id: 'usr_1',
  userName: 'Bjensen@example.com',
  externalId: 'AbC',
  name: { familyName: 'Jensen' },
  active: true,
  emails: [
    { type: 'work', value: 'bjensen@example.com', primary: true },
    { type: 'home', value: 'babs@jensen.org' },
  ],
  meta: { lastModified: '2026-05-13T04:42:34Z' },
};

describe('a SCIM filter', () => {
  // The examples of RFC 7644, section 3.4.2.2, with values of this user.
  test.each([
    ['userName Eq "bjensen@example.com"', true],
    ['name.familyName co "ENS"', true],
    ['urn:ietf:params:scim:schemas:core:2.0:User:userName sw "B"', true],
    ['externalId eq "abc"', false],
    ['externalId eq "AbC"', true],
    ['title pr', false],
    ['emails pr and active eq true', true],
    ['active eq "True"', true],
    ['active eq false', false],
    ['meta.lastModified gt "2026-05-13T04:42:33Z"', true],
    ['meta.lastModified le "2026-05-13T04:42:33Z"', false],
    ['userName eq "x" or not (emails co "example.org" or emails.value ew "nothing")', true],
    ['emails[type eq "work" and value co "@example.com"]', true],
    ['emails[type eq "home" and value co "@example.com"]', false],
    ['emails.type eq "home"', true],
    ['title eq null', true],
    ['userName ne "other"', true],
  ])('%s is %s', (filter, expected) => {
    expect(matches(parseFilter(filter), user)).toBe(expected);
  });

  test.each([
    'userName',
    'userName eq',
    'userName is "x"',
    'userName eq "x',
    '(userName eq "x"',
    'userName eq "x" and',
    'userName eq "x" "y"',
    'emails[type eq "work"',
    '""',
    `${'('.repeat(20)}a pr${')'.repeat(20)}`,
    Array.from({ length: 60 }, () => 'a pr').join(' or '),
    `userName eq "${'x'.repeat(3_000)}"`,
  ])('that is none, or too long, is refused: %.60s', (filter) => {
    expect(() => parseFilter(filter)).toThrow(
      expect.objectContaining({ status: 400, scimType: 'invalidFilter' }),
    );
  });

  test('of any text is read or refused, and nothing else', () => {
    fc.assert(
      fc.property(
        fc.string({ maxLength: 200, unit: fc.constantFrom(...'ab ."()[]\\0-eqandornot:$') }),
        (text) => {
          try {
            matches(parseFilter(text), user);
          } catch (error) {
            expect(error).toMatchObject({ status: 400 });
          }
        },
      ),
    );
  });
});

describe('a PATCH of emails', () => {
  const work = { value: 'work@example.com', type: 'work' };
  const home = { value: 'home@example.com', type: 'home' };
  const emails = (before: readonly JsonObject[], path: string, value: string): unknown =>
    patched({ emails: before }, { Operations: [{ op: 'replace', path, value }] }, userAttributes)['emails'];

  test('keeps their order, because the first is the one to sign in with', () => {
    expect(emails([work, home], 'emails[type eq "work"].value', 'new@example.com')).toEqual([
      { value: 'new@example.com', type: 'work' },
      home,
    ]);
  });

  test('makes one of two that become the same, and leaves one primary', () => {
    expect(emails([work, home], 'emails[type eq "work"].value', home.value)).toEqual([
      { value: home.value, type: 'work' },
    ]);
    const primary = { ...home, primary: true };
    expect(emails([work, primary], 'emails[type eq "work"].primary', 'True')).toEqual([
      { ...work, primary: true },
      { ...home, primary: false },
    ]);
  });
});

describe('a SCIM list', () => {
  test('makes only the resources of its page, and of a filter no version that nobody sees', () => {
    let resources = 0;
    const listed = {
      all: ['ann', 'bob', 'cleo'],
      fields: (userName: string): JsonObject => ({ userName }),
      resource: (userName: string): JsonObject => {
        resources += 1;
        return { userName, meta: { version: userName } };
      },
    };
    const wanted = { attributes: undefined, excluded: new Set<string>() };
    const list = (query: string): JsonObject =>
      listResponse(listed, listQuery(new URLSearchParams(query)), wanted);
    expect(list('count=1&startIndex=2')).toMatchObject({
      totalResults: 3,
      Resources: [{ userName: 'bob', meta: {} }],
    });
    expect(resources).toBe(1);
    expect(list('filter=userName sw "c"')).toMatchObject({ totalResults: 1, Resources: [{ meta: {} }] });
    expect(resources).toBe(2);
    expect(list('filter=meta.version eq "ann"')).toMatchObject({ totalResults: 1 });
    expect(list('sortBy=meta.version&sortOrder=descending&count=1')).toMatchObject({
      Resources: [{ userName: 'cleo' }],
    });
  });

  test.each([
    ['characters', 'a'.repeat(201)],
    ['parts', 'a.b.c.d'],
  ])('takes no order by a path of too many %s', (_, sortBy) => {
    expect(() => listQuery(new URLSearchParams({ sortBy }))).toThrow(
      expect.objectContaining({ status: 400, scimType: 'invalidPath' }),
    );
  });
});

test('a refusal by SCIM says when to try again', () => {
  const headers = new Map<string, string>();
  const ctx = {
    set: (given: string | Record<string, string>, value = ''): void => {
      for (const [name, one] of Object.entries(typeof given === 'string' ? { [given]: value } : given))
        headers.set(name, one);
    },
  } as unknown as RouteContext;
  refuse(ctx, new GatewayError('rate_limit_exceeded', 'Later.', { retryAfter: 2.5 }), {} as never);
  expect([ctx.status, headers.get('retry-after')]).toEqual([429, '3']);
});

describe('rows that are followed', () => {
  test('are read once for many who ask at once, and stay readable meanwhile', async () => {
    const stores = openStores('sqlite::memory:');
    onTestFinished(() => stores.close());
    await stores.namespace<string>('rows').set('a', 'first');
    let reads = 0;
    let meanwhile: string | undefined;
    const rows: FollowedRows<string> = new FollowedRows<string>(
      {
        ...stores,
        changes: async () => undefined,
        revision: async (name) => {
          reads += 1;
          return stores.revision(name);
        },
        namespace: <Value>(name: string) => {
          const kept = stores.namespace<Value>(name);
          const { iterator } = kept;
          if (iterator !== undefined)
            kept.iterator = async function* watched(of: undefined) {
              meanwhile = rows.get('a');
              yield* iterator.call(kept, of);
            };
          return kept;
        },
      },
      'rows',
    );
    await rows.refresh();
    await stores.namespace<string>('rows').set('a', 'second');
    reads = 0;
    await Promise.all(Array.from({ length: 5 }, () => rows.refresh()));
    expect([meanwhile, rows.get('a')]).toEqual(['first', 'second']);
    // The first, and one after it for all who came while it ran.
    expect(reads).toBe(2);
  });
});

describe('a SCIM group', () => {
  /** A directory of many users in memory, which counts what is written. */
  function directory(count: number, member: Partial<User> = {}) {
    const written: string[] = [];
    const users = new Map(
      Array.from({ length: count }, (_, index) => [
        `usr_${index}`,
        { id: `usr_${index}`, role: 'member', teams: [], ...member } as unknown as User,
      ]),
    );
    const team = { id: 'team_1', kind: 'team', name: 'A' };
    const rows = new Map([['team_1', { isMade: true, changedAt: 0 }]]);
    const note = (what: string) => async (): Promise<never> => {
      written.push(what);
      return team as never;
    };
    const parts = Object.assign(Object.create(Directory.prototype) as Directory, {
      users: {
        find: (id: string) => users.get(id),
        current: async (id: string) => users.get(id),
        list: () => [...users.values()],
        update: async (id: string, changes: object) => {
          written.push(id);
          const changed = { ...users.get(id), ...changes } as User;
          users.set(id, changed);
          return changed;
        },
      } as unknown as Users,
      owners: {
        find: (id: string) => (id === team.id ? team : undefined),
        list: () => [team],
        create: note('create'),
        update: note('update'),
        remove: note('remove'),
      } as unknown as Owners,
      groupRows: {
        get: (id: string) => rows.get(id),
        entries: () => rows.entries(),
        set: note('set'),
        delete: note('delete'),
      },
    });
    const options = { rules: [] } as never;
    return { groups: new ScimGroups(parts, new ScimUsers(parts, options), options), users, team, written };
  }
  const quiet = async (): Promise<void> => {};
  const members = Array.from({ length: 2_001 }, (_, index) => ({ value: `usr_${index}` }));

  test('with too many members is refused before anything is written', async () => {
    const { groups, team, written } = directory(2_001);
    const tooMany = expect.objectContaining({ status: 413 });
    await expect(groups.create({ displayName: 'B', members }, quiet)).rejects.toThrow(tooMany);
    await expect(groups.replace(team as never, { displayName: 'C', members }, quiet)).rejects.toThrow(
      tooMany,
    );
    expect(written).toEqual([]);
  });

  test('of any number of members is deleted', async () => {
    const { groups, team, users } = directory(2_001, { teams: [{ team: 'team_1', lead: false }] });
    await groups.remove(team as never, quiet);
    expect([...users.values()].filter(({ teams }) => teams.length > 0)).toEqual([]);
  });

  test('leaves the teams that an administrator gives a user while its members are written', async () => {
    const { groups, team, users } = directory(2);
    const given = { team: 'team_2', lead: true };
    const meddle = async (): Promise<void> => {
      const other = users.get('usr_1');
      if (other !== undefined && other.teams.length === 0) users.set('usr_1', { ...other, teams: [given] });
    };
    await groups.replace(team as never, { displayName: 'A', members: members.slice(0, 2) }, meddle);
    expect(users.get('usr_1')?.teams).toEqual([given, { team: 'team_1', lead: false }]);
  });
});

import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { createApiKeys } from '../../../../core/state/api-keys/open.ts';
import type { Database } from '../../../../core/state/database/index.ts';
import { rows, sqlOf } from '../../../../core/state/database/sql.ts';
import { entriesOf, openStores } from '../../../../core/state/stores.ts';
import { openCredentials } from '../../../../core/state/users/credentials.ts';
import { UserConflict, UserMistake } from '../../../../core/state/users/index.ts';
import { openUsers } from '../../../../core/state/users/open.ts';
import { codeOf, stepAt } from '../../../../core/state/users/totp.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { temporaryDatabase } from '../support.ts';

type MemberDefaults = NonNullable<Parameters<typeof openUsers>[0]['defaults']>;

/** The users of one gateway on a database. */
function gateway(url: string, defaults: MemberDefaults = {}) {
  const stores = openStores(url);
  const keys = createApiKeys(stores);
  const users = openUsers({ stores, owners: keys.owners, defaults });
  onTestFinished(async () => {
    await keys.stop();
    await stores.close();
  });
  return { stores, owners: keys.owners, users, credentials: openCredentials(users, stores) };
}

const password = 'correct horse battery';
const ada = { email: 'Ada@Example.com', name: 'Ada' };
const identity = { issuer: 'https://id.example.com', subject: '42' };

/** Has the database refuse new users, and the removal of anything, until the returned function is called. */
async function breakUsers(database: Database): Promise<() => Promise<void>> {
  const sql = sqlOf(database);
  const run = async (statement: string): Promise<void> => {
    await sql.run(() => rows(statement));
  };
  const isSqlite = database.kind === 'sqlite';
  if (!isSqlite)
    await run(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'the database is gone'; END $$`);
  const acts = {
    refused_users: ['INSERT', "NEW.namespace = 'users'"],
    refused_removals: ['DELETE', "OLD.key <> ''"],
  };
  const refuse = isSqlite
    ? "BEGIN SELECT RAISE(ABORT, 'the database is gone'); END"
    : 'EXECUTE FUNCTION refuse()';
  for (const [name, [act, when]] of Object.entries(acts))
    await run(`CREATE TRIGGER ${name} BEFORE ${act} ON keyv FOR EACH ROW WHEN (${when}) ${refuse}`);
  return async () => {
    for (const name of Object.keys(acts)) await run(`DROP TRIGGER ${name}${isSqlite ? '' : ' ON keyv'}`);
  };
}

function suite(newUrl: () => Promise<string>): void {
  test('a user is found by what it is known by, on every gateway', async () => {
    const url = await newUrl();
    const [one, other] = [gateway(url), gateway(url)];
    await other.users.load();
    const user = await one.users.create({ ...ada, identities: [identity], externalId: 'e1' });
    expect(user).toMatchObject({
      email: 'ada@example.com',
      role: 'member',
      enabled: true,
      hasPassword: false,
    });
    await other.users.refresh();
    for (const { users } of [one, other]) {
      expect(users.find(user.id)).toEqual(user);
      expect(users.byEmail('ADA@example.com')).toEqual(user);
      expect(users.byIdentity(identity)).toEqual(user);
      expect(users.byExternalId('e1')).toEqual(user);
    }
    await other.users.update(user.id, { email: 'lovelace@example.com', identities: [] });
    await one.users.refresh();
    expect(one.users.byEmail('ada@example.com')).toBeUndefined();
    expect(one.users.byIdentity(identity)).toBeUndefined();
    expect(one.users.byEmail('lovelace@example.com')?.id).toBe(user.id);
    // What was given up may be taken.
    await one.users.create({ ...ada, identities: [identity] });
  });

  test('of gateways that make the same user at once one does', async () => {
    const url = await newUrl();
    const gateways = [gateway(url), gateway(url)];
    const made = await Promise.allSettled(
      Array.from({ length: 6 }, (_, index) =>
        gateways[index % 2]?.users.create({
          email: index < 4 ? ada.email : `${index}@example.com`,
          identities: index < 4 ? [] : [identity],
        }),
      ),
    );
    const [emails, identities] = [made.slice(0, 4), made.slice(4)];
    for (const tried of [emails, identities])
      expect(tried.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const one of made) if (one.status === 'rejected') expect(one.reason).toBeInstanceOf(UserConflict);
    const [first] = gateways;
    await first?.users.load();
    expect(first?.users.list()).toHaveLength(2);
    // A refused user leaves no member behind.
    await first?.owners.load();
    expect(first?.owners.list()).toHaveLength(2);
  });

  test('a user gets a member with the limits for new members, which follows it', async () => {
    const url = await newUrl();
    const setUp = gateway(url);
    const acme = await setUp.owners.create({ kind: 'organisation', name: 'Acme' });
    const { users, owners } = gateway(url, { organisation: acme.id, requestsPerMinute: 7 });
    const user = await users.create(ada);
    expect(user.organisation).toBe(acme.id);
    expect(owners.find(user.member)).toMatchObject({
      kind: 'member',
      name: 'Ada',
      organisation: acme.id,
      requestsPerMinute: 7,
      enabled: true,
    });
    await expect(users.create({ email: 'b@example.com', member: user.member })).rejects.toThrow(/member/);
    await users.update(user.id, { enabled: false });
    expect(owners.find(user.member)?.enabled).toBe(false);
    await users.update(user.id, { enabled: true });
    expect(owners.find(user.member)?.enabled).toBe(true);
    await users.remove(user.id);
    expect(owners.find(user.member)?.enabled).toBe(false);
    expect(await users.current(user.id)).toBeUndefined();
  });

  test('the keys of a user are off before the user is, and what failed half-way is completed by another try', async () => {
    const { stores, users, owners } = gateway(await newUrl());
    const { id, member } = await users.create(ada);
    const unbroken = stores.change;
    const failing = vi.spyOn(stores, 'change').mockImplementation((namespace, ...rest) => {
      if (namespace === 'users') return Promise.reject(new Error('the database is gone'));
      return unbroken(namespace, ...rest);
    });
    await expect(users.update(id, { enabled: false })).rejects.toThrow('is gone');
    expect(owners.find(member)?.enabled).toBe(false);
    failing.mockRestore();
    await users.update(id, { enabled: false });
    await users.update(id, { enabled: true });
    // A refused change switches nothing off.
    await expect(users.update(id, { enabled: false, email: 'none' })).rejects.toThrow(UserMistake);
    expect(owners.find(member)?.enabled).toBe(true);
    // The member was left behind by a process that died between the two.
    await owners.update(member, { enabled: false });
    await users.update(id, { enabled: true });
    expect(owners.find(member)?.enabled).toBe(true);
  });

  test('a change that is refused because somebody was faster leaves the keys of a user on', async () => {
    const { stores, users, owners } = gateway(await newUrl());
    const { id, member } = await users.create(ada);
    const unbroken = stores.change;
    const faster = (changes: { readonly name: string; readonly enabled?: boolean }) =>
      vi.spyOn(stores, 'change').mockImplementation(async (namespace, ...rest) => {
        if (namespace === 'users') {
          vi.restoreAllMocks();
          await users.update(id, changes);
        }
        return unbroken(namespace, ...rest);
      });
    const disable = (name: string) =>
      users.update(id, { enabled: false }, (current) => {
        if (current.name !== name) throw new Error('changed meanwhile');
      });
    faster({ name: 'A' });
    await expect(disable('Ada')).rejects.toThrow('changed meanwhile');
    expect(await users.current(id)).toMatchObject({ name: 'A', enabled: true });
    expect(owners.find(member)?.enabled).toBe(true);
    // Unless the faster one has switched the user off.
    faster({ name: 'B', enabled: false });
    await expect(disable('A')).rejects.toThrow('changed meanwhile');
    expect(owners.find(member)?.enabled).toBe(false);
  });

  test('a member is written once where a user is switched off, and not where it is off already', async () => {
    const { stores, users } = gateway(await newUrl());
    const { id } = await users.create(ada);
    const changes = vi.spyOn(stores, 'change');
    await users.update(id, { enabled: false });
    await users.update(id, { enabled: false });
    expect(changes.mock.calls.filter(([namespace]) => namespace === 'owners')).toHaveLength(1);
    changes.mockRestore();
  });

  test('a user whose organization is gone is switched off and removed, and its member with it', async () => {
    const { stores, users, owners } = gateway(await newUrl());
    const acme = await owners.create({ kind: 'organisation', name: 'Acme' });
    const [one, other] = [
      await users.create({ ...ada, organisation: acme.id }),
      await users.create({ email: 'b@example.com', organisation: acme.id }),
    ];
    await stores.namespace('owners').delete(acme.id);
    await users.update(one.id, { enabled: false });
    await users.remove(other.id);
    for (const { member } of [one, other]) expect(owners.find(member)?.enabled).toBe(false);
    await expect(owners.update(one.member, { organisation: 'org_other' })).rejects.toThrow(/no organisation/);
  });

  test('a database that fails while a user is made keeps nothing of it, and another try makes the user', async () => {
    const { stores, users, owners } = gateway(await newUrl());
    const mend = await breakUsers(stores.database);
    await expect(users.create(ada)).rejects.toThrow('the database is gone');
    await owners.load();
    expect([owners.list(), users.list()]).toEqual([[], []]);
    await mend();
    const { member } = await users.create(ada);
    expect(owners.list()).toMatchObject([{ id: member }]);
  });

  test('fields that are wrong are refused with a sentence', async () => {
    const { users, owners } = gateway(await newUrl());
    const acme = await owners.create({ kind: 'organisation', name: 'Acme' });
    const other = await owners.create({ kind: 'organisation', name: 'Other' });
    const team = await owners.create({ kind: 'team', name: 'T', organisation: other.id });
    for (const [fields, words] of [
      [{ email: 'no address' }, /email address/],
      [{ email: 'a@b.c', organisation: team.id }, /no organisation/],
      [{ email: 'a@b.c', teams: [{ team: acme.id, lead: false }] }, /no team/],
      [
        { email: 'a@b.c', organisation: acme.id, teams: [{ team: team.id, lead: true }] },
        /another organisation/,
      ],
      [{ email: 'a@b.c', member: acme.id }, /no member/],
    ] as const)
      await expect(users.create(fields)).rejects.toThrow(words);
    await expect(users.update('usr_x', {})).rejects.toThrow(UserMistake);
  });

  test('a user whose owners were removed or moved signs in, changes and is switched off', async () => {
    const { users, owners, credentials } = gateway(await newUrl());
    const acme = await owners.create({ kind: 'organisation', name: 'Acme' });
    const other = await owners.create({ kind: 'organisation', name: 'Other' });
    const newTeam = (name: string) => owners.create({ kind: 'team', name, organisation: acme.id });
    const [gone, moved, kept] = [await newTeam('Gone'), await newTeam('Moved'), await newTeam('Kept')];
    const teams = [gone, moved].map(({ id }) => ({ team: id, lead: false }));
    const { id, member } = await users.create({ ...ada, organisation: acme.id, teams });
    await owners.remove(gone.id);
    await owners.remove(member);
    await owners.update(moved.id, { organisation: other.id });
    await users.signedIn(id);
    await credentials.startSecondFactor(id);
    expect(await credentials.checkCode(id, '000000')).toBe('wrong');
    await credentials.setPassword(id, password);
    expect(await users.update(id, { name: 'A' })).toMatchObject({ teams, lastSignInAt: expect.any(Number) });
    expect(await users.update(id, { enabled: false })).toMatchObject({ enabled: false });
    // What is new is looked at, also beside what is gone.
    const more = (team: string) => users.update(id, { teams: [...teams, { team, lead: true }] });
    await expect(more('team_nobody')).rejects.toThrow(/no team/);
    expect((await more(kept.id)).teams).toHaveLength(3);
    await expect(users.update(id, { organisation: other.id })).rejects.toThrow(/another organisation/);
    await expect(users.update(id, { member: acme.id })).rejects.toThrow(/no member/);
  });

  test('an invitation sets a password once, until it expires', async () => {
    const { users, credentials, stores } = gateway(await newUrl());
    const user = await users.create(ada);
    const { token } = await credentials.invite(user.id, 60_000);
    const again = await credentials.invite(user.id, 60_000);
    expect(users.hasPasswords()).toBe(false);
    expect(await credentials.accept(token, password)).toBeUndefined();
    for (const weak of ['short', 'ada@example.com!', 'aaaaaaaaaaaaaaaa'])
      await expect(credentials.accept(again.token, weak)).rejects.toThrow(UserMistake);
    const [accepted, twice] = await Promise.all([
      credentials.accept(again.token, password),
      credentials.accept(again.token, `${password}!`),
    ]);
    expect([accepted, twice].filter((one) => one !== undefined)).toHaveLength(1);
    expect(users.hasPasswords()).toBe(true);
    const other = await users.create({ email: 'b@example.com' });
    await credentials.setPassword(other.id, password);
    await users.remove(other.id);
    expect(users.hasPasswords()).toBe(true);
    const right = accepted === undefined ? `${password}!` : password;
    expect(await credentials.checkPassword('ada@example.com', right)).toMatchObject({
      id: user.id,
      hasPassword: true,
    });
    expect(await credentials.checkPassword('ada@example.com', 'something else')).toBeUndefined();
    expect(await credentials.checkPassword('nobody@example.com', right)).toBeUndefined();
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const late = await credentials.invite(user.id, 60_000);
    vi.advanceTimersByTime(60_001);
    expect(await credentials.accept(late.token, password)).toBeUndefined();
    for await (const [, value] of entriesOf(stores.namespace('users')))
      for (const secret of [late.token.split('.')[1] ?? '', right])
        expect(JSON.stringify(value)).not.toContain(secret);
    await users.remove(user.id);
    expect(users.hasPasswords()).toBe(false);
  });

  test('a change that ends sessions gives a user another stamp, others do not', async () => {
    const { users, credentials } = gateway(await newUrl());
    const { id, stamp } = await users.create(ada);
    expect((await users.update(id, { name: 'A' })).stamp).toBe(stamp);
    await users.signedIn(id);
    expect(await users.current(id)).toMatchObject({ stamp, lastSignInAt: expect.any(Number) });
    const seen = [stamp];
    for (const change of [
      () => users.update(id, { role: 'auditor' }),
      () => users.update(id, { enabled: false }),
      () => credentials.setPassword(id, password),
    ]) {
      const changed = await change();
      expect(seen).not.toContain(changed.stamp);
      seen.push(changed.stamp);
    }
  });

  test('a code of a second factor is right once, also on two gateways at once, and guesses are slowed', async () => {
    const url = await newUrl();
    const [one, other] = [gateway(url), gateway(url)];
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const { id } = await one.users.create(ada);
    // A failure to open the seals does not last.
    vi.stubEnv('SLUICE_SECRET', 'short');
    await expect(one.credentials.startSecondFactor(id)).rejects.toThrow(/SLUICE_SECRET/);
    vi.unstubAllEnvs();
    const { secret } = await one.credentials.startSecondFactor(id);
    const bytes = fromBase32(secret);
    const code = () => codeOf(bytes, stepAt(Date.now()));
    expect((await one.users.current(id))?.hasSecondFactor).toBe(false);
    expect(await one.credentials.confirmSecondFactor(id, '000000x')).toBeUndefined();
    const recovery = (await one.credentials.confirmSecondFactor(id, code())) ?? [];
    expect(recovery).toHaveLength(10);
    expect((await one.users.current(id))?.hasSecondFactor).toBe(true);
    await expect(one.credentials.startSecondFactor(id)).rejects.toThrow(UserMistake);
    expect(await one.credentials.checkCode(id, code())).toBe('wrong');
    vi.advanceTimersByTime(30_000);
    const both = await Promise.all([one, other].map(({ credentials }) => credentials.checkCode(id, code())));
    expect(both.toSorted()).toEqual(['right', 'wrong']);
    const [first = ''] = recovery;
    expect(await other.credentials.checkCode(id, first)).toBe('right');
    expect(await one.credentials.checkCode(id, first)).toBe('wrong');
    for (let tries = 0; tries < 4; tries += 1) await one.credentials.checkCode(id, 'wrong');
    vi.advanceTimersByTime(30_000);
    for (let tries = 0; tries < 10; tries += 1) await one.credentials.checkCode(id, 'wrong');
    expect(await other.credentials.checkCode(id, code())).toBe('blocked');
    vi.advanceTimersByTime(15 * 60_000);
    expect(await other.credentials.checkCode(id, code())).toBe('right');
    await one.credentials.removeSecondFactor(id);
    expect((await other.users.current(id))?.hasSecondFactor).toBe(false);
  });
}

function fromBase32(text: string): Buffer {
  const bits = [...text]
    .map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0'))
    .join('');
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
}

describe('users on SQLite', () => {
  suite(() => Promise.resolve(temporaryDatabase()));
});

const missing = withoutPostgres();
describe.skipIf(missing !== undefined)(`users on Postgres ${missing ?? ''}`, () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  suite(() => server.createDatabaseWithTables());
});

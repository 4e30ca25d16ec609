import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openAdminPassword } from '../../../core/state/admin-password.ts';
import { openSealer } from '../../../core/state/sealer.ts';
import { entriesOf, openStores } from '../../../core/state/stores.ts';
import { passwordActor } from '../../../plugins/admin/access/actor.ts';
import { provesIntent, Sessions } from '../../../plugins/admin/sessions.ts';
import type { Person } from '../../../plugins/admin/sign-in/claims.ts';
import { HeldSessions } from '../../../plugins/admin/sign-in/held.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function opened() {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  const password = openAdminPassword(stores);
  await password.set('a long enough password');
  return { stores, password, sessions: new Sessions(stores, password, { current: async () => undefined }) };
}

const hour = 3_600_000;

describe('a session', () => {
  test('is found by its token alone, which is stored nowhere', async () => {
    const { stores, sessions } = await opened();
    const { token, session } = await sessions.start();
    expect(token).toMatch(/^[\w-]{43}$/);
    expect(await sessions.find(token)).toEqual({ session, actor: passwordActor, renewed: false });
    expect(await sessions.find(`${token.slice(0, -1)}x`)).toBeUndefined();
    expect(await sessions.find('x'.repeat(10_000))).toBeUndefined();
    for await (const [row, value] of entriesOf(stores.namespace('admin-sessions')))
      expect(`${row} ${JSON.stringify(value)}`).not.toContain(token);
  });

  test('ends twelve hours after its last use', async () => {
    const { sessions } = await opened();
    const { token } = await sessions.start();
    vi.advanceTimersByTime(11 * hour);
    expect(await sessions.find(token)).toMatchObject({ renewed: true });
    vi.advanceTimersByTime(11 * hour);
    // A glance does not count as a use.
    expect(await sessions.find(token, true)).toMatchObject({ renewed: false });
    vi.advanceTimersByTime(hour + 1);
    expect(await sessions.find(token)).toBeUndefined();
  });

  test('ends when its owner says so', async () => {
    const { sessions } = await opened();
    const { token } = await sessions.start();
    await sessions.end(token);
    expect(await sessions.find(token)).toBeUndefined();
  });

  test('that is renewed while its owner logs out stays ended', async () => {
    const { sessions } = await opened();
    const { token } = await sessions.start();
    vi.advanceTimersByTime(hour);
    await Promise.all([sessions.find(token), sessions.end(token)]);
    expect(await sessions.find(token)).toBeUndefined();
  });

  test('ends when the password changes, and only then', async () => {
    const { sessions, password } = await opened();
    const { token } = await sessions.start();
    await password.set('a long enough password');
    expect(await sessions.find(token)).toBeDefined();
    await password.set('another long password');
    expect(await sessions.find(token)).toBeUndefined();
  });

  test('makes room for others: of more than fifty the oldest end', async () => {
    const { sessions } = await opened();
    const { token: first } = await sessions.start();
    vi.advanceTimersByTime(1000);
    const { token: second } = await sessions.start();
    for (let round = 0; round < 49; round += 1) {
      vi.advanceTimersByTime(1000);
      await sessions.start();
    }
    expect(await sessions.find(first)).toBeUndefined();
    expect(await sessions.find(second)).toBeDefined();
  });

  test('has a token of its own against forged requests', async () => {
    const { sessions } = await opened();
    const { session } = await sessions.start();
    const { session: other } = await sessions.start();
    expect(provesIntent(session, session.csrfToken)).toBe(true);
    expect(provesIntent(session, other.csrfToken)).toBe(false);
    expect(provesIntent(session, undefined)).toBe(false);
    expect(provesIntent(session, '')).toBe(false);
  });
});

test('what is kept of a session that began at a provider is there for as long as the session can last', async () => {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  const day = 24 * hour;
  const held = new HeldSessions(stores, await openSealer(stores), 7 * day);
  const person: Person = {
    issuer: 'https://id.example.com',
    subject: '42',
    email: undefined,
    isEmailVerified: false,
    name: undefined,
    groups: new Set(),
    externalId: undefined,
    session: undefined,
  };
  const proved = { person, refreshToken: 'refresh', idToken: undefined };
  for (const id of ['kept', 'claimed', 'renewed']) await held.keep(id, 'usr_1', 'corp', proved, 1);
  vi.advanceTimersByTime(hour);
  expect(await held.claim('claimed', hour)).toBe(true);
  await held.renew('renewed', proved);
  vi.advanceTimersByTime(6 * day);
  expect([...(await held.all()).keys()].toSorted()).toEqual(['claimed', 'kept', 'renewed']);
  vi.advanceTimersByTime(2 * day);
  expect(await held.all()).toEqual(new Map());
});

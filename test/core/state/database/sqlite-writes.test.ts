import { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createApiKeys } from '../../../../core/state/api-keys/open.ts';
import { openLedger } from '../../../../core/money/ledger/open.ts';
import { openResponseStore } from '../../../../core/state/responses/open.ts';
import { openSealer } from '../../../../core/state/sealer.ts';
import { openStores } from '../../../../core/state/stores.ts';
import { temporaryDatabase } from '../support.ts';

/** A database, and somebody else who writes to it until the test lets go. */
function stage() {
  const url = temporaryDatabase();
  const stores = openStores(url);
  onTestFinished(() => stores.close());
  const other = new DatabaseSync(url.slice('sqlite:'.length), { timeout: 1_000 });
  onTestFinished(() => other.close());
  return {
    stores,
    lock: () => other.exec('BEGIN IMMEDIATE'),
    release: () => other.exec('COMMIT'),
  };
}

async function turns(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) await nextTurn();
}

const now = Math.floor(Date.now() / 1000);
const response = (id: string) => ({
  id,
  owner: 'alice',
  createdAt: now,
  expiresAt: now + 1000,
  response: { id, status: 'completed', output: [] },
  input: [],
});

type Stage = ReturnType<typeof stage>;

/** Everything that writes while the gateway serves, begun before somebody else takes the lock. */
const writes: Readonly<Record<string, (given: Stage) => () => Promise<unknown>>> = {
  'an entry': ({ stores }) => {
    const store = stores.namespace<string>('one');
    return () => store.set('a', 'b');
  },
  'many entries': ({ stores }) => {
    const store = stores.namespace<string>('many');
    return () => store.setMany([{ key: 'a', value: 'b' }]);
  },
  'an entry that goes': ({ stores }) => {
    const store = stores.namespace<string>('gone');
    return () => store.delete('a');
  },
  'many entries that go': ({ stores }) => {
    const store = stores.namespace<string>('all');
    return () => store.deleteMany(['a', 'b']);
  },
  'a namespace that is cleared': ({ stores }) => {
    const store = stores.namespace<string>('cleared');
    return () => store.clear();
  },
  'the first question for a revision':
    ({ stores }) =>
    () =>
      stores.revision('fresh'),
  'the question whether the database is well':
    ({ stores }) =>
    () =>
      stores.health(),
  'a response': ({ stores }) => {
    const store = openResponseStore(stores);
    return () => store.save(response('resp_1'));
  },
  'the sign that a response is alive': ({ stores }) => {
    const store = openResponseStore(stores);
    return () => store.renew('alice', 'resp_1', Date.now(), ['in_progress']);
  },
  'items of a conversation': ({ stores }) => {
    const store = openResponseStore(stores);
    return () => store.createConversation({ id: 'conv_1', owner: 'alice', createdAt: now, metadata: {} }, []);
  },
  'an API key': ({ stores }) => {
    const keys = createApiKeys(stores);
    return () => keys.create({ name: 'new' });
  },
  'the key of seals':
    ({ stores }) =>
    () =>
      openSealer(stores, undefined),
  'a claim on a budget': ({ stores }) => {
    const ledger = openLedger(stores);
    const budget = { unit: 'token', period: 'total', amount: 100 } as const;
    return () => ledger.reserve('key', [budget], { microDollars: 0, tokens: 1 });
  },
};

describe('while another process is writing to the database', () => {
  test.each(Object.keys(writes))('%s waits, and this process goes on', async (name) => {
    const given = stage();
    const write = writes[name]?.(given);
    given.lock();
    let settled = false;
    const written = write?.().finally(() => {
      settled = true;
    });
    // Whoever waited for the lock on the event loop would never come to see it released.
    await turns(20);
    expect(settled).toBe(false);
    given.release();
    await written;
  });

  test('what is asked for in an order is written in that order, and what is read waits for nobody', async () => {
    const given = stage();
    const store = given.stores.namespace<number>('order');
    await store.set('a', 0);
    given.lock();
    const all = Array.from({ length: 20 }, (_, index) => store.set('a', index + 1));
    expect(await store.get('a')).toBe(0);
    await turns(5);
    given.release();
    // One that comes when the lock is free, before those that waited for it have come to know.
    all.push(store.set('a', 21));
    await Promise.all(all);
    expect(await store.get('a')).toBe(21);
  });

  test('those that waited behind the first are written as soon as it is', async () => {
    const given = stage();
    const ledger = openLedger(given.stores);
    const budget = { unit: 'token', period: 'total', amount: 100_000 } as const;
    given.lock();
    let claimed = 0;
    const claims = Array.from({ length: 200 }, async () => {
      await ledger.reserve('key', [budget], { microDollars: 0, tokens: 1 });
      claimed += 1;
    });
    await turns(5);
    given.release();
    await claims[0];
    // With a pause before each they would become more with every call that comes, until they have waited for too long.
    await turns(20);
    expect(claimed).toBe(claims.length);
    await Promise.all(claims);
  });

  test('all that wait are told when it takes too long, and what comes later is written', async () => {
    const given = stage();
    const ledger = openLedger(given.stores);
    const store = given.stores.namespace<number>('late');
    given.lock();
    const budget = { unit: 'token', period: 'total', amount: 100 } as const;
    const claims = Array.from({ length: 50 }, () =>
      ledger.reserve('key', [budget], { microDollars: 0, tokens: 1 }),
    );
    const outcomes = await Promise.allSettled(claims);
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['rejected']));
    await expect(claims[0]).rejects.toThrow('The database is busy');
    given.release();
    expect(await store.set('a', 1)).toBe(true);
    const [state] = await ledger.states('key', [budget]);
    expect(state?.reserved).toBe(0);
  });
});

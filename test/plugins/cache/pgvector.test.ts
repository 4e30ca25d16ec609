import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { TestGateway } from '../../support/gateway.ts';
import {
  hasSystemVectors,
  startPostgres,
  withoutPgvector,
  withoutPostgres,
  type TestPostgres,
} from '../../support/postgres.ts';
import { adminPassword, logIn } from '../admin/_client.ts';
import { sendAndRead } from './_clients.ts';
import { formats } from './_provider.ts';
import { chatBody, embedding, started } from './_semantic.ts';
import { chat } from './_started.ts';

const shared = { scope: 'shared' } as const;
const failed = 'the database of vectors failed';
const fellBack = 'the database cannot store vectors of questions';

const linesWith = (gateway: TestGateway, text: string): number =>
  gateway.lines.filter(({ msg }) => String(msg).includes(text)).length;

beforeEach(() => {
  Object.assign(embedding, { isDown: false, count: 0 });
});

const missing = withoutPgvector();
describe.skipIf(missing !== undefined)(`questions in PostgreSQL ${missing ?? ''}`, () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres({ hasVectors: true });
  });
  afterAll(() => server.close());

  /** Asks a gateway, and waits until the question is in the database. */
  async function kept(
    gateway: Pick<TestGateway, 'url' | 'key'>,
    database: string,
    question: string,
    how: () => Promise<{ readonly cache: string | null | undefined }> = () =>
      chat(gateway, chatBody(question)),
  ): Promise<void> {
    const count = async () =>
      String((await server.run(database, 'SELECT max(number) AS n FROM sluice_vectors'))[0]?.['n']);
    const before = await count();
    expect((await how()).cache).toBe('miss');
    await eventually(async () => (await count()) !== before);
  }

  const ids = async (database: string): Promise<number> =>
    (await server.run(database, 'SELECT id FROM sluice_vectors')).length;

  test.each(formats)(
    'are answered in %s by what another gateway was answered, also after a restart',
    async (format) => {
      const database = await server.createDatabase();
      const config = { database, plugin: shared };
      const one = await started({ store: 'pgvector' }, config);
      const two = await started({}, config);
      await kept(one.gateway, database, '', () =>
        sendAndRead('chat-completions', one.gateway, { text: 'How do I cancel?' }),
      );
      for (const stream of [false, true])
        expect(await sendAndRead(format, two.gateway, { text: 'How can I cancel?', stream })).toMatchObject({
          text: 'Answer 1.',
          cache: 'hit',
        });
      expect((await sendAndRead(format, two.gateway, { text: 'What does it cost?' })).cache).toBe('miss');
      expect(two.provider.requests).toHaveLength(1);
      await one.gateway.close();
      const three = await started({}, config);
      expect((await sendAndRead(format, three.gateway, { text: 'How can I cancel?' })).cache).toBe('hit');
      expect(three.provider.requests).toHaveLength(0);
    },
  );

  test('are embedded only where no equal request was answered, and kept apart by scope and by model', async () => {
    const database = await server.createDatabase();
    const { gateway } = await started({}, { database });
    await kept(gateway, database, 'How do I cancel?');
    expect((await chat(gateway, chatBody('How do I cancel?'))).cache).toBe('hit');
    expect(embedding.count).toBe(1);
    const other = await gateway.apiKeys.create({ name: 'other' });
    expect((await chat({ ...gateway, key: other.value }, chatBody('How can I cancel?'))).cache).toBe('miss');
    const two = await started({ model: 'e2' }, { database });
    expect((await chat({ ...two.gateway, key: gateway.key }, chatBody('How can I cancel?'))).cache).toBe(
      'miss',
    );
  });

  test('are gone after a purge, those of other keys only where everything is purged', async () => {
    const database = await server.createDatabase();
    const one = await started({}, { database, adminPassword });
    await kept(one.gateway, database, 'How do I cancel?');
    const other = await one.gateway.apiKeys.create({ name: 'other' });
    await kept({ ...one.gateway, key: other.value }, database, 'How do I cancel?');
    const admin = await logIn(one.gateway.url);
    const purge = async (query: string): Promise<number> => {
      const headers = { cookie: admin.cookie, 'x-csrf-token': admin.csrfToken };
      return (await fetch(`${one.gateway.url}/api/cache${query}`, { method: 'DELETE', headers })).status;
    };
    expect(await purge(`?key=${other.record.id}`)).toBe(200);
    expect(await ids(database)).toBe(1);
    expect((await chat(one.gateway, chatBody('How can I cancel?'))).cache).toBe('hit');
    expect(await purge('')).toBe(200);
    expect(await ids(database)).toBe(0);
    expect((await chat(one.gateway, chatBody('How can I cancel?'))).cache).toBe('miss');
  });

  test('are no longer found when they have expired', async () => {
    const database = await server.createDatabase();
    const { gateway } = await started({}, { database });
    await kept(gateway, database, 'How do I cancel?');
    await server.run(database, 'UPDATE sluice_vectors SET expires = 1');
    expect((await chat(gateway, chatBody('How can I cancel?'))).cache).toBe('miss');
    const two = await started({}, { database });
    await eventually(
      async () => (await server.run(database, 'SELECT 1 FROM sluice_vectors WHERE expires = 1')).length === 0,
    );
    await two.gateway.close();
  });

  test('whose response is gone ask the provider, and are forgotten', async () => {
    const database = await server.createDatabase();
    const one = await started({}, { database, plugin: shared });
    await kept(one.gateway, database, 'How do I cancel?');
    await server.run(database, "DELETE FROM keyv WHERE namespace = 'cache-responses'");
    const [gone] = await server.run(database, 'SELECT id FROM sluice_vectors');
    const two = await started({}, { database, plugin: shared });
    await kept(two.gateway, database, 'How can I cancel?');
    const ofGone = `SELECT 1 FROM sluice_vectors WHERE id = '${String(gone?.['id'])}'`;
    await eventually(async () => (await server.run(database, ofGone)).length === 0);
    expect(two.provider.requests).toHaveLength(1);
  });

  test('are at most so many of one partition, and in all', async () => {
    const database = await server.createDatabase();
    const limits = { perPartition: 2, questions: 3 };
    const gateways = [
      (await started(limits, { database, plugin: shared })).gateway,
      (await started(limits, { database, plugin: shared })).gateway,
    ];
    const system = (index: number, text: string): object => ({
      messages: [
        { role: 'system', content: `Instructions ${index}.` },
        { role: 'user', content: text },
      ],
    });
    const texts = ['How do I cancel?', 'What does it cost?', 'Something else'];
    for (let part = 0; part < 3; part += 1)
      for (const [index, text] of texts.entries()) {
        // oxlint-disable-next-line no-await-in-loop -- the oldest are to be known
        await chat(gateways[index % 2] as TestGateway, system(part, text));
      }
    await eventually(async () => (await ids(database)) === 3);
    const parts = await server.run(database, 'SELECT count(*)::int AS n FROM sluice_vectors GROUP BY part');
    expect(Math.max(...parts.map(({ n }) => Number(n)))).toBe(2);
  });

  test('cost nothing while the database is down, calls are answered, and the log says so once', async () => {
    const own = await startPostgres({ hasVectors: true });
    onTestFinished(() => own.close());
    const database = await own.createDatabase('hasty');
    const { gateway, provider } = await started({}, { database });
    await chat(gateway, chatBody('How do I cancel?'));
    await eventually(async () => (await own.run(database, 'SELECT 1 FROM sluice_vectors')).length === 1);
    await own.run(database, 'ALTER TABLE sluice_vectors RENAME TO hidden');
    expect((await chat(gateway, chatBody('How can I cancel?'))).cache).toBe('miss');
    const paid = embedding.count;
    expect((await chat(gateway, chatBody('What does it cost?'))).cache).toBe('miss');
    expect(embedding.count).toBe(paid);
    await own.kill();
    expect((await chat(gateway, chatBody('How can I cancel?'))).cache).toBe('hit');
    expect((await chat(gateway, chatBody('Anything else?'))).status).toBe(200);
    expect(provider.requests).toHaveLength(4);
    expect(linesWith(gateway, failed)).toBe(1);
  });

  test('are in the database when the extension is in a schema of its own', async () => {
    const database = await server.createDatabase();
    await server.run(database, 'CREATE SCHEMA "Its own"; CREATE EXTENSION vector SCHEMA "Its own"');
    const { gateway } = await started({ store: 'pgvector' }, { database });
    await kept(gateway, database, 'How do I cancel?');
    expect((await chat(gateway, chatBody('How can I cancel?'))).cache).toBe('hit');
  });

  test('are in memory when responses are in memory alone', async () => {
    const database = await server.createDatabase();
    const plugin = { databaseEntries: 0 };
    const { gateway } = await started({}, { database, plugin });
    await chat(gateway, chatBody('How do I cancel?'));
    expect((await chat(gateway, chatBody('How can I cancel?'))).cache).toBe('hit');
    expect(await server.run(database, "SELECT to_regclass('sluice_vectors') AS name")).toEqual([
      { name: null },
    ]);
    await expect(started({ store: 'pgvector' }, { database, plugin })).rejects.toThrow(/databaseEntries/);
  });

  test('a gateway that may not create the extension says so, or keeps questions in memory', async () => {
    const database = await server.createDatabase();
    const name = new URL(database).pathname.slice(1);
    await server.run(
      database,
      `CREATE ROLE guest_${name} LOGIN PASSWORD 'guest'; GRANT CREATE, USAGE ON SCHEMA public TO guest_${name}`,
    );
    const url = new URL(database);
    url.username = `guest_${name}`;
    url.password = 'guest';
    await expect(started({ store: 'pgvector' }, { database: url.href })).rejects.toThrow(
      /may not create the extension "vector".*as a superuser/,
    );
    const { gateway } = await started({}, { database: url.href });
    expect(linesWith(gateway, fellBack)).toBe(1);
    await server.run(database, 'CREATE EXTENSION vector');
    const later = await started({ store: 'pgvector' }, { database: url.href });
    await kept(later.gateway, database, 'How do I cancel?');
  });
});

const noPostgres = hasSystemVectors ? 'skipped: postgres has pgvector' : withoutPostgres();
describe.skipIf(noPostgres !== undefined)(`PostgreSQL without the extension ${noPostgres ?? ''}`, () => {
  test('has questions in memory, which the log says, unless the config asks for pgvector', async () => {
    const server = await startPostgres();
    onTestFinished(() => server.close());
    const database = await server.createDatabase();
    const { gateway } = await started({}, { database });
    expect(linesWith(gateway, fellBack)).toBe(1);
    await chat(gateway, chatBody('How do I cancel?'));
    expect((await chat(gateway, chatBody('How can I cancel?'))).cache).toBe('hit');
    await expect(started({ store: 'pgvector' }, { database })).rejects.toThrow(
      /Install pgvector on the server/,
    );
  });
});

test('with SQLite a config that asks for pgvector is refused', async () => {
  await expect(started({ store: 'pgvector' })).rejects.toThrow(/needs PostgreSQL/);
});

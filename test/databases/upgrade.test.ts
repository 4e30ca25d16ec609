/** Starts the present gateway on databases as released versions wrote them. */
import { DatabaseSync } from 'node:sqlite';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import openai from '../../channels/openai.ts';
import sora from '../../channels/sora.ts';
import { backUp, restore } from '../../core/state/backup/index.ts';
import storedResponses from '../../plugins/stored-responses/index.ts';
import usageLog from '../../plugins/usage-log/index.ts';
import videoTasks from '../../plugins/video-tasks/index.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../support/postgres.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { adminPassword, sendRequest, operate } from './client.ts';
import { chat, spentBy, viewOf } from './fill.ts';
import { copyOf, fixtureNames, writtenBy, type CopyOptions } from './fixtures.ts';
import { startEveryObject, type EveryObject } from './provider.ts';
import type { Written } from './written.ts';

const missing = withoutPostgres();
let server: TestPostgres | undefined;
let provider: EveryObject;
beforeAll(async () => {
  provider = await startEveryObject();
  if (missing === undefined) server = await startPostgres();
});
afterAll(async () => {
  await server?.close();
  await provider.close();
});

const kinds = ['sqlite', ...(missing === undefined ? (['postgres'] as const) : [])] as const;

/** The present gateway on a database, with the channels of the gateway that wrote it. Nothing is removed for its age. */
async function startOn(database: string): Promise<TestGateway> {
  const gateway = await startGateway({
    database,
    adminPassword,
    prices: { '*': { input: 3, output: 15 } },
    plugins: [
      storedResponses({ retention: 3_650 }),
      videoTasks({ retention: 3_650 }),
      usageLog({ retention: { days: 36_500, sumDays: 36_500 } }),
    ],
    channels: [
      demo(),
      openai({ id: 'objects', key: 'sk-of-the-provider', baseUrl: provider.url, models: ['gpt-test'] }),
      sora({ id: 'videos', key: 'sk-of-the-provider', baseUrl: provider.url }),
    ],
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Versions whose gateways refuse to start on an upgraded database, with the steps that they refuse. None of them was published. */
const refused: Readonly<Record<string, readonly string[]>> = {
  '2026-11-22': ['keyv-2', 'ledger-2', 'usage-log-2', 'provider-objects-1'],
  '2026-11-24': ['ledger-2'],
};

/** Names of the steps that older gateways must know. */
async function stepsIn(url: string): Promise<readonly string[]> {
  const sql = 'SELECT name FROM sluice_migrations ORDER BY applied, name';
  if (!url.startsWith('sqlite:'))
    return ((await server?.run(url, sql)) ?? []).map(({ name }) => String(name));
  const connection = new DatabaseSync(url.slice('sqlite:'.length), { readOnly: true });
  try {
    return connection
      .prepare(sql)
      .all()
      .map(({ name }) => String(name));
  } finally {
    connection.close();
  }
}

/** Throws where a test that is skipped runs. */
function missingPart(): never {
  throw new Error('The version has nothing of it.');
}

/** The secret of the key with this name. */
function secretOf({ keys }: Written, name: string): string {
  return keys.find((key) => key.name === name)?.secret ?? '';
}

test.skipIf(missing !== undefined)(
  `keys that are not in lists yet are told by /readyz, /metrics and the page until they are ${missing ?? ''}`,
  async () => {
    const url = await copyOf('2026-11-22', server);
    await (await startOn(url)).close();
    // As a database stands after the upgrade, while another gateway that has stopped in the middle holds the work.
    await server?.run(
      url,
      "INSERT INTO api_keys_filling (one, after) VALUES (1, '') ON CONFLICT (one) DO UPDATE SET after = ''",
    );
    const holder = new Client({ connectionString: url });
    await holder.connect();
    onTestFinished(() => holder.end());
    await holder.query('BEGIN; SELECT * FROM api_keys_filling FOR UPDATE');
    const gateway = await startOn(url);
    const warned = async (): Promise<unknown> =>
      (await sendRequest(gateway.url, gateway.key, '/readyz')).body['warnings'];
    await eventually(async () => expect(await warned()).toEqual(['api-key-lists']));
    expect(await (await fetch(`${gateway.url}/metrics`)).text()).toMatch(
      /^sluice_kept_rows\{kept="api-key-lists"\} [1-9]/m,
    );
    const admin = await operate(gateway.url);
    expect((await admin('overview'))['health']).toHaveProperty('warnings', [
      expect.stringMatching(/^\d+ API keys from before the upgrade cannot be listed or searched yet/),
    ]);
    await holder.query('ROLLBACK');
    await eventually(async () => expect(await warned()).toEqual([]));
  },
);

test(`databases of both kinds are tried ${missing ?? ''}`, () => {
  expect(fixtureNames).toContain('2026-11-22');
  expect(fixtureNames.length).toBeGreaterThan(1);
});

describe.each(fixtureNames.flatMap((name) => kinds.map((kind) => [name, kind] as const)))(
  'a database of %s in %s',
  (name, kind) => {
    const written = writtenBy(name, kind);
    const copy = (options?: CopyOptions): Promise<string> =>
      copyOf(name, kind === 'postgres' ? server : undefined, options);

    /** All that an operator saw in the admin API, without the secrets of keys. */
    const all = {
      keys: written.keys.map(({ id, name: title, note, enabled, budgets }) => ({
        id,
        name: title,
        ...(note === undefined ? {} : { note }),
        enabled,
        budgets,
      })),
      records: written.records,
      sums: written.sums,
    };
    /** Logs in once, and returns what looks at the admin API. */
    const viewerOf = async ({ url }: TestGateway) => {
      const admin = await operate(url);
      return () => viewOf(admin);
    };

    test('has its keys, records, sums and budgets after the upgrade, and after another start', async () => {
      const url = await copy();
      const first = await startOn(url);
      const viewFirst = await viewerOf(first);
      await eventually(async () => expect(await viewFirst()).toEqual(all));
      await first.close();
      const viewSecond = await viewerOf(await startOn(url));
      await eventually(async () => expect(await viewSecond()).toEqual(all));
    });

    test('lets gateways of that version start beside the present one, or says which cannot', async () => {
      const url = await copy();
      const before = await stepsIn(url);
      await (await startOn(url)).close();
      const added = (await stepsIn(url)).filter((step) => !before.includes(step));
      expect(added.toSorted()).toEqual((refused[name] ?? []).toSorted());
    });

    test('serves the keys that work, refuses the others, and charges on top of what was spent', async () => {
      const { url } = await startOn(await copy());
      const status = async (key: string): Promise<number> =>
        (await sendRequest(url, secretOf(written, key), '/v1/chat/completions', chat('Again'))).status;
      expect([await status('Zoë the first'), await status('without limits')]).toEqual([200, 200]);
      expect([await status('used up'), await status('disabled')]).toEqual([429, 401]);
      const admin = await operate(url);
      const spent = async (): Promise<number | undefined> =>
        (await viewOf(admin)).keys.find((key) => key.name === 'Zoë the first')?.budgets[0]?.spent;
      const before = written.keys.find((key) => key.name === 'Zoë the first')?.budgets[0]?.spent ?? 0;
      await eventually(async () => expect(await spent()).toBeGreaterThan(before));
      const found = (await admin(`keys?search=${encodeURIComponent('zoë')}`))['keys'];
      expect(found).toMatchObject([{ note: 'of a database' }]);
    });

    test('goes on with conversations and responses, for the key that has them alone', async () => {
      const { url } = await startOn(await copy());
      const { conversation, response } = written;
      const [owner, other] = [secretOf(written, 'Zoë the first'), secretOf(written, 'without limits')];
      const items = await sendRequest(url, owner, `/v1/conversations/${conversation.id}/items?order=asc`);
      for (const text of conversation.texts) expect(JSON.stringify(items.body)).toContain(text);
      expect((await sendRequest(url, other, `/v1/conversations/${conversation.id}/items`)).status).toBe(404);
      expect((await sendRequest(url, owner, `/v1/responses/${response}`)).body).toMatchObject({
        id: response,
      });
      expect((await sendRequest(url, other, `/v1/responses/${response}`)).status).toBe(404);
      const following = { model: 'demo', input: 'And?' };
      const turns = [{ previous_response_id: response }, { conversation: conversation.id }];
      for (const turn of turns)
        expect((await sendRequest(url, owner, '/v1/responses', { ...following, ...turn })).status).toBe(200);
    });

    test('finds videos and files at their providers, for the key that made them alone', async () => {
      const { url } = await startOn(await copy());
      const [owner, other] = [secretOf(written, 'without limits'), secretOf(written, 'Zoë the first')];
      const paths = [
        `/v1/videos/${written.video}`,
        ...(written.file === undefined ? [] : [`/v1/files/${written.file}`]),
      ];
      for (const path of paths) {
        expect(await sendRequest(url, owner, path)).toMatchObject({
          status: 200,
          body: { id: path.split('/').at(-1) },
        });
        expect((await sendRequest(url, other, path)).status).toBe(404);
      }
    });

    test.skipIf(written.administration === undefined)(
      'has its organisations, teams, users and run-time entries, and charges to them',
      async () => {
        const { organisation, team, spent, secret, user, alias } = written.administration ?? missingPart();
        const { url } = await startOn(await copy());
        const admin = await operate(url);
        expect(await spentBy(admin, organisation)).toBe(spent);
        expect(await admin(`owners/${team}`)).toMatchObject({ name: 'research', organisation });
        expect(await admin(`users/${user.id}`)).toMatchObject({ ...user, organisation });
        expect(await admin(`owners/${user.member}`)).toMatchObject({ kind: 'member', organisation });
        const call = await sendRequest(url, secret, '/v1/chat/completions', {
          ...chat('Again'),
          model: alias,
        });
        expect(call.status).toBe(200);
        await eventually(async () => expect(await spentBy(admin, organisation)).toBeGreaterThan(spent));
      },
    );

    test('can be saved by the present version, and restored, with its admin password', async () => {
      const file = `${temporaryFolder()}/backup.sluice`;
      await backUp(await copy({ keepPassword: true }), file, 'now');
      const target = `sqlite:${temporaryFolder()}/restored.db`;
      await restore(target, file, { replace: false });
      const viewRestored = await viewerOf(await startOn(target));
      await eventually(async () => expect(await viewRestored()).toEqual(all));
    });
  },
);

import { describe, expect, onTestFinished, test } from 'vitest';
import openai from '../../channels/openai.ts';
import watsonx from '../../channels/watsonx/index.ts';
import { logIn, adminPassword, type Admin } from '../plugins/admin/_client.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { newDatabases } from './_one-database.ts';

/** A key of the provider's, and one that its refusal quotes. */
const providerKey = 'a provider key without any shape 47';
const ibmKey = 'an api key of IBM without any shape 48';
const quotedKey = 'sk-proj-Abcdefghijklmnop0123456789';

/** Refuses by the model's name, as OpenAI does: https://platform.openai.com/docs/guides/error-codes. */
async function startProvider(): Promise<ScriptedUpstream> {
  const provider = await startUpstream((request, response) => {
    const refuse = (status: number, message: string): void =>
      void response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify({ error: { message, type: 'server_error', param: null, code: null } }));
    const body = request.body.toString();
    if (request.url.endsWith('/identity/token')) {
      // The shape of IBM Cloud IAM: https://cloud.ibm.com/apidocs/iam-identity-token-api.
      response.writeHead(400, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          errorCode: 'BXNIM0415E',
          errorMessage: `Provided API key could not be found: ${ibmKey}`,
        }),
      );
    } else if (body.includes('"wrong-key"'))
      refuse(401, `Incorrect API key provided: ${quotedKey}, known as ${providerKey}.`);
    else if (body.includes('"long"')) refuse(500, `${'word '.repeat(2_000)}${providerKey}`);
    else if (body.includes('"down"')) refuse(503, 'The engine is overloaded.');
    else if (body.includes('"falls-back"') && !request.headers.authorization?.includes('second'))
      refuse(503, 'The engine is overloaded.');
    else
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          id: 'c',
          object: 'chat.completion',
          created: 1,
          model: 'm',
          choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }],
        }),
      );
  });
  onTestFinished(() => provider.close());
  return provider;
}

async function start(
  database: string,
  provider: ScriptedUpstream,
  more: object = {},
): Promise<{ readonly gateway: TestGateway; readonly admin: Admin }> {
  const baseUrl = `${provider.url}/v1`;
  const gateway = await startGateway({
    adminPassword,
    database,
    prices: { '*': { input: 1, output: 1 } },
    health: { enabled: false },
    channels: [
      openai({
        id: 'first',
        key: providerKey,
        baseUrl,
        priority: 1,
        models: ['wrong-key', 'long', 'down', 'falls-back', 'fine'],
      }),
      openai({ id: 'second', key: 'sk-second-one', baseUrl, models: ['falls-back'] }),
      watsonx({
        key: ibmKey,
        project: 'p-1',
        tokenUrl: `${provider.url}/identity/token`,
        baseUrl: provider.url,
        models: ['ibm/granite'],
      }),
    ],
    ...more,
  });
  onTestFinished(() => gateway.close());
  return { gateway, admin: await logIn(gateway.url) };
}

/** Makes a call, and gives its status and its record as the admin API tells it. */
async function recorded(
  { url }: TestGateway,
  admin: Admin,
  model: string,
  key: string,
  body = JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
) {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body,
  });
  const text = await answer.text();
  const id = answer.headers.get('x-request-id') ?? '';
  await expect.poll(async () => (await admin.send('findUsage', { id })).status).toBe(200);
  return { status: answer.status, text, record: await admin.request('findUsage', { id }) };
}

describe.each(newDatabases())('on $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)(
    'the record of a call has the provider’s status and words, which its client is not told',
    async () => {
      const { gateway, admin } = await start(await url(), await startProvider());
      const { text, record } = await recorded(gateway, admin, 'wrong-key', gateway.key);
      expect(text).not.toContain('Incorrect API key');
      expect(record).toMatchObject({
        code: 'upstream_error',
        cause: { status: 401, message: expect.stringContaining('Incorrect API key provided') as unknown },
        attempts: [{ channel: 'first', failure: 'upstream_error', cause: { status: 401 } }],
      });
    },
  );

  test.skipIf(skip !== undefined)(
    'the record of a call has the words of the service that gives credentials',
    async () => {
      const { gateway, admin } = await start(await url(), await startProvider());
      const { text, record } = await recorded(gateway, admin, 'ibm/granite', gateway.key);
      expect(text).not.toContain('could not be found');
      expect(record.cause?.message).toContain('Provided API key could not be found');
      expect(JSON.stringify(record)).not.toContain(ibmKey);
    },
  );

  test.skipIf(skip !== undefined)('what a provider said is kept short, and without secrets', async () => {
    const { gateway, admin } = await start(await url(), await startProvider());
    const wrong = await recorded(gateway, admin, 'wrong-key', gateway.key);
    const long = await recorded(gateway, admin, 'long', gateway.key);
    for (const { record } of [wrong, long]) {
      const recordText = JSON.stringify(record);
      expect(recordText).not.toContain('Abcdefghijklmnop');
      expect(recordText).not.toContain(providerKey);
      expect(record.cause?.message?.length).toBeLessThanOrEqual(1_000);
      expect(recordText.length).toBeLessThan(8_000);
    }
    expect(long.record.cause).toMatchObject({ status: 500 });
  });

  test.skipIf(skip !== undefined)(
    'a call that another channel answered says why the first did not',
    async () => {
      const { gateway, admin } = await start(await url(), await startProvider());
      const { status, record } = await recorded(gateway, admin, 'falls-back', gateway.key);
      expect(status).toBe(200);
      expect(record.cause).toBeUndefined();
      expect(record.attempts).toMatchObject([
        { channel: 'first', cause: { status: 503, message: 'The engine is overloaded.' } },
      ]);
    },
  );

  test.skipIf(skip !== undefined)('refusals behind the key have the key in their record', async () => {
    const { gateway, admin } = await start(await url(), await startProvider());
    const make = (name: string, more: object) => gateway.apiKeys.create({ name, ...more });
    const elsewhere = await make('elsewhere', { addresses: ['192.0.2.1'] });
    const off = await make('off', { enabled: false });
    const over = await make('over', { budgets: [{ unit: 'token', period: 'total', amount: 1 }] });
    const narrow = await make('narrow', { models: ['other'] });
    const past = await make('past', { expiresAt: Date.now() + 50 });
    await expect.poll(() => gateway.apiKeys.find(past.value)?.state).toBe('expired');
    const refusals = [
      [elsewhere, 'fine', 403],
      [off, 'fine', 401],
      [past, 'fine', 401],
      [over, 'fine', 429],
      [narrow, 'fine', 403],
      [elsewhere, 'nothing-serves-this', 403],
    ] as const;
    for (const [{ record: key, value }, model, expected] of refusals) {
      const { status, record } = await recorded(gateway, admin, model, value);
      expect({ status, keyId: record.keyId, keyName: record.keyName }).toEqual({
        status: expected,
        keyId: key.id,
        keyName: key.name,
      });
    }
    for (const body of ['{"model":', '{"model":"fine"}', `{"model":"fine","messages":${'['.repeat(5_000)}`]) {
      const { status, record } = await recorded(gateway, admin, 'fine', narrow.value, body);
      expect({ status, keyId: record.keyId }).toEqual({ status: 400, keyId: narrow.record.id });
    }
  });

  test.skipIf(skip !== undefined)(
    'a deleted key keeps its name in the log, in sums and in the table',
    async () => {
      const { gateway, admin } = await start(await url(), await startProvider());
      const { record: key, value } = await gateway.apiKeys.create({ name: 'Ada, "research"' });
      const { record } = await recorded(gateway, admin, 'fine', value);
      await admin.request('updateKey', { id: key.id, body: { name: 'Ada, renamed' } });
      await admin.request('deleteKey', { id: key.id });
      const name = 'Ada, renamed';
      expect(await admin.request('findUsage', { id: record.id })).toMatchObject({
        keyId: key.id,
        keyName: name,
      });
      expect((await admin.request('listUsage')).records).toMatchObject([{ keyId: key.id, keyName: name }]);
      expect((await admin.request('sumUsage', { query: { by: 'keyId' } })).sums).toMatchObject([
        { group: key.id, name },
      ]);
      expect((await admin.request('overview', { query: { range: '1h' } })).keys).toMatchObject([{ name }]);
      const table = await (await admin.send('exportUsage')).text();
      expect(table).toContain(`,${key.id},"${name}",`);
    },
  );

  test.skipIf(skip !== undefined)(
    'all processes tell the same failed calls and failed attempts of a channel',
    async () => {
      const provider = await startProvider();
      const database = await url();
      const one = await start(database, provider);
      const other = await start(database, provider);
      await recorded(one.gateway, one.admin, 'down', one.gateway.key);
      await recorded(one.gateway, one.admin, 'falls-back', one.gateway.key);
      await recorded(other.gateway, other.admin, 'down', one.gateway.key);
      for (const { admin } of [one, other]) {
        const { channels } = await admin.request('listChannels');
        const [first, second] = channels;
        expect(first).toMatchObject({
          id: 'first',
          failures: 3,
          lastFailure: { model: 'down', message: 'The engine is overloaded.' },
          lastHour: { calls: 2, failed: 2 },
        });
        expect(second).toMatchObject({ id: 'second', failures: 0, lastHour: { calls: 1, failed: 0 } });
      }
    },
  );
});

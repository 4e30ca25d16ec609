import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import modelAlias from '../../../plugins/model-alias.ts';
import { startGateway, type TestGateway } from '../../../core/sdk/testing/gateway.ts';
import { adminPassword, logIn, type Admin } from './_client.ts';

let gateway: TestGateway;
let admin: Admin;

beforeAll(async () => {
  gateway = await startGateway({
    adminPassword,
    runtimeConfig: { env: ['PATH'] },
    prices: { 'in-file': { input: 1, output: 1 } },
    channels: [demo()],
    plugins: [modelAlias({ aliases: { 'file-alias': 'demo' } })],
  });
  admin = await logIn(gateway.url);
});
afterAll(() => gateway.close());

const secretKey = 'sk-very-secret-value-1234';
const openai = (id: string, options: object = {}) => ({
  kind: 'channel',
  name: id,
  value: { type: 'openai', options: { key: secretKey, models: [`${id}-model`], ...options } },
});

const make = (body: object) => admin.request('createConfig', { body });

describe('run-time configuration over the admin API', () => {
  test('a channel that is made is shown without its key, and the database has the key sealed', async () => {
    const { entry } = await make(openai('sealed'));
    expect(entry).toMatchObject({
      id: 'channel:sealed',
      origin: 'run-time',
      state: 'active',
      version: 1,
      value: { type: 'openai', options: { key: { secret: true, last4: '1234' }, models: ['sealed-model'] } },
    });
    const { database } = gateway.stores;
    if (database.kind !== 'sqlite') throw new Error('The test is about SQLite.');
    const stored = JSON.stringify(database.connection.prepare('SELECT * FROM keyv').all());
    expect(stored).toContain('channel:sealed');
    expect(stored).not.toContain(secretKey);
    const shown = JSON.stringify([
      await admin.request('listConfig'),
      await admin.request('listConfigHistory'),
      await admin.request('listAudit'),
      gateway.lines,
    ]);
    expect(shown).not.toContain(secretKey);
  });

  test('a change that leaves the key as it is shown keeps it, with the time when it was set', async () => {
    const { entry } = await make(openai('kept'));
    const value = entry?.value as { options: { key: { setAt: number } } };
    const changed = await admin.request('updateConfig', {
      id: 'channel:kept',
      body: { version: 1, value: { type: 'openai', options: { ...value.options, priority: 3 } } },
    });
    expect(changed.entry).toMatchObject({
      version: 2,
      value: { options: { priority: 3, key: value.options.key } },
    });
  });

  test.each([
    ['another address', { type: 'openai', options: { baseUrl: 'https://elsewhere.example/v1' } }],
    ['another proxy', { type: 'openai', options: { proxy: 'http://elsewhere.example:3128' } }],
    ['another kind', { type: 'anthropic', options: {} }],
    ['another check of certificates', { type: 'openai', options: { tls: { verify: false } } }],
  ])('a key that is left as it is shown is not sent to %s', async (what, { type, options }) => {
    const name = `stays-${what.replaceAll(' ', '-')}`;
    const { entry } = await make(openai(name));
    const shown = entry?.value as { options: object };
    const value = { type, options: { ...shown.options, ...options } };
    for (const refused of [
      await admin.refused('updateConfig', { id: `channel:${name}`, body: { version: 1, value } }),
      await admin.refused('testConfig', { body: { name, value } }),
    ]) {
      expect(refused.status).toBe(400);
      expect(refused.body.error).toMatchObject({
        message: 'The secret at options.key was stored for another destination. Send its text again.',
        param: 'value.options.key',
      });
    }
    const { entry: changed } = await admin.request('updateConfig', {
      id: `channel:${name}`,
      body: { version: 1, value: { type, options: { ...value.options, key: 'sk-given-anew-value-5678' } } },
    });
    expect(changed).toMatchObject({ version: 2, value: { options: { key: { last4: '5678' } } } });
  });

  test('an entry that cannot be opened lets nothing in that does not fit, and can be deleted', async () => {
    const { database } = gateway.stores;
    if (database.kind !== 'sqlite') throw new Error('The test is about SQLite.');
    const broken = {
      kind: 'channel',
      name: 'broken',
      sealed: 'slc1.AAAA',
      secretsAt: {},
      enabled: true,
      version: 1,
      createdAt: 1,
      updatedAt: 1,
    };
    database.connection
      .prepare('INSERT INTO keyv (namespace, key, value, expires) VALUES (?, ?, ?, NULL)')
      .run('runtime-config', 'channel:broken', JSON.stringify(broken));
    const refused = await admin.refused('createConfig', { body: openai('bad', { key: '' }) });
    expect(refused.status).toBe(400);
    expect(refused.body.error.message).toMatch(/^the run-time channel "bad": option "key" is empty/);
    await admin.request('deleteConfig', { id: 'channel:broken', query: { version: 1 } });
    expect((await admin.refused('findConfig', { id: 'channel:broken' })).status).toBe(404);
  });

  test('two administrators who change one entry: the second is told with 412', async () => {
    await make({ kind: 'alias', name: 'twice', value: 'demo' });
    await admin.request('updateConfig', { id: 'alias:twice', body: { version: 1, value: 'sealed-model' } });
    const second = await admin.refused('updateConfig', {
      id: 'alias:twice',
      body: { version: 1, value: 'demo' },
    });
    expect(second.status).toBe(412);
    expect(second.body.error).toMatchObject({ code: 'conflict' });
    expect(second.body.error.message).toContain('run-time alias "twice" was changed since you read it');
    const gone = await admin.refused('deleteConfig', { id: 'alias:twice', query: { version: 1 } });
    expect(gone.status).toBe(412);
  });

  test('what the file has is locked, and cannot be made again', async () => {
    const { entries } = await admin.request('listConfig', { query: { origin: 'file' } });
    expect(entries.map(({ id, state }) => [id, state])).toEqual(
      expect.arrayContaining([
        ['channel:demo', 'active'],
        ['alias:file-alias', 'active'],
        ['price:in-file', 'active'],
      ]),
    );
    const unknown = await admin.refused('listConfig', { query: { after: 'file:alias:none' } });
    expect(unknown.status).toBe(400);
    expect(unknown.body.error).toMatchObject({ code: 'invalid_value', param: 'after' });
    for (const body of [
      openai('demo'),
      { kind: 'alias', name: 'file-alias', value: 'x' },
      { kind: 'price', name: 'in-file', value: { input: 1, output: 1 } },
    ]) {
      const refused = await admin.refused('createConfig', { body });
      expect(refused.status).toBe(409);
      expect(refused.body.error.message).toContain('is in gateway.config.ts');
    }
  });

  test.each([
    [openai('bad', { priority: 'x' }), /^the run-time channel "bad": option "priority": .*expected number/],
    [
      openai('bad', { prioritty: 1 }),
      /the run-time channel "bad": unknown option "prioritty"\. Check the spelling, or remove it\./,
    ],
    [openai('bad', { key: '' }), /the run-time channel "bad": option "key" is empty/],
    [
      { kind: 'channel', name: 'bad', value: { type: 'nothing', options: {} } },
      /there is no channel kind "nothing"/,
    ],
    [
      { kind: 'price', name: 'bad', value: { input: -1, output: 1 } },
      /the run-time price "bad": option "prices\.bad\.input": must be 0 or more dollars/,
    ],
    [
      { kind: 'alias', name: 'bad', value: 7 },
      /the run-time alias "bad": option "aliases\.bad": .*expected string/,
    ],
    [
      { kind: 'plugin', name: 'rate-limit.default', value: { requestsPerMinute: -1 } },
      /the run-time plugin option "rate-limit\.default": option "default\.requestsPerMinute"/,
    ],
    [{ kind: 'plugin', name: 'rate-limit.output', value: 1 }, /cannot be set at run time/],
    [openai('bad', { key: { env: 'HOME' } }), /env "HOME" is not allowed\. Add it to "runtimeConfig\.env"/],
    // The name of a model is shown to callers: the variable may be used, and is no model.
    [openai('bad', { models: [{ env: 'PATH' }] }), /^the run-time channel "bad": option "models/],
    [openai('bad', { key: { file: '/etc/passwd' } }), /file "\/etc\/passwd" is not allowed/],
  ])('%j is refused with the sentence of the file', async (body, sentence) => {
    const refused = await admin.refused('createConfig', { body });
    expect(refused.status).toBe(400);
    expect(refused.body.error.message).toMatch(sentence);
    expect((await admin.request('listConfig')).entries.map(({ name }) => name)).not.toContain('bad');
  });

  test('a change can be undone, and the undo too', async () => {
    const { revision } = await make({ kind: 'price', name: 'undone', value: { input: 1, output: 2 } });
    const back = await admin.request('undoConfig', { id: String(revision), body: {} });
    expect((await admin.refused('findConfig', { id: 'price:undone' })).status).toBe(404);
    await admin.request('undoConfig', { id: String(back.revision), body: {} });
    expect(await admin.request('findConfig', { id: 'price:undone' })).toMatchObject({
      value: { input: 1, output: 2 },
    });
    const late = await admin.refused('undoConfig', { id: String(revision), body: {} });
    expect(late.status).toBe(412);
    const { records } = await admin.request('listConfigHistory', { query: { limit: 3 } });
    expect(records.map(({ action }) => action)).toEqual(['undo', 'undo', 'create']);
    expect(records[2]).toMatchObject({ actor: 'admin password', changes: [{ id: 'price:undone' }] });
  });

  test('an undo restores a key that nobody has seen since', async () => {
    await make(openai('restored'));
    const { revision } = await admin.request('updateConfig', {
      id: 'channel:restored',
      body: { version: 1, value: { type: 'openai', options: { key: 'another-secret-9999', models: ['m'] } } },
    });
    const undone = await admin.request('undoConfig', { id: String(revision), body: {} });
    expect(undone.entry).toMatchObject({ value: { options: { key: { last4: '1234' } } } });
  });

  test('channels are put in an order', async () => {
    await make(openai('b-order'));
    await make(openai('a-order'));
    const listed = async () =>
      (await admin.request('listConfig', { query: { kind: 'channel', origin: 'run-time' } })).entries.map(
        ({ name }) => name,
      );
    const { revision } = await admin.request('listConfig');
    const names = (await listed()).toReversed();
    await admin.request('orderConfig', { body: { names, revision } });
    expect(await listed()).toEqual(names);
    expect((await admin.refused('orderConfig', { body: { names, revision } })).status).toBe(412);
  });

  test('a channel is tried before it is stored', async () => {
    const result = await admin.request('testConfig', {
      body: { name: 'trial', value: { type: 'demo', options: { models: ['trial-model'] } } },
    });
    expect(result).toMatchObject({ ok: true, model: 'trial-model' });
    expect((await admin.refused('findConfig', { id: 'channel:trial' })).status).toBe(404);
  });

  test('forms are made from JSON Schemas in which secrets are marked', async () => {
    expect((await admin.request('listChannelTypes')).types).toEqual(
      expect.arrayContaining(['openai', 'bedrock']),
    );
    const { schema } = await admin.request('findChannelType', { id: 'openai' });
    expect(schema).toMatchObject({ properties: { key: { secret: 'text' }, priority: { type: 'number' } } });
    const { forms } = await admin.request('listPluginForms');
    expect(forms.map(({ name }) => name)).toContain('rate-limit.default');
  });

  test('every change is in the audit log with its author', async () => {
    await make({ kind: 'alias', name: 'audited', value: 'demo' });
    await admin.request('disableConfig', { id: 'alias:audited', body: { version: 1 } });
    await admin.request('deleteConfig', { id: 'alias:audited', query: { version: 2 } });
    const { entries } = await admin.request('listAudit', { query: { limit: 3 } });
    expect(entries.map(({ action, target, actor }) => [action, target, actor?.kind])).toEqual([
      ['config-delete', 'alias:audited', 'password'],
      ['config-disable', 'alias:audited', 'password'],
      ['config-create', 'alias:audited', 'password'],
    ]);
  });

  test('forms can be made of schemas, and a refusal names the option of each problem', async () => {
    const { schema, own } = await admin.request('findChannelType', { id: 'bedrock' });
    expect(schema['properties']).toMatchObject({ key: { secret: 'text', description: expect.any(String) } });
    expect(own).toContain('region');
    const { price, kinds } = await admin.request('listPluginForms');
    expect(price['properties']).toMatchObject({ input: { type: 'number' } });
    expect(kinds).toEqual(['channel', 'price', 'alias', 'access', 'plugin']);
    const { body } = await admin.refused('createConfig', {
      body: openai('wrong', { weight: -1, timeouts: { idle: 1 } }),
    });
    expect(body.error.problems?.map(({ option }) => option)).toEqual(['weight', 'timeouts.idle']);
    expect(body.error.problems?.[0]?.message).toMatch(/^Too small/);
    const { entries } = await admin.request('listConfig', { query: { origin: 'file' } });
    expect(Object.fromEntries(entries.map(({ id, place }) => [id, place]))).toMatchObject({
      'channel:demo': expect.stringMatching(/, channels\[0\]$/),
      'alias:file-alias': expect.stringMatching(/, plugin "model-alias", option "aliases"$/),
    });
  });
});

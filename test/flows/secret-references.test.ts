import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import openai from '../../channels/openai.ts';
import { ConfigError } from '../../core/config/config.ts';
import { loadConfig } from '../../core/config/load-config.ts';
import { RuntimeDefinitions } from '../../core/config/runtime-config/definitions.ts';
import { exportRuntime } from '../../core/config/runtime-config/export.ts';
import { secretFrom } from '../../core/settings/secret-reference.ts';
import { defineSecrets } from '../../core/sdk/author/define-secrets.ts';
import vault from '../../plugins/secrets-vault/index.ts';
import { adminPassword, logIn } from '../plugins/admin/_client.ts';
import { configWith, key as operatedKey, operate } from '../reload/gateway.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { operatorFolder } from '../support/operator-folder.ts';
import { rootToken, sealed, startVault, type FakeVault } from '../support/secret-managers/vault.ts';
import { startUpstream } from '../support/upstream.ts';

/** Words in which no pattern for secrets finds anything: only what is known to be a secret can be masked. */
const canary = (name: string): string => `canary-${name}-sings-at-dawn`;

const reply = { id: 'x', object: 'chat.completion', created: 1, model: 'm' };
const choices = [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'hello' } }];

/** A provider that answers everybody, and streams until it is told to end. */
async function startProvider() {
  const end = Promise.withResolvers<void>();
  const provider = await startUpstream(async ({ body }, response) => {
    const { stream } = JSON.parse(body.toString()) as { stream?: boolean };
    if (stream !== true) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ...reply, choices }));
      return;
    }
    const chunk = (delta: object, finish_reason: string | null = null): string =>
      `data: ${JSON.stringify({ ...reply, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(chunk({ role: 'assistant', content: 'first ' }));
    await end.promise;
    response.end(`${chunk({ content: 'last' }, 'stop')}data: [DONE]\n\n`);
  });
  const shown = (): string[] => provider.requests.map(({ headers }) => String(headers.authorization));
  return Object.assign(provider, { endStreams: () => end.resolve(), shown });
}

const chat = (url: string, key: string, model: string, members: object = {}): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], ...members }),
  });

let manager: FakeVault;
let provider: Awaited<ReturnType<typeof startProvider>>;

beforeAll(async () => {
  manager = await startVault();
  provider = await startProvider();
  manager.secrets.set('secret/llm/openai', [
    { key: canary('old') },
    { key: canary('vault'), number: 5, nested: {}, blank: ' ', large: 'x'.repeat(70_000) },
  ]);
  manager.secrets.set('secret/hook', [{ url: `${provider.url}/${canary('path')}/v1`, part: canary('part') }]);
  manager.secrets.set('secret/gone', [{ key: canary('gone') }, undefined]);
  manager.secrets.set('kv1/single', [{ token: `${canary('single')}\n` }]);
});
afterAll(async () => {
  await manager?.close();
  await provider?.close();
});

const source = (options: object = {}) =>
  vault({ url: manager.url, auth: { kind: 'token', token: rootToken }, ...options });

const channel = (id: string, reference: string, options: object = {}) =>
  openai({
    id,
    key: secretFrom(reference),
    baseUrl: `${provider.url}/v1`,
    models: [`${id}-model`],
    ...options,
  });

const start = async (config: Parameters<typeof startGateway>[0]): Promise<TestGateway> => {
  const gateway = await startGateway({ adminPassword, ...config });
  onTestFinished(() => gateway.close());
  return gateway;
};

/** Returns the problems of a start. */
async function refusal(config: Parameters<typeof startGateway>[0]): Promise<readonly string[]> {
  const error: unknown = await startGateway(config).then(
    (gateway) => gateway.close(),
    (failure: unknown) => failure,
  );
  if (!(error instanceof ConfigError)) throw new Error('It was not refused.', { cause: error });
  return error.problems;
}

describe('secrets that the config names by reference', () => {
  test('are read before channels are made, share reads, and stand within texts', async () => {
    const before = manager.countRequests('secret/data/llm/openai');
    const gateway = await start({
      plugins: [source()],
      channels: [
        channel('newest', 'vault:secret/llm/openai#key'),
        channel('older', 'vault:secret/llm/openai?version=1#key'),
        channel('single', 'vault:kv1/single'),
        openai({
          id: 'within',
          key: 'none',
          baseUrl: `${provider.url}/v1`,
          models: ['within-model'],
          headers: { set: { authorization: `Bearer ${secretFrom('vault:secret/llm/openai#key')}!` } },
        }),
        channel('number', 'vault:secret/llm/openai#number'),
        channel('hook', 'vault:kv1/single', { baseUrl: secretFrom('vault:secret/hook#url') }),
        channel('part', 'vault:kv1/single', {
          baseUrl: `${provider.url}/${secretFrom('vault:secret/hook#part')}/v1`,
        }),
      ],
    });
    for (const id of ['newest', 'older', 'single', 'within', 'number'])
      expect((await chat(gateway.url, gateway.key, `${id}-model`)).status).toBe(200);
    expect(provider.shown().slice(-5)).toEqual([
      `Bearer ${canary('vault')}`,
      `Bearer ${canary('old')}`,
      `Bearer ${canary('single')}`,
      `Bearer ${canary('vault')}!`,
      'Bearer 5',
    ]);
    expect(manager.countRequests('secret/data/llm/openai') - before).toBe(2);
    // No page, list or line shows one: the references stand in their places.
    const admin = await logIn(gateway.url);
    const { entries } = await admin.request('listConfig');
    expect(entries.find(({ name }) => name === 'newest')).toMatchObject({
      origin: 'file',
      value: { options: { key: { from: 'vault:secret/llm/openai#key' } } },
    });
    expect(entries.find(({ name }) => name === 'hook')).toMatchObject({
      value: { options: { baseUrl: { from: 'vault:secret/hook#url' } } },
    });
    expect(entries.find(({ name }) => name === 'part')).toMatchObject({
      value: { options: { baseUrl: { secret: true, last4: '' } } },
    });
    expect(JSON.stringify([entries, gateway.lines])).not.toContain('canary');
  });

  test('are variables and files too', async () => {
    const folder = operatorFolder();
    const file = join(folder, 'key');
    writeFileSync(file, `${canary('file')}\n`);
    process.env['SLUICE_TEST_REFERENCE'] = canary('variable');
    const gateway = await start({
      channels: [channel('file', `file:${file}`), channel('variable', 'env:SLUICE_TEST_REFERENCE')],
    });
    await chat(gateway.url, gateway.key, 'file-model');
    await chat(gateway.url, gateway.key, 'variable-model');
    expect(provider.shown().slice(-2)).toEqual([`Bearer ${canary('file')}`, `Bearer ${canary('variable')}`]);
  });
});

describe('the first start is refused', () => {
  const only = (reference: string, options: object = {}, settings: object = {}) =>
    refusal({ plugins: [source(options)], channels: [channel('a', reference)], ...settings });
  const at = 'gateway.config.ts, channels[0] "a": option "key": the secret';

  test.each([
    ['vault:secret/llm/openai#other', 'the secret has no field "other"'],
    ['vault:secret/llm/openai', 'the secret has several fields: name one of them with #FIELD'],
    ['vault:secret/llm/openai#nested', 'the field of the secret is neither a text nor a number'],
    ['vault:secret/llm/openai#blank', 'the secret is empty'],
    ['vault:secret/llm/openai#large', 'the secret is too large: at most 64 KiB'],
    ['vault:secret/gone#key', 'the secret does not exist: check its name and version, or create it'],
    ['vault:secret/llm/openai?version=7#key', 'the secret does not exist'],
    ['vault:secret/llm/openai?version=new#key', 'the version of a secret of Vault is a number'],
    ['vault:kv1/single?version=1', 'a key/value engine of version 1 has no versions'],
    ['vault:database/creds/app#password', '"database/" is an engine of type database'],
    ['vault:nowhere/x#key', 'returned status 403 (preflight capability check returned 403'],
    ['nobody:x', 'no plugin in the config provides the source "nobody"'],
    ['file:/nowhere/at/all', 'the secret does not exist'],
    ['env:SLUICE_TEST_NOT_SET', 'the secret does not exist'],
  ])('for %s', async (reference, reason) => {
    const [problem, ...others] = await only(reference);
    expect(problem).toContain(`${at} "${reference}" cannot be used: `);
    expect(problem).toContain(reason);
    expect(others).toEqual([]);
  });

  test('by a manager that is down, sealed, slow, lies or forbids it, with what to do', async () => {
    const reference = 'vault:secret/llm/openai#key';
    const reasons: Record<string, string> = {};
    for (const [name, failing] of [
      ['sealed', sealed],
      ['limited', [429, { errors: ['request path rate limit quota exceeded'] }]],
      ['standby', [307, undefined]],
      ['slow', 'hangs'],
      ['page', [200, '<html>Sign in</html>']],
      ['other', [200, { data: { data: [canary('vault')] } }]],
      ['large', [200, `"${'x'.repeat(3_000_000)}"`]],
    ] as const) {
      manager.failing = failing as FakeVault['failing'];
      const [problem = ''] = await only(
        reference,
        { kv: 2 },
        failing === 'hangs' ? { secrets: { timeout: 150 } } : {},
      );
      expect(problem).toMatch(`${at} "${reference}" cannot be used: `);
      expect(problem).not.toContain('canary');
      reasons[name] = problem.slice(problem.indexOf('used: ') + 6);
    }
    manager.failing = undefined;
    manager.forbidden.add('secret/data/llm');
    reasons['forbidden'] = (await only(reference))[0] ?? '';
    manager.forbidden.clear();
    reasons['token'] = (await only(reference, { auth: { kind: 'token', token: 'another-token' } }))[0] ?? '';
    const gone = await startUpstream(() => {});
    await gone.close();
    reasons['down'] = (await only(reference, { url: gone.url }))[0] ?? '';
    expect(reasons).toMatchObject({
      sealed: expect.stringContaining('503 (Vault is sealed): unseal it'),
      limited: expect.stringContaining('429 (request path rate limit quota exceeded): Vault limits requests'),
      standby: expect.stringContaining('redirects to another node: set the address of the active node'),
      slow: expect.stringContaining('there was no response within 150 ms'),
      page: expect.stringContaining('did not return JSON: check the address'),
      large: expect.stringContaining('could not be reached'),
      forbidden: expect.stringContaining('403 (permission denied): let a policy of the token read this path'),
      token: expect.stringContaining('403 (permission denied)'),
      down: expect.stringContaining('could not be reached: connect ECONNREFUSED'),
    });
  });

  test('for references where no secret is expected, and in the options of a source', async () => {
    const problems = await refusal({
      plugins: [vault({ url: manager.url, auth: { kind: 'token', token: secretFrom('vault:kv1/single') } })],
      channels: [],
    });
    expect(problems).toEqual([
      'gateway.config.ts, plugins[0] "secrets-vault": option "auth.token": the secret "vault:kv1/single" cannot be used: options of a secret source can refer only to "env" and "file".',
    ]);
    const shown = await only(
      'vault:secret/llm/openai#key',
      {},
      {
        channels: [channel('a', 'vault:kv1/single', { systemPrompt: secretFrom('vault:kv1/single') })],
      },
    );
    expect(shown).toEqual([
      'gateway.config.ts, channels[0] "a": option "systemPrompt" is not a secret option and would show the value. Remove the reference "vault:kv1/single".',
    ]);
    expect(() => secretFrom('vault:llm/../admin#key')).toThrow('is not a reference to a secret');
    expect(() => secretFrom('no-source')).toThrow("for example secretFrom('vault:llm/first#key')");
  });
});

describe('a manager that fails later', () => {
  test('keeps the last value in force, and the log, readiness, status and metrics say so until it is back', async () => {
    const gateway = await start({
      secrets: { refresh: 1_000, timeout: 500 },
      plugins: [source()],
      channels: [channel('a', 'vault:secret/llm/openai#key')],
    });
    const warnings = async (): Promise<unknown> => {
      const headers = { authorization: `Bearer ${gateway.key}` };
      return ((await (await fetch(`${gateway.url}/readyz`, { headers })).json()) as { warnings: unknown })
        .warnings;
    };
    const line = (sentence: string) => gateway.lines.find(({ msg }) => msg === sentence);
    expect(await warnings()).toEqual([]);
    manager.failing = sealed;
    await eventually(async () => expect(await warnings()).toEqual(['secrets']));
    expect(line('secrets cannot be read: their last values stay in force')).toMatchObject({
      failing: [
        { reference: 'vault:secret/llm/openai#key', reason: expect.stringContaining('Vault is sealed') },
      ],
    });
    expect((await chat(gateway.url, gateway.key, 'a-model')).status).toBe(200);
    expect(provider.shown().at(-1)).toBe(`Bearer ${canary('vault')}`);
    const admin = await logIn(gateway.url);
    const metrics = await fetch(`${gateway.url}/metrics`, { headers: { cookie: admin.cookie } });
    expect(await metrics.text()).toMatch(/sluice_\w+\{kept="secrets"/);
    manager.failing = undefined;
    await eventually(async () => expect(await warnings()).toEqual([]));
    expect(line('all secrets can be read again')).toBeDefined();
  });

  test('is asked for one secret by several references at once, and its source may not hold up a start', async () => {
    let reads = 0;
    const never = defineSecrets({
      name: 'secrets-never',
      source: 'never',
      open: () => ({
        read: () => {
          reads += 1;
          return new Promise(() => {});
        },
      }),
    });
    const problems = await refusal({
      secrets: { timeout: 100 },
      plugins: [never()],
      channels: [channel('a', 'never:x#one'), channel('b', 'never:x#two'), channel('c', 'never:y')],
    });
    expect(problems.map((problem) => problem.slice(problem.indexOf('"never:')))).toEqual([
      '"never:x#one" cannot be used: there was no response within 100 ms.',
      '"never:x#two" cannot be used: there was no response within 100 ms.',
      '"never:y" cannot be used: there was no response within 100 ms.',
    ]);
    // Each once more, because a read may fail by chance.
    expect(reads).toBe(4);
  });
});

describe('run-time entries', () => {
  const entry = (name: string, reference: string, options: object = {}) => ({
    kind: 'channel',
    name,
    value: {
      type: 'openai',
      options: {
        key: { from: reference },
        baseUrl: `${provider.url}/v1`,
        models: [`${name}-model`],
        ...options,
      },
    },
  });

  test('refer to what the config file lists, are tried with the secret, and never show it', async () => {
    const gateway = await start({
      runtimeConfig: { secrets: ['vault:secret/llm/*', 'vault:kv1/single'] },
      plugins: [source()],
      channels: [],
    });
    const admin = await logIn(gateway.url);
    const refused = async (body: object): Promise<string> =>
      (await admin.refused('createConfig', { body })).body.error.message;
    expect(await refused(entry('a', 'vault:secret/admin/root#key'))).toContain(
      'the run-time channel "a": the secret "vault:secret/admin/root#key" is not allowed. Add it to "runtimeConfig.secrets" in gateway.config.ts.',
    );
    expect(await refused(entry('a', 'vault:secret/llm/../admin/root#key'))).toContain(
      'is not a reference to a secret',
    );
    expect(await refused(entry('a', 'env:HOME'))).toContain('Add it to "runtimeConfig.env"');
    expect(await refused(entry('a', 'vault:secret/llm/openai#other'))).toContain(
      'the run-time channel "a": option "key": the secret "vault:secret/llm/openai#other" cannot be used: the secret has no field "other".',
    );
    await admin.request('createConfig', { body: entry('a', 'vault:secret/llm/openai#key') });
    const found = await admin.request('findConfig', { id: 'channel:a' });
    expect(found).toMatchObject({
      state: 'active',
      value: { options: { key: { from: 'vault:secret/llm/openai#key' } } },
    });
    const tested = await admin.request('testConfig', {
      body: { name: 'b', value: entry('b', 'vault:kv1/single').value, model: 'b-model' },
    });
    expect(provider.shown().at(-1)).toBe(`Bearer ${canary('single')}`);
    const history = await admin.request('listConfigHistory');
    const audit = await (await admin.send('listAudit')).text();
    expect(audit).toContain('channel:a');
    expect(JSON.stringify([found, tested, history, audit, gateway.lines])).not.toContain('canary');
    // Texts that were typed in stay what they are, also where they are the value of a reference or contain it.
    const options = { key: canary('vault'), baseUrl: `${provider.url}/${canary('vault')}/v1` };
    await admin.request('createConfig', { body: entry('typed', '', options) });
    const { value } = await admin.request('findConfig', { id: 'channel:typed' });
    expect(value).toMatchObject({ options: { key: { secret: true }, baseUrl: options.baseUrl } });
    const saved = await admin.request('updateConfig', { id: 'channel:typed', body: { version: 1, value } });
    expect(saved.entry?.value).toEqual(value);
  });

  test('are exported as references, also while the manager is down', async () => {
    const folder = operatorFolder();
    const file = join(folder, 'gateway.config.ts');
    writeFileSync(file, `export default { runtimeConfig: { secrets: ['vault:*'] } };`);
    const config = await loadConfig(file, { only: 'settings' });
    const { kind, name, value } = entry('a', 'vault:secret/llm/openai?version=1#key', {
      proxy: { from: 'vault:kv1/proxy' },
    });
    const stored = {
      kind: 'channel' as const,
      name,
      value,
      secretsAt: {},
      enabled: true,
      version: 1,
      createdAt: 0,
      updatedAt: 0,
    };
    expect(kind).toBe('channel');
    const snapshot = { revision: 1, entries: [stored], order: [], bytes: 0 };
    const { text, variables } = await exportRuntime(config, snapshot, new RuntimeDefinitions(config));
    expect(variables).toEqual([]);
    expect(text).toContain(`import { defineConfig, secretFrom } from 'sluice';`);
    expect(text).toContain(`"key": secretFrom("vault:secret/llm/openai?version=1#key"),`);
    expect(text).toContain(`"proxy": secretFrom("vault:kv1/proxy"),`);
    expect(text).toContain('// List the plugins that offer these sources of secrets:\n//   vault\n');
    const exported = join(folder, 'exported.config.ts');
    writeFileSync(exported, text);
    await expect(loadConfig(exported)).rejects.toThrow('no plugin in the config provides the source "vault"');
  });
});

test('a rotated secret comes into force without a broken stream, and new workers have the last value while the manager is down', async () => {
  const root = new URL('../../', import.meta.url).pathname;
  const reference = 'vault:secret/rotating#key';
  manager.secrets.set('secret/rotating', [{ key: canary('first') }]);
  const gateway = await operate({
    'gateway.config.mjs': `import openai from '${root}channels/openai.ts';
import vault from '${root}plugins/secrets-vault/index.ts';
import { secretFrom } from 'sluice';
${configWith(`database: 'sqlite:data/a.db', workers: 2, secrets: { refresh: 1_000, timeout: 500 },
  plugins: [vault({ url: '${manager.url}', auth: { kind: 'token', token: '${rootToken}' } })],
  channels: [openai({ key: secretFrom('${reference}'), baseUrl: '${provider.url}/v1', models: ['m'] })]`)}`,
  });
  onTestFinished(() => gateway.end());
  const stream = await chat(gateway.url, operatedKey, 'm', { stream: true });
  expect(provider.shown().at(-1)).toBe(`Bearer ${canary('first')}`);
  manager.secrets.set('secret/rotating', [{ key: canary('first') }, { key: canary('second') }]);
  const shownNow = async (): Promise<string | undefined> => {
    expect((await chat(gateway.url, operatedKey, 'm')).status).toBe(200);
    return provider.shown().at(-1);
  };
  await eventually(async () => expect(await shownNow()).toBe(`Bearer ${canary('second')}`), 200);
  await gateway.logged('reloaded: previous workers finish their calls');
  provider.endStreams();
  const text = await stream.text();
  expect(text).toContain('last');
  expect(text).toContain('[DONE]');

  manager.failing = sealed;
  await gateway.logged('secrets cannot be read: their last values stay in force');
  await eventually(() => gateway.workers().length === 2);
  const before = gateway.workers();
  for (const pid of before) process.kill(pid, 'SIGKILL');
  await eventually(async () => {
    const now = gateway.workers();
    expect(now.length > 0 && now.every((pid) => !before.includes(pid))).toBe(true);
    expect(await shownNow()).toBe(`Bearer ${canary('second')}`);
  }, 200);
  manager.failing = undefined;
  expect(gateway.output()).not.toContain('canary');
});

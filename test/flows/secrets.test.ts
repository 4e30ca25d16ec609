import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kindFiles } from '../support/kind-files.ts';
import type { ChannelEntry } from '../../core/sdk/define.ts';
import { routes, type RouteName } from '../../plugins/admin/routes.ts';
import { presets, type Kind } from '../channels/_presets.ts';
import { adminPassword, logIn } from '../plugins/admin/_client.ts';
import { shell } from '../core/cli/_shell.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { operatorFolder } from '../support/operator-folder.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

/** Words in which no pattern for secrets finds anything: only what is known to be a secret can be masked. */
const canaryOf = (name: string): string => `canary-${name.replaceAll(/\W/g, '-')}-sings-at-dawn`;

/** Options without which a kind is not set up. */
const needed: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'azure-openai': { resource: 'mine' },
  'azure-foundry': { resource: 'mine' },
  sagemaker: { region: 'us-east-1' },
  oci: { region: 'eu-frankfurt-1' },
  vertex: { project: 'p' },
  watsonx: { project: 'p' },
  'anthropic-compatible': { name: 'acme' },
  'gemini-compatible': { name: 'acme' },
};

/** A service key of SAP AI Core, whose secret gives access tokens. */
const serviceKey = (url: string, clientsecret: string): object => ({
  clientid: 'client',
  clientsecret,
  url,
  serviceurls: { AI_API_URL: url },
});

/** Kinds that take two halves as their key. */
const twoHalves = new Set(['bedrock', 'jimeng', 'kling', 'sagemaker']);

/** Kinds whose key is changed for a token elsewhere: no test asks a server that is not its own. */
const changesKeys = new Set(['github-copilot', 'watsonx']);

async function kinds(): Promise<readonly Kind[]> {
  return Promise.all(
    [...kindFiles.values()].map(async (file) => ((await import(file)) as { default: Kind }).default),
  );
}

/** A provider that refuses everything, and quotes in its error what it was sent, as careless ones do. */
const quoting = (status: () => number): Promise<ScriptedUpstream> =>
  startUpstream((request, response) => {
    const message = `Not allowed: ${JSON.stringify(request.headers)} at ${request.url} with ${request.body.toString()}`;
    response
      .writeHead(status(), { 'content-type': 'application/json', 'x-request-id': 'r' })
      .end(JSON.stringify({ error: { message, code: message, type: 'x' }, message, detail: message }));
  });

const requests: readonly (readonly [operation: string, path: string, body: Record<string, unknown>])[] = [
  ['chat', '/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] }],
  ['embed', '/v1/embeddings', { input: 'hi' }],
  ['generate-image', '/v1/images/generations', { prompt: 'a house' }],
  ['speak', '/v1/audio/speech', { input: 'hi', voice: 'alloy' }],
  ['rerank', '/v1/rerank', { query: 'q', documents: ['a', 'b'] }],
  ['create-video', '/v1/videos', { prompt: 'a house' }],
];

/** All that operators and clients can read of a gateway. */
async function collectOutput(gateway: TestGateway): Promise<string> {
  const admin = await logIn(gateway.url);
  const outputs: string[] = [];
  for (const name of Object.keys(routes) as RouteName[]) {
    const { method, path, type } = routes[name] as { method: string; path: string; type?: string };
    if (method === 'GET' && !path.includes(':') && type !== 'text/event-stream')
      outputs.push(await (await admin.send(name)).text());
  }
  for (const path of ['/readyz', '/metrics', '/healthz', '/dashboard'])
    outputs.push(await (await fetch(gateway.url + path)).text());
  return [...outputs, ...gateway.lines.map((line) => JSON.stringify(line))].join('\n');
}

describe('the key of a channel', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  const canaries = new Map<string, string>();
  let status = 401;

  beforeAll(async () => {
    upstream = await quoting(() => status);
    const channels: ChannelEntry[] = [];
    for (const kind of await kinds()) {
      const { name } = kind.spec;
      // It asks nobody, and has no secret.
      if (name === 'demo') continue;
      const canary = canaryOf(name);
      canaries.set(name, canary);
      if (name === 'sap-ai-core') {
        channels.push(
          kind({ id: name, models: [`${name}-model`], serviceKey: serviceKey(upstream.url, canary) }),
        );
        continue;
      }
      channels.push(
        kind({
          ...presets[name]?.options,
          ...needed[name],
          id: name,
          key: twoHalves.has(name) ? `${canary}-id|${canary}` : canary,
          baseUrl: `${upstream.url}/v1?code=${canary}`,
          ...(changesKeys.has(name) ? { tokenUrl: `${upstream.url}/token` } : {}),
          headers: { set: { 'x-own-token': canary } },
          models: { [`${name}-model`]: presets[name]?.model ?? 'model' },
        }),
      );
    }
    gateway = await startGateway({ adminPassword, channels });
  });
  afterAll(async () => {
    await gateway?.close();
    await upstream?.close();
  });

  test.each([401, 400, 404, 429, 500])(
    'is shown nowhere when a provider answers %i and quotes it, whatever the kind',
    async (refusal) => {
      status = refusal;
      const replies: string[] = [];
      for (const { id, speaks } of gateway.gateway.catalog.channels) {
        const [, path, body] =
          requests.find(([operation]) => (speaks as Record<string, unknown>)[operation] !== undefined) ?? [];
        if (path === undefined) continue;
        const response = await fetch(gateway.url + path, {
          method: 'POST',
          headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: `${id}-model`, ...body }),
        });
        expect(response.ok).toBe(false);
        replies.push(await response.text());
      }
      expect(replies.length).toBeGreaterThan(70);
      expect(upstream.requests.length).toBeGreaterThan(70);
      const output = `${await collectOutput(gateway)}\n${replies.join('\n')}`;
      expect(output).toContain('openai-model');
      expect([...canaries].filter(([, canary]) => output.includes(canary)).map(([name]) => name)).toEqual([]);
    },
  );
});

describe('a config that is refused', () => {
  const sluiceInShell = shell();
  /** Each case has its own, because one process runs all commands and remembers the secrets of the cases before. */
  let count = 0;

  test.each([
    ['a key that is no text', `channels: [openai({ key: ['CANARY'] })]`],
    ['a key of a channel with a misspelt option', `channels: [openai({ key: 'CANARY', modles: [] })]`],
    ['a proxy that cannot be read', `channels: [openai({ key: 'k', proxy: 'http://me:CANARY@[' })]`],
    [
      'credentials of the wrong shape',
      `channels: [vertex({ project: 1, credentials: '{"private_key":"CANARY"}' })]`,
    ],
    ['a service key without its parts', `channels: [sap({ serviceKey: '{"clientsecret":"CANARY"}' })]`],
    ['a secret of an identity', `channels: [azure({ identity: { kind: 'secret', secret: 'CANARY' } })]`],
    ['a database that nobody knows', `database: 'mysql://me:CANARY@host/name'`],
    ['a database that is not there', `database: 'postgres://me:CANARY@127.0.0.1:1/name'`],
    ['a shared store', `shared: { url: 'redis://me:CANARY@[/0' }`],
    ['a token of a plugin', `plugins: [metrics({ token: 'CANARY', tokne: 'CANARY' })]`],
    ['an exception that quotes it', `channels: [(() => { throw new Error('No: ' + env('VARIABLE')); })()]`],
  ])('tells the problem without the secret: %s', async (_case, entry) => {
    const canary = canaryOf(`refused ${++count}`);
    const variable = `CASE_${count}_API_KEY`;
    const folder = operatorFolder({
      'gateway.config.ts': `
        import { defineConfig, env } from 'sluice';
        import openai from '../../../channels/openai.ts';
        import vertex from '../../../channels/vertex/index.ts';
        import sap from '../../../channels/sap-ai-core/index.ts';
        import azure from '../../../channels/azure-openai.ts';
        import metrics from '../../../plugins/metrics/index.ts';
        export default defineConfig({ ${entry.replaceAll('CANARY', canary).replaceAll('VARIABLE', variable)} } as never);`,
    });
    const { code, stdout, stderr } = await sluiceInShell(
      ['check', '--config', join(folder, 'gateway.config.ts')],
      { [variable]: canary },
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(/1 problem|problems\./);
    expect(stdout + stderr).not.toContain(canary);
  });
});

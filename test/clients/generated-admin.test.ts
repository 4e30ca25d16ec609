import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import openapiTS, { type OpenAPI3 } from 'openapi-typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { adminPassword, logIn } from '../plugins/admin/_client.ts';
import { frugalCompiler } from '../support/compiler.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

/** The life of a team, a member, a key, a token and a budget, in the words of a generated client. */
const script = `
import createClient from 'openapi-fetch';
import type { paths } from './schema.ts';

/** Does all of it, and returns what happened. */
export async function live(baseUrl: string, token: string) {
  const client = createClient<paths>({ baseUrl, headers: { authorization: \`Bearer \${token}\` } });
  const team = await client.POST('/api/admin/owners', {
    params: { header: { 'idempotency-key': 'team-1' } },
    body: {
      kind: 'team',
      name: 'research',
      budgets: [{ unit: 'micro-dollar', period: 'month', amount: 5_000_000 }],
    },
  });
  if (team.data === undefined) throw new Error(team.error.error.message);
  const member = await client.POST('/api/admin/owners', { body: { kind: 'member', name: 'Ada' } });
  if (member.data === undefined) throw new Error(member.error.error.message);
  const key = await client.POST('/api/admin/keys', {
    params: { header: { 'idempotency-key': 'key-1' } },
    body: { name: 'laptop', team: team.data.id, member: member.data.id },
  });
  const again = await client.POST('/api/admin/keys', {
    params: { header: { 'idempotency-key': 'key-1' } },
    body: { name: 'laptop', team: team.data.id, member: member.data.id },
  });
  if (key.data === undefined) throw new Error(key.error.error.message);
  const id: string = key.data.key.id;
  const rotated = await client.POST('/api/admin/keys/{id}/rotate', {
    params: { path: { id } },
    body: { graceSeconds: 3600 },
  });
  const ended = await client.DELETE('/api/admin/keys/{id}/old-secret', { params: { path: { id } } });
  const changed = await client.PATCH('/api/admin/owners/{id}', {
    params: { path: { id: team.data.id } },
    body: { budgets: [{ unit: 'micro-dollar', period: 'month', amount: 7_000_000 }] },
  });
  const made = await client.POST('/api/admin/tokens', { body: { name: 'child', scopes: ['keys:read'], days: 1 } });
  if (made.data === undefined) throw new Error(made.error.error.message);
  const revoked = await client.DELETE('/api/admin/tokens/{id}', { params: { path: { id: made.data.token.id } } });
  const listed = await client.GET('/api/admin/keys', { params: { query: { search: 'laptop' } } });
  const deleted = await client.DELETE('/api/admin/keys/{id}', { params: { path: { id } } });
  const gone = await client.GET('/api/admin/keys/{id}', { params: { path: { id } } });
  return {
    sameKey: again.data?.value === key.data.value,
    value: key.data.value,
    old: rotated.data?.key.oldSecret?.until,
    ended: ended.data?.oldSecret,
    budget: changed.data?.budgets[0]?.amount,
    revoked: revoked.data?.ok,
    listed: listed.data?.keys.map(({ name, team: of }) => ({ name, isOfTeam: of === team.data.id })),
    deleted: deleted.data?.ok,
    gone: gone.error?.error.code,
  };
}
`;

/** Below the repository, because the compiler and Node find the client's package from there. Not in Git. */
const folder = join(import.meta.dirname, '..', '..', 'data', 'generated-admin', String(process.pid));
let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ adminPassword, channels: [demo()] });
  mkdirSync(folder, { recursive: true });
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await gateway.close();
});

test('a client that is generated from the document is sound TypeScript, and manages teams, keys and tokens', async () => {
  const response = await fetch(`${gateway.url}/api/admin/openapi.json`);
  const document = (await response.json()) as OpenAPI3;
  writeFileSync(join(folder, 'schema.ts'), await openapiTS(document));
  writeFileSync(join(folder, 'life.ts'), script);
  const options = [
    ...frugalCompiler.options,
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--module',
    'nodenext',
    '--target',
    'esnext',
  ];
  const compiler = join(import.meta.dirname, '..', '..', 'node_modules', '.bin', 'tsc');
  const compile = (): string => {
    try {
      return execFileSync(
        compiler,
        [...options, '--allowImportingTsExtensions', '--ignoreConfig', join(folder, 'life.ts')],
        { encoding: 'utf8' },
      );
    } catch (error) {
      return String((error as { stdout?: unknown }).stdout);
    }
  };
  expect(compile()).toBe('');

  // What the types promise must not be any.
  writeFileSync(join(folder, 'life.ts'), script.replace("kind: 'member'", "kind: 'nobody'"));
  expect(compile()).toContain('nobody');
  writeFileSync(join(folder, 'life.ts'), script);

  const page = await logIn(gateway.url);
  const { value } = await page.request('createToken', {
    body: { name: 'generated', scopes: ['keys:write', 'owners:write', 'tokens:write'] },
  });
  const { live } = (await import(pathToFileURL(join(folder, 'life.ts')).href)) as {
    live: (url: string, token: string) => Promise<unknown>;
  };
  expect(await live(gateway.url, value)).toEqual({
    sameKey: true,
    value: expect.stringMatching(/^sk-/),
    old: expect.any(Number),
    ended: undefined,
    budget: 7_000_000,
    revoked: true,
    listed: [{ name: 'laptop', isOfTeam: true }],
    deleted: true,
    gone: 'not_found',
  });
});

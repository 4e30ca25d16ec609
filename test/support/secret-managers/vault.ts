/** Fake of Vault. Responds and refuses as OpenBao 2.7.2 did to the same requests in November 2026. */
import type { SeenRequest } from '../upstream.ts';
import { startManager, type Answer, type FakeManager } from './manager.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A fake Vault with a mount `secret/` of version 2 and a mount `kv1/` of version 1. */
export interface FakeVault extends FakeManager {
  /** Versions of secrets by their paths, as `secret/llm/openai` or `kv1/a`. An undefined one was deleted. */
  readonly secrets: Map<string, (Fields | undefined)[]>;
  /** Tokens that are good. `ttl` in seconds. */
  readonly tokens: Map<string, { ttl: number; renewable: boolean }>;
  /** Beginnings of paths that the policy of tokens does not let pass. */
  readonly forbidden: Set<string>;
  /** Namespace that requests must name. */
  namespace: string | undefined;
  /** Number of logins for which the secret id is still good. */
  secretIdUses: number;
  /** Number of requests to paths with this beginning. */
  countRequests(path: string): number;
}

export const rootToken = 'root-token-of-the-tests';
export const roleId = 'role-id-of-the-gateway';
export const secretId = 'secret-id-of-the-gateway';
export const jwt = 'jwt-of-the-service-account';

const envelope = {
  request_id: '0975c947',
  lease_id: '',
  renewable: false,
  lease_duration: 0,
  wrap_info: null,
};
const denied: Answer = [403, { errors: ['permission denied'] }];
const none: Answer = [404, { errors: [] }];

/** Response of Vault while it is sealed. */
export const sealed: Answer = [503, { errors: ['Vault is sealed'] }];

export async function startVault(): Promise<FakeVault> {
  const manager = await startManager((request) => answer(vault, request));
  const vault: FakeVault = Object.assign(manager, {
    secrets: new Map(),
    tokens: new Map([[rootToken, { ttl: 0, renewable: false }]]),
    forbidden: new Set<string>(),
    namespace: undefined,
    secretIdUses: Infinity,
    countRequests: (path: string) =>
      manager.requests.filter(({ url }) => url.startsWith(`/v1/${path}`)).length,
  });
  return vault;
}

function answer(vault: FakeVault, { url, method, headers, body }: SeenRequest): Answer {
  const { pathname, searchParams } = new URL(url, 'http://vault');
  const path = decodeURIComponent(pathname.replace(/^\/v1\//, ''));
  if (vault.namespace !== headers['x-vault-namespace']) return denied;
  const given = (body.length === 0 ? {} : JSON.parse(body.toString())) as Record<string, string>;
  if (method === 'POST' && path === 'auth/approle/login')
    return given['role_id'] === roleId && given['secret_id'] === secretId && vault.secretIdUses-- > 0
      ? loggedIn(vault)
      : [400, { errors: ['invalid role or secret ID'] }];
  if (method === 'POST' && path === 'auth/kubernetes/login')
    return given['role'] === 'gateway' && given['jwt'] === jwt ? loggedIn(vault) : denied;
  const shown = String(headers['x-vault-token'] ?? '');
  const token = vault.tokens.get(shown);
  if (token === undefined) return denied;
  if ([...vault.forbidden].some((prefix) => path.startsWith(prefix))) return denied;
  if (path === 'auth/token/lookup-self') return [200, { ...envelope, data: { id: shown, ...token } }];
  if (path === 'auth/token/renew-self' && method === 'POST')
    return token.renewable
      ? [200, { ...envelope, data: null, auth: { client_token: shown, lease_duration: token.ttl } }]
      : [400, { errors: ['lease is not renewable'] }];
  if (path === 'auth/token/revoke-self' && method === 'POST') {
    vault.tokens.delete(shown);
    return [204];
  }
  if (method !== 'GET') return [405, { errors: ['unsupported operation'] }];
  const [, named] = /^sys\/internal\/ui\/mounts\/(.*)/.exec(path) ?? [];
  if (named !== undefined) return mountOf(named);
  return secretAt(vault, path, searchParams.get('version'));
}

function loggedIn(vault: FakeVault): Answer {
  const client_token = `s.login-token-of-tests-${vault.tokens.size}-${vault.requests.length}`;
  vault.tokens.set(client_token, { ttl: 60, renewable: true });
  return [200, { ...envelope, data: null, auth: { client_token, lease_duration: 60, renewable: true } }];
}

const mounts: Readonly<Record<string, object>> = {
  secret: { path: 'secret/', type: 'kv', options: { version: '2' } },
  kv1: { path: 'kv1/', type: 'kv', options: { version: '1' } },
  database: { path: 'database/', type: 'database', options: null },
};

function mountOf(path: string): Answer {
  const data = mounts[path.split('/')[0] ?? ''];
  const preflight = `preflight capability check returned 403, please ensure client's policies grant access to path "${path}/"`;
  return data === undefined ? [403, { errors: [preflight] }] : [200, { ...envelope, data }];
}

function secretAt({ secrets }: FakeVault, path: string, version: string | null): Answer {
  if (path.startsWith('kv1/')) {
    const data = secrets.get(path)?.at(-1);
    return data === undefined ? none : [200, { ...envelope, lease_duration: 2_764_800, data }];
  }
  if (path.startsWith('database/creds/'))
    return [
      200,
      {
        ...envelope,
        lease_id: `${path}/abc`,
        renewable: true,
        lease_duration: 3_600,
        data: { password: 'dynamic-password' },
      },
    ];
  const versions = secrets.get(path.replace(/^secret\/data\//, 'secret/'));
  if (versions === undefined || !path.startsWith('secret/data/')) return none;
  const number = version === null ? versions.length : Number(version);
  if (number < 1 || number > versions.length) return none;
  const data = versions[number - 1] ?? null;
  const metadata = {
    version: number,
    destroyed: false,
    deletion_time: data === null ? '2026-11-27T01:47:58Z' : '',
  };
  return [data === null ? 404 : 200, { ...envelope, data: { data, metadata } }];
}

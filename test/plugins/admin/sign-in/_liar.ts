/** A provider of identities that follows OpenID Connect as far as a test wants it to. */
import { randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, type JWTPayload, type JWK } from 'jose';
import { startUpstream, type ScriptedUpstream } from '../../../support/upstream.ts';

/** Client of the gateway at such a provider. */
export const client = { id: 'gateway', secret: 'a-client-secret-of-the-gateway' };

interface SigningKey {
  readonly kid: string;
  readonly jwk: JWK;
  readonly key: Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];
}

/** Faults of the provider. Each member is a false value, or a change of its response. */
export interface Lies {
  metadata?: Record<string, unknown>;
  claims?: Record<string, unknown>;
  /** Signs id_tokens in place of the provider. */
  sign?: (claims: JWTPayload, provider: Liar) => Promise<string> | string;
  /** Answers a path in place of the provider. */
  answer?: Readonly<Record<string, { readonly status?: number; readonly body: string } | 'silence'>>;
}

/** Such a provider. */
export interface Liar {
  readonly url: string;
  readonly requests: ScriptedUpstream['requests'];
  lies: Lies;
  /** The person who signs in. */
  person: Record<string, unknown>;
  /** Undefined: the provider gives no refresh tokens. False: it refuses them. */
  refreshes: boolean | undefined;
  readonly keys: SigningKey[];
  /** Signs with a new key from now on, and publishes that alone. */
  rotate(): Promise<void>;
  /** Lets somebody sign in: from the address to which the gateway sent the browser to the one to which the browser goes back. */
  authorize(location: string, more?: Readonly<Record<string, string>>): string;
  sign(claims: JWTPayload, header?: { readonly typ?: string }): Promise<string>;
  close(): Promise<void>;
}

async function newKey(): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
  const kid = randomUUID();
  return { kid, key: privateKey, jwk: { ...(await exportJWK(publicKey)), kid, use: 'sig', alg: 'RS256' } };
}

/** Starts one that tells the truth until it is told otherwise. */
export async function startLiar(): Promise<Liar> {
  const codes = new Map<string, string>();
  const idToken = async (nonce?: string): Promise<string> => {
    const now = Math.floor(Date.now() / 1000);
    const claims: JWTPayload = {
      iss: liar.url,
      aud: client.id,
      iat: now,
      exp: now + 60,
      ...(nonce === undefined ? {} : { nonce }),
      ...liar.person,
      ...liar.lies.claims,
    };
    return liar.lies.sign === undefined ? liar.sign(claims) : liar.lies.sign(claims, liar);
  };
  const token = async (form: URLSearchParams): Promise<object | undefined> => {
    const refresh = liar.refreshes === undefined ? {} : { refresh_token: randomUUID() };
    const common = { access_token: 'access', token_type: 'Bearer', expires_in: 60, ...refresh };
    if (form.get('grant_type') === 'refresh_token')
      return liar.refreshes === true ? { ...common, id_token: await idToken() } : undefined;
    const code = form.get('code') ?? '';
    const nonce = codes.get(code);
    codes.delete(code);
    return nonce === undefined ? undefined : { ...common, id_token: await idToken(nonce) };
  };
  const upstream = await startUpstream(async ({ url, body }, response) => {
    const [path = ''] = (url ?? '').split('?');
    const json = (status: number, value: unknown): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    const lie = liar.lies.answer?.[path];
    if (lie === 'silence') return;
    if (lie !== undefined) {
      response.writeHead(lie.status ?? 200, { 'content-type': 'application/json' }).end(lie.body);
      return;
    }
    if (path === '/.well-known/openid-configuration')
      return json(200, {
        issuer: liar.url,
        authorization_endpoint: `${liar.url}/authorize`,
        token_endpoint: `${liar.url}/token`,
        jwks_uri: `${liar.url}/jwks`,
        end_session_endpoint: `${liar.url}/logout`,
        id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
        authorization_response_iss_parameter_supported: true,
        ...liar.lies.metadata,
      });
    if (path === '/jwks') return json(200, { keys: liar.keys.map(({ jwk }) => jwk) });
    const answer = path === '/token' ? await token(new URLSearchParams(String(body))) : undefined;
    json(answer === undefined ? 400 : 200, answer ?? { error: 'invalid_grant' });
  });
  const liar: Liar = {
    url: upstream.url,
    requests: upstream.requests,
    lies: {},
    person: {
      sub: 'subject-1',
      email: 'ann@example.com',
      email_verified: true,
      name: 'Ann',
      groups: ['staff'],
    },
    refreshes: undefined,
    keys: [await newKey()],
    async rotate() {
      liar.keys.splice(0, liar.keys.length, await newKey());
    },
    authorize(location, more = {}) {
      const query = new URL(location).searchParams;
      const code = randomUUID();
      codes.set(code, query.get('nonce') ?? '');
      const back = new URL(query.get('redirect_uri') ?? '');
      const answer = { code, state: query.get('state') ?? '', iss: liar.url, ...more };
      for (const [name, value] of Object.entries(answer)) back.searchParams.set(name, value);
      return back.href;
    },
    async sign(claims, header = {}) {
      const [signing] = liar.keys;
      if (signing === undefined) throw new Error('There is no key.');
      return new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', kid: signing.kid, ...header })
        .sign(signing.key);
    },
    close: () => upstream.close(),
  };
  return liar;
}

/** Signs nothing at all. */
export function unsigned(claims: JWTPayload): string {
  return new UnsecuredJWT(claims).encode();
}

/** Signs with the text of the public key as a shared secret. */
export function signedByPublicKey(claims: JWTPayload, { keys }: Liar): Promise<string> {
  const [published] = keys;
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'HS256', kid: published?.kid ?? '' })
    .sign(new TextEncoder().encode(JSON.stringify(published?.jwk)));
}

/** Signs with a key that the provider does not publish. */
export async function signedByStranger(claims: JWTPayload, { keys }: Liar): Promise<string> {
  const { key } = await newKey();
  return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: keys[0]?.kid ?? '' }).sign(key);
}

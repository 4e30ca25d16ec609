import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { startUpstream, type ScriptedUpstream } from './upstream.ts';

/** A client that an authorization server knows. */
interface OAuthClient {
  readonly id: string;
  readonly secret: string;
  readonly clientAuth: 'basic' | 'post';
  readonly scopes: readonly string[];
}

/** An authorization server on this machine, and a check of its tokens for the provider behind it. */
export interface AuthorizationServer {
  readonly url: string;
  readonly requests: ScriptedUpstream['requests'];
  /** The tokens that were given out, in their order. */
  readonly tokens: string[];
  /** Seconds that tokens are good for. */
  life: number;
  /** Response that is sent instead of tokens. */
  broken: { readonly status: number; readonly body: string } | undefined;
  /** Number of requests that wait for `release`; undefined: none waits. */
  held: (() => void)[] | undefined;
  /** True for a request with a valid token, as RFC 6750 defines it. */
  accepts(headers: IncomingHttpHeaders): boolean;
  revoke(token: string | undefined): void;
  close(): Promise<void>;
}

type Json = Record<string, unknown>;

/**
 * Starts one that knows one client, and refuses what RFC 6749 has servers refuse: a method other than POST (3.2), a body that is no form
 * (4.4.2), a parameter that comes twice (3.2), two ways of client authentication (2.3), one that the client is not registered for or a
 * wrong secret (5.2: invalid_client, 401), another grant (unsupported_grant_type), and a scope that the client may not have (invalid_scope).
 */
export async function startAuthorizationServer(client: OAuthClient): Promise<AuthorizationServer> {
  const live = new Set<string>();
  const answer = (response: ServerResponse, status: number, body: Json): void => {
    // 5.1: no store.
    const headers = {
      'content-type': 'application/json;charset=UTF-8',
      'cache-control': 'no-store',
      ...(status === 401 ? { 'www-authenticate': 'Basic realm="tokens"' } : {}),
    };
    response.writeHead(status, headers).end(JSON.stringify(body));
  };
  const give = (response: ServerResponse): void => {
    const token = `opaque.${server.tokens.length + 1}.${client.id.length}~abcdefghij`;
    server.tokens.push(token);
    live.add(token);
    answer(response, 200, { access_token: token, token_type: 'bearer', expires_in: server.life });
  };
  const upstream = await startUpstream((request, response) => {
    if (server.broken !== undefined) {
      response.writeHead(server.broken.status, { 'content-type': 'text/html' }).end(server.broken.body);
      return;
    }
    const refusal = refusalOf(client, request.method ?? '', request.headers, String(request.body));
    if (refusal !== undefined) answer(response, refusal.status, refusal.body);
    else if (server.held === undefined) give(response);
    else server.held.push(() => give(response));
  });
  const server: AuthorizationServer = {
    url: upstream.url,
    requests: upstream.requests,
    tokens: [],
    life: 3600,
    broken: undefined,
    held: undefined,
    accepts: ({ authorization = '' }) => live.has(/^Bearer (\S+)$/.exec(authorization)?.[1] ?? ''),
    revoke: (token) => void live.delete(token ?? ''),
    close: () => upstream.close(),
  };
  return server;
}

function refusalOf(
  client: OAuthClient,
  method: string,
  headers: IncomingHttpHeaders,
  body: string,
): { readonly status: number; readonly body: Json } | undefined {
  const refuse = (status: number, error: string, description: string) => ({
    status,
    body: { error, error_description: description },
  });
  if (method !== 'POST') return refuse(405, 'invalid_request', 'Only POST is allowed.');
  if (!/^application\/x-www-form-urlencoded\b/.test(headers['content-type'] ?? ''))
    return refuse(400, 'invalid_request', 'The body is no form.');
  const form = new URLSearchParams(body);
  if (new Set(form.keys()).size !== form.size)
    return refuse(400, 'invalid_request', 'A parameter is repeated.');
  const basic = /^Basic ([A-Za-z0-9+/=]+)$/.exec(headers.authorization ?? '')?.[1];
  if (basic !== undefined && form.has('client_secret'))
    return refuse(400, 'invalid_request', 'More than one way of client authentication was used.');
  if ((basic === undefined ? 'post' : 'basic') !== client.clientAuth)
    return refuse(401, 'invalid_client', 'The client is registered for another way of authentication.');
  const [id, secret] =
    basic === undefined
      ? [form.get('client_id'), form.get('client_secret')]
      : Buffer.from(basic, 'base64')
          .toString()
          .split(':')
          .map((half) => decodeURIComponent(half.replaceAll('+', ' ')));
  if (id !== client.id || secret !== client.secret)
    return refuse(401, 'invalid_client', `Client authentication failed for ${id} with ${secret}.`);
  const grant = form.get('grant_type');
  if (grant === null) return refuse(400, 'invalid_request', 'grant_type is missing.');
  if (grant !== 'client_credentials') return refuse(400, 'unsupported_grant_type', 'No such grant.');
  const scopes = form.get('scope')?.split(' ') ?? [];
  if (!scopes.every((scope) => client.scopes.includes(scope)))
    return refuse(400, 'invalid_scope', 'The client may not have this scope.');
  return undefined;
}

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Gatekeeper } from './http-server.ts';

/** An authorization server with one client, and the check of its tokens for an MCP server. */
export interface OAuthServer {
  readonly url: string;
  /** Kinds of grants for which tokens were given out. */
  readonly grants: string[];
  /** Queries of the requests of browsers. */
  readonly authorizationRequests: URLSearchParams[];
  /** Makes the present access token invalid. */
  revoke(): void;
  /** Refuses people who sign in. */
  refuse(): void;
  /** Answers 401 with the address of the metadata (RFC 9728), and serves that. */
  readonly gate: Gatekeeper;
  close(): Promise<void>;
}

/** Starts one with metadata by RFC 8414. Each use of a refresh token replaces it. */
export async function startOAuthServer(client: {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly refreshToken: string;
  /** Issuer in its metadata. Default: its own address. */
  readonly issuer?: string;
}): Promise<OAuthServer> {
  const grants: string[] = [];
  const authorizationRequests: URLSearchParams[] = [];
  let isRefusing = false;
  let { refreshToken } = client;
  let access: string | undefined;
  const json = (response: ServerResponse, status: number, body: unknown, headers = {}): void =>
    void response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(body));
  const give = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const form = new URLSearchParams(Buffer.concat(chunks).toString());
    const basic = Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64');
    if (request.headers.authorization !== `Basic ${basic}`)
      return json(response, 401, { error: 'invalid_client' });
    const grant = form.get('grant_type') ?? '';
    if (grant === 'refresh_token' && form.get('refresh_token') !== refreshToken)
      return json(response, 400, { error: 'invalid_grant' });
    if (grant === 'authorization_code' && form.get('code') !== 'the-code')
      return json(response, 400, { error: 'invalid_grant' });
    grants.push(grant);
    access = `access-${grants.length}`;
    if (grant !== 'client_credentials') refreshToken = `refresh-${grants.length}`;
    return json(response, 200, {
      access_token: access,
      token_type: 'Bearer',
      expires_in: 3600,
      ...(grant === 'client_credentials' ? {} : { refresh_token: refreshToken }),
    });
  };
  const server = createServer((request, response) => {
    const url = `http://${request.headers.host}`;
    const { pathname, searchParams: query } = new URL(request.url ?? '/', url);
    if (pathname === '/token') void give(request, response);
    else if (pathname === '/register')
      json(response, 201, {
        client_id: client.clientId,
        client_secret: client.clientSecret,
        redirect_uris: [],
        token_endpoint_auth_method: 'client_secret_basic',
      });
    else if (pathname === '/authorize') {
      authorizationRequests.push(query);
      const back = new URL(query.get('redirect_uri') ?? '');
      back.searchParams.set('state', query.get('state') ?? '');
      if (isRefusing) back.searchParams.set('error', 'access_denied');
      else back.searchParams.set('code', 'the-code');
      response.writeHead(302, { location: back.href }).end();
    } else if (request.url === '/.well-known/oauth-authorization-server')
      json(response, 200, {
        issuer: client.issuer ?? url,
        authorization_endpoint: `${url}/authorize`,
        token_endpoint: `${url}/token`,
        registration_endpoint: `${url}/register`,
        code_challenge_methods_supported: ['S256'],
        response_types_supported: ['code'],
        grant_types_supported: ['authorization_code', 'client_credentials', 'refresh_token'],
        token_endpoint_auth_methods_supported: ['client_secret_basic'],
      });
    else json(response, 404, {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    grants,
    authorizationRequests,
    refuse: () => void (isRefusing = true),
    revoke: () => (access = undefined),
    gate(request, response, own) {
      if (request.url?.startsWith('/.well-known/oauth-protected-resource') === true) {
        json(response, 200, { resource: `${own}/mcp`, authorization_servers: [url] });
        return true;
      }
      if (access !== undefined && request.headers.authorization === `Bearer ${access}`) return false;
      const metadata = `${own}/.well-known/oauth-protected-resource/mcp`;
      json(response, 401, {}, { 'www-authenticate': `Bearer resource_metadata="${metadata}"` });
      return true;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

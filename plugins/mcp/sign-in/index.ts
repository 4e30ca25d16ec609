/** Signs the operator in at an MCP server, once: the gateway then uses the server on behalf of that person. */
import { GatewayError, type SignInRequest } from 'sluice';
import { discoverAuthorization } from '../servers/discovery.ts';
import { boundedFetch } from '../servers/fetch.ts';
import { writeGrant } from '../servers/grant.ts';
import { loadSdk, type McpSdk } from '../servers/sdk.ts';
import { openCallback } from './callback.ts';
import { SignInProvider } from './provider.ts';

/** Time limit of a sign-in in milliseconds. */
const patienceMs = 10 * 60_000;

/** Bounds of each request. */
const bounds = { timeoutMs: 30_000, maxBytes: 1024 * 1024 };

/** A server's request for a sign-in. */
interface Challenge {
  readonly resourceMetadataUrl?: URL;
  readonly scope?: string;
}

/**
 * Finds the authorization server of an MCP server, registers the gateway there unless it has a registration, has a person sign in with the
 * authorization code flow with PKCE, and returns the grant as text.
 */
export async function signIn(request: SignInRequest): Promise<string> {
  const { address, http, tell: print, port = 0 } = request;
  if (!/^https?:$/.test(URL.parse(address)?.protocol ?? ''))
    throw new GatewayError('invalid_value', `"${address}" is not the URL of an MCP server.`);
  const sdk = await loadSdk();
  const fetchFn = boundedFetch(http, bounds);
  const { resourceMetadataUrl, scope } = await challengeOf(address, sdk, fetchFn);
  const callback = await openCallback(port);
  try {
    const provider = new SignInProvider(callback.url, request, (url) => print(invitation(url)));
    const answered = callback.answer(provider.state(), AbortSignal.timeout(patienceMs));
    answered.catch(() => undefined);
    const options = {
      serverUrl: address,
      fetchFn,
      ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
      ...((request.scope ?? scope) === undefined ? {} : { scope: request.scope ?? scope }),
    };
    provider.saveDiscoveryState(await discoverAuthorization(address, sdk, fetchFn, resourceMetadataUrl));
    await sdk.auth(provider, options as Parameters<McpSdk['auth']>[1]);
    const parameters = await answered;
    const code = parameters.get('code');
    if (code === null) throw refused(parameters);
    const iss = parameters.get('iss');
    await sdk.auth(provider, {
      ...options,
      authorizationCode: code,
      ...(iss === null ? {} : { iss }),
    } as Parameters<McpSdk['auth']>[1]);
    return grantOf(address, provider);
  } finally {
    await callback.close();
  }
}

/** Requests the server's tools without a token, and returns the authorization that it demands. */
async function challengeOf(
  address: string,
  sdk: McpSdk,
  fetchFn: ReturnType<typeof boundedFetch>,
): Promise<Challenge> {
  let challenge: Challenge | undefined;
  const transport = new sdk.StreamableHTTPClientTransport(new URL(address), {
    fetch: fetchFn,
    authProvider: {
      token: () => Promise.resolve(undefined),
      onUnauthorized({ response }) {
        challenge = sdk.extractWWWAuthenticateParams(response);
        throw new sdk.UnauthorizedError();
      },
    },
  });
  const client = new sdk.Client({ name: 'sluice', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  try {
    await client.connect(transport);
    await client.request({ method: 'tools/list' });
  } catch (error) {
    if (challenge === undefined) throw error;
  } finally {
    await client.close().catch(() => undefined);
  }
  if (challenge === undefined)
    throw new GatewayError('invalid_value', `The MCP server at ${address} does not require a sign-in.`);
  return challenge;
}

function invitation(url: URL): string {
  return `Open this address in a browser on this machine, and sign in:\n\n  ${url.href}\n`;
}

/** Returns the error of an authorization server that has sent the browser back without a code. */
function refused(parameters: URLSearchParams): Error {
  const why = [parameters.get('error'), parameters.get('error_description')].filter((text) => text !== null);
  return new Error(`The authorization server has refused the sign-in: ${why.join(', ').slice(0, 500)}`);
}

function grantOf(url: string, provider: SignInProvider): string {
  const [client, tokens] = [provider.clientInformation(), provider.tokens()];
  if (client === undefined || tokens === undefined) throw new Error('The sign-in returned no token.');
  const { client_id: clientId, client_secret: clientSecret, issuer = new URL(url).origin } = client;
  const clientAuth = 'token_endpoint_auth_method' in client ? client.token_endpoint_auth_method : undefined;
  return writeGrant({
    url,
    issuer,
    clientId,
    accessToken: tokens.access_token,
    ...(clientSecret === undefined ? {} : { clientSecret }),
    ...(clientAuth === undefined ? {} : { clientAuth }),
    ...(tokens.refresh_token === undefined ? {} : { refreshToken: tokens.refresh_token }),
  });
}

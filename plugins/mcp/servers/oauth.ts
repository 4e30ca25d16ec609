/** Credentials of the gateway at the authorization server of an MCP server. */
import type {
  AuthProvider,
  FetchLike,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import type { OAuthConfig } from './config.ts';
import { discoverAuthorization } from './discovery.ts';
import { readGrant } from './grant.ts';
import type { McpSdk } from './sdk.ts';
import type { TokenVault } from './token-vault.ts';

/** Milliseconds in which a refusal does not concern the token that was obtained last. */
const settleMs = 2_000;

/**
 * Returns the SDK's source of access tokens. After a 401 it discovers the authorization server from the MCP server, gives the credentials
 * to the configured issuer alone, and gets a new token: once, also where several requests were refused at the same time, because a
 * refresh token that is used twice may be revoked.
 */
export function oauthTokens(
  config: OAuthConfig,
  sdk: McpSdk,
  vault: TokenVault,
  fetch: FetchLike,
): AuthProvider {
  const held = heldOf(config);
  const provider = held === undefined ? clientCredentials(config, sdk) : new TokenProvider(held, vault, sdk);
  const ownScope = 'scope' in config ? config.scope : undefined;
  let renewing: Promise<void> | undefined;
  /** Token of the latest request. Kept in memory, because the vault reads the database. */
  let used: string | undefined;
  let renewedAt = -Infinity;
  const renew: NonNullable<AuthProvider['onUnauthorized']> = async ({ response, serverUrl }) => {
    const { resourceMetadataUrl, scope: requestedScope } = sdk.extractWWWAuthenticateParams(response);
    const scope = ownScope ?? requestedScope;
    const refused = used;
    const obtain = async (ending?: AbortSignal): Promise<void> => {
      // Another worker may have been faster.
      used = (await provider.tokens())?.access_token ?? refused;
      if (used !== refused) return;
      // Not the fetch of the connection, because that sends the configured headers.
      const fetchFn = ending === undefined ? fetch : fetchUntil(ending, fetch);
      if (provider instanceof TokenProvider)
        provider.discovered = await discoverAuthorization(serverUrl, sdk, fetchFn, resourceMetadataUrl);
      const outcome = await sdk.auth(provider, {
        serverUrl,
        fetchFn,
        ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
        ...(scope === undefined ? {} : { scope }),
      });
      if (outcome !== 'AUTHORIZED') throw new sdk.UnauthorizedError();
      used = (await provider.tokens())?.access_token;
    };
    await (held === undefined ? obtain() : vault.alone(obtain));
    renewedAt = performance.now();
  };
  return {
    async token() {
      return (used ??= (await provider.tokens())?.access_token);
    },
    async onUnauthorized(context) {
      // The refusal of a request that was sent with the token before.
      if (performance.now() - renewedAt < settleMs) return;
      renewing ??= renew(context).finally(() => (renewing = undefined));
      await renewing;
    },
  };
}

/** Returns a fetch whose requests end when `ending` aborts. */
function fetchUntil(ending: AbortSignal, send: FetchLike): FetchLike {
  return (url, init) =>
    send(url, { ...init, signal: init?.signal ? AbortSignal.any([init.signal, ending]) : ending });
}

/** Tokens that somebody obtained for the gateway, and the registration that they belong to. */
interface HeldTokens {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  readonly clientAuth?: string | undefined;
  readonly refreshToken?: string | undefined;
  readonly accessToken?: string | undefined;
}

function heldOf(config: OAuthConfig): HeldTokens | undefined {
  if ('signIn' in config) return readGrant(config.signIn);
  return config.refreshToken === undefined ? undefined : config;
}

/** Returns the secret that encrypts the tokens which replace a configured one. */
export function tokenSecretOf(config: OAuthConfig): string {
  return ('signIn' in config ? config.signIn : config.refreshToken) ?? '';
}

function clientCredentials(config: OAuthConfig, sdk: McpSdk): OAuthClientProvider {
  if ('signIn' in config) throw new Error('The sign-in cannot be read.');
  const { clientId, clientSecret = '', privateKey, algorithm, scope, issuer } = config;
  const common = {
    clientId,
    clientName: 'sluice',
    expectedIssuer: issuer,
    ...(scope === undefined ? {} : { scope }),
  };
  const provider =
    privateKey === undefined
      ? new sdk.ClientCredentialsProvider({ ...common, clientSecret })
      : new sdk.PrivateKeyJwtProvider({ ...common, privateKey, algorithm });
  // Credentials that are refused are not tried twice.
  return Object.assign(provider, { invalidateCredentials: () => undefined });
}

/** Uses tokens that somebody obtained for the gateway, and keeps those that replace them. */
class TokenProvider implements OAuthClientProvider {
  readonly redirectUrl = undefined;
  /** The authorization server, before each request of tokens. */
  discovered: OAuthDiscoveryState | undefined;
  readonly #held: HeldTokens;
  readonly #vault: TokenVault;
  readonly #sdk: McpSdk;

  constructor(held: HeldTokens, vault: TokenVault, sdk: McpSdk) {
    this.#held = held;
    this.#vault = vault;
    this.#sdk = sdk;
  }

  get clientMetadata(): OAuthClientProvider['clientMetadata'] {
    return {
      client_name: 'sluice',
      redirect_uris: [],
      grant_types: ['refresh_token'],
      token_endpoint_auth_method: this.#clientAuth,
    };
  }

  get #clientAuth(): string {
    const { clientAuth, clientSecret } = this.#held;
    return clientAuth ?? (clientSecret === undefined ? 'none' : 'client_secret_basic');
  }

  clientInformation(): ReturnType<OAuthClientProvider['clientInformation']> {
    const { clientId, clientSecret, clientAuth, issuer } = this.#held;
    return {
      client_id: clientId,
      issuer,
      ...(clientAuth === undefined ? {} : { token_endpoint_auth_method: clientAuth, redirect_uris: [] }),
      ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
    };
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.discovered;
  }

  async tokens(): Promise<StoredOAuthTokens | undefined> {
    const { accessToken, issuer } = this.#held;
    const kept = await this.#vault.read();
    if (kept !== undefined || accessToken === undefined) return kept;
    return { access_token: accessToken, token_type: 'Bearer', issuer };
  }

  async saveTokens(tokens: StoredOAuthTokens): Promise<void> {
    const refreshToken = await this.#current();
    // A server that does not replace the refresh token may leave it out.
    await this.#vault.write({
      ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }),
      ...tokens,
    });
  }

  async prepareTokenRequest(): Promise<URLSearchParams> {
    const refreshToken = await this.#current();
    if (refreshToken === undefined)
      throw new this.#sdk.UnauthorizedError('The sign-in has ended. Run "sluice login mcp URL" again.');
    return new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken });
  }

  async #current(): Promise<string | undefined> {
    return (await this.#vault.read())?.refresh_token ?? this.#held.refreshToken;
  }

  redirectToAuthorization(): never {
    throw new Error('The refresh token is no longer valid: obtain another one.');
  }

  saveCodeVerifier(): void {
    // This flow exchanges no code.
  }

  codeVerifier(): never {
    throw new Error('No code is exchanged.');
  }

  invalidateCredentials(): void {
    // Keeps the configured token and its replacement, because the refusal may be temporary.
  }
}

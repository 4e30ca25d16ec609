/** Credentials of the gateway at the authorization server of an MCP server. */
import type {
  AuthProvider,
  FetchLike,
  OAuthClientProvider,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import type { OAuthConfig } from './config.ts';
import type { McpSdk } from './sdk.ts';
import type { TokenVault } from './token-vault.ts';

/** Milliseconds in which a refusal does not mean the token that was obtained last. */
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
  const provider =
    config.refreshToken === undefined
      ? clientCredentials(config, sdk)
      : new RefreshTokenProvider(config, vault);
  let renewing: Promise<void> | undefined;
  /** Token of the latest request. Kept in memory, because the vault reads the database. */
  let used: string | undefined;
  let renewedAt = -Infinity;
  const renew: NonNullable<AuthProvider['onUnauthorized']> = async ({ response, serverUrl }) => {
    const { resourceMetadataUrl, scope } = sdk.extractWWWAuthenticateParams(response);
    const refused = used;
    const obtain = async (ending?: AbortSignal): Promise<void> => {
      // Another worker may have been faster.
      used = (await provider.tokens())?.access_token ?? refused;
      if (used !== refused) return;
      const outcome = await sdk.auth(provider, {
        serverUrl,
        // Not the fetch of the connection, which sends the configured headers along.
        fetchFn: ending === undefined ? fetch : fetchUntil(ending, fetch),
        ...(resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }),
        ...(scope === undefined ? {} : { scope }),
      });
      if (outcome !== 'AUTHORIZED') throw new sdk.UnauthorizedError();
      used = (await provider.tokens())?.access_token;
    };
    await (config.refreshToken === undefined ? obtain() : vault.alone(obtain));
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

function clientCredentials(
  { clientId, clientSecret = '', scope, issuer }: OAuthConfig,
  sdk: McpSdk,
): OAuthClientProvider {
  const provider = new sdk.ClientCredentialsProvider({
    clientId,
    clientSecret,
    clientName: 'sluice',
    expectedIssuer: issuer,
    ...(scope === undefined ? {} : { scope }),
  });
  // Credentials that are refused are not tried twice.
  return Object.assign(provider, { invalidateCredentials: () => undefined });
}

/** Uses a refresh token that somebody obtained for the gateway, and keeps the one that replaces it. */
class RefreshTokenProvider implements OAuthClientProvider {
  readonly redirectUrl = undefined;
  readonly #config: OAuthConfig;
  readonly #vault: TokenVault;

  constructor(config: OAuthConfig, vault: TokenVault) {
    this.#config = config;
    this.#vault = vault;
  }

  get clientMetadata(): OAuthClientProvider['clientMetadata'] {
    const { clientSecret, scope } = this.#config;
    return {
      client_name: 'sluice',
      redirect_uris: [],
      grant_types: ['refresh_token'],
      token_endpoint_auth_method: clientSecret === undefined ? 'none' : 'client_secret_basic',
      ...(scope === undefined ? {} : { scope }),
    };
  }

  clientInformation(): { client_id: string; client_secret?: string; issuer: string } {
    const { clientId, clientSecret, issuer } = this.#config;
    return {
      client_id: clientId,
      issuer,
      ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
    };
  }

  tokens(): Promise<StoredOAuthTokens | undefined> {
    return this.#vault.read();
  }

  async saveTokens(tokens: StoredOAuthTokens): Promise<void> {
    // A server that does not replace the refresh token may leave it out.
    await this.#vault.write({ refresh_token: await this.#current(), ...tokens });
  }

  async prepareTokenRequest(): Promise<URLSearchParams> {
    return new URLSearchParams({ grant_type: 'refresh_token', refresh_token: await this.#current() });
  }

  async #current(): Promise<string> {
    return (await this.#vault.read())?.refresh_token ?? this.#config.refreshToken ?? '';
  }

  redirectToAuthorization(): never {
    throw new Error('The refresh token is no longer valid: obtain another one.');
  }

  saveCodeVerifier(): void {
    // No code is exchanged.
  }

  codeVerifier(): never {
    throw new Error('No code is exchanged.');
  }

  invalidateCredentials(): void {
    // What the config has and what replaced it stay: a refusal may pass.
  }
}

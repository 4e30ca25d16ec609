/** Speaks OpenID Connect with one provider of identities, through the library. */
import type { Configuration, IDToken, ServerMetadata } from 'openid-client';
import type { JsonObject, Services } from 'sluice';
import { hasGroups, personOf, type Person } from './claims.ts';
import { boundedFetch, type OidcLibrary } from './library.ts';
import type { ProviderOptions } from './options.ts';
import { SignInRefused, type SignInProblem } from './problems.ts';

/** Milliseconds for which a discovery document is cached, and for which a failed request for one is not repeated. */
const fresh = 300_000;
const failed = 5_000;

/** Algorithms of signatures that are accepted: those with a public key. */
export const algorithms: ReadonlySet<string> = new Set(
  'RS256 PS256 ES256 RS384 PS384 ES384 RS512 PS512 ES512 EdDSA'.split(' '),
);

/** Secrets of one sign-in, which only the browser that began it brings back. */
export interface FlowSecrets {
  readonly state: string;
  readonly nonce: string;
  /** PKCE verifier. */
  readonly verifier: string;
}

/** A person who has proved who they are, with what a later look at their groups needs. */
export interface Proved {
  readonly person: Person;
  readonly refreshToken: string | undefined;
  readonly idToken: string | undefined;
}

/** Client of one identity provider. */
export class Provider {
  readonly options: ProviderOptions;
  readonly redirectUri: string;
  readonly #oidc: OidcLibrary;
  readonly #http: Services;
  #discovered: { readonly at: number; readonly metadata: Promise<ServerMetadata> } | undefined;
  #failedAt = -Infinity;

  constructor(options: ProviderOptions, publicUrl: string, oidc: OidcLibrary, http: Services) {
    this.options = options;
    this.redirectUri = `${publicUrl}/api/admin/sign-in/${options.id}/callback`;
    this.#oidc = oidc;
    this.#http = http;
  }

  /** Begins a sign-in: the address to which the browser goes, and the secrets of this sign-in. */
  async begin(): Promise<{ readonly url: URL; readonly secrets: FlowSecrets }> {
    const oidc = this.#oidc;
    const secrets = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      verifier: oidc.randomPKCECodeVerifier(),
    };
    const scopes = new Set(['openid', ...this.options.scopes]);
    const url = oidc.buildAuthorizationUrl(await this.#configuration(), {
      ...this.options.authorizationParameters,
      redirect_uri: this.redirectUri,
      scope: [...scopes].join(' '),
      state: secrets.state,
      nonce: secrets.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(secrets.verifier),
      code_challenge_method: 'S256',
    });
    return { url, secrets };
  }

  /** Ends a sign-in by the query with which the browser came back. */
  async finish(search: string, secrets: FlowSecrets): Promise<Proved> {
    const configuration = await this.#configuration();
    try {
      const tokens = await this.#oidc.authorizationCodeGrant(
        configuration,
        new URL(`${this.redirectUri}${search}`),
        {
          expectedState: secrets.state,
          expectedNonce: secrets.nonce,
          pkceCodeVerifier: secrets.verifier,
          idTokenExpected: true,
        },
      );
      const claims = await this.#claims(configuration, tokens.access_token, tokens.claims());
      return {
        person: personOf(claims, this.options),
        refreshToken: tokens.refresh_token,
        idToken: tokens.id_token,
      };
    } catch (error) {
      throw refusalOf(error);
    }
  }

  /** Queries the provider again about a person. Returns undefined when the provider has withdrawn the refresh token. */
  async renew(refreshToken: string, known: Pick<Person, 'issuer' | 'subject'>): Promise<Proved | undefined> {
    const configuration = await this.#configuration();
    try {
      const tokens = await this.#oidc.refreshTokenGrant(configuration, refreshToken);
      const own = tokens.claims();
      if (own !== undefined && (own.sub !== known.subject || own.iss !== known.issuer))
        throw new SignInRefused('invalid', 'The renewed claims are for another person.');
      const claims = await this.#claims(
        configuration,
        tokens.access_token,
        own ?? { iss: known.issuer, sub: known.subject },
      );
      return {
        person: personOf(claims, this.options),
        refreshToken: tokens.refresh_token ?? refreshToken,
        idToken: tokens.id_token,
      };
    } catch (error) {
      if (error instanceof this.#oidc.ResponseBodyError && error.error === 'invalid_grant') return undefined;
      throw refusalOf(error);
    }
  }

  /** Returns the address where the browser signs out of the provider; undefined where the provider has none. */
  async logoutUrl(idToken: string, returnTo: string): Promise<string | undefined> {
    const configuration = await this.#configuration();
    if (configuration.serverMetadata().end_session_endpoint === undefined) return undefined;
    return this.#oidc.buildEndSessionUrl(configuration, {
      id_token_hint: idToken,
      post_logout_redirect_uri: returnTo,
    }).href;
  }

  /** Returns the issuer as its discovery document writes it, which is kept for a while. */
  async issuer(): Promise<string> {
    return (await this.#metadata()).issuer;
  }

  /** Returns the keys that the provider signs with now. */
  async keys(): Promise<JsonObject> {
    const { jwks_uri: url } = await this.#metadata();
    if (url === undefined) throw new SignInRefused('unavailable', 'The provider publishes no keys.');
    this.#checkScheme(url);
    try {
      const answer = await this.#http.ask({ url, timeout: 8_000, limit: 512 * 1024 });
      if (answer.status !== 200)
        throw new SignInRefused('unavailable', `The request for the keys failed with ${answer.status}.`);
      return answer.json() as JsonObject;
    } catch (error) {
      throw refusalOf(error, 'unavailable');
    }
  }

  /** Returns a new configuration for each use, because each fetches the keys anew: a provider may change them at any time. */
  async #configuration(): Promise<Configuration> {
    const { clientId, clientSecret, issuer } = this.options;
    const oidc = this.#oidc;
    const metadata = await this.#metadata();
    const methods = metadata.token_endpoint_auth_methods_supported;
    const auth =
      clientSecret === undefined
        ? oidc.None()
        : methods === undefined || methods.includes('client_secret_basic')
          ? oidc.ClientSecretBasic(clientSecret)
          : oidc.ClientSecretPost(clientSecret);
    const made = new oidc.Configuration(metadata, clientId, {}, auth);
    made.timeout = 8;
    made[oidc.customFetch] = boundedFetch(this.#http);
    if (issuer.startsWith('http:')) oidc.allowInsecureRequests(made);
    // Without this the library trusts the connection to the provider alone, and checks no signature.
    oidc.enableNonRepudiationChecks(made);
    return made;
  }

  #metadata(): Promise<ServerMetadata> {
    const now = performance.now();
    if (this.#discovered !== undefined && now - this.#discovered.at < fresh) return this.#discovered.metadata;
    if (now - this.#failedAt < failed)
      return Promise.reject(
        new SignInRefused('unavailable', 'The provider failed to respond a moment ago. Retry later.'),
      );
    const metadata = this.#discover();
    const discovered = { at: now, metadata };
    this.#discovered = discovered;
    metadata.catch(() => {
      this.#failedAt = performance.now();
      if (this.#discovered === discovered) this.#discovered = undefined;
    });
    return metadata;
  }

  async #discover(): Promise<ServerMetadata> {
    const { issuer, clientId } = this.options;
    const oidc = this.#oidc;
    try {
      const found = await oidc.discovery(new URL(issuer), clientId, undefined, undefined, {
        timeout: 8,
        [oidc.customFetch]: boundedFetch(this.#http),
        execute: issuer.startsWith('http:') ? [oidc.allowInsecureRequests] : [],
      });
      const metadata = { ...found.serverMetadata() };
      const algorithmNames = metadata.id_token_signing_alg_values_supported ?? ['RS256'];
      metadata.id_token_signing_alg_values_supported = algorithmNames.filter((name) => algorithms.has(name));
      return metadata;
    } catch (error) {
      throw refusalOf(error, 'unavailable');
    }
  }

  /** Returns the claims of the token, with those of the userinfo endpoint if the token lacks an email or the groups. */
  async #claims(
    configuration: Configuration,
    accessToken: string,
    own: IDToken | { readonly iss: string; readonly sub: string } | undefined,
  ): Promise<JsonObject> {
    if (own === undefined) throw new SignInRefused('invalid', 'The provider returned no id_token.');
    const claims = own as JsonObject;
    const { groupsClaim, rules } = this.options;
    const isEnough = 'email' in claims && (rules.length === 0 || hasGroups(claims, groupsClaim));
    if (isEnough || configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
    const more = await this.#oidc.fetchUserInfo(configuration, accessToken, own.sub);
    return { ...(more as unknown as JsonObject), ...claims };
  }

  #checkScheme(url: string): void {
    if (!url.startsWith('https:') && !this.options.issuer.startsWith('http:'))
      throw new SignInRefused('unavailable', 'The provider publishes its keys without HTTPS.');
  }
}

/** Classifies a failure of a provider. Excludes the causes of the library's errors, because they contain tokens. */
function refusalOf(error: unknown, otherwise: SignInProblem = 'invalid'): SignInRefused {
  if (error instanceof SignInRefused) return error;
  const { name, code, message, error: errorCode } = errorFields(error);
  const detail = [name, code, errorCode, message].filter((part) => part !== '').join(': ');
  if (name === 'AuthorizationResponseError')
    return new SignInRefused(errorCode === 'access_denied' ? 'refused' : 'invalid', detail);
  const isUnreachable =
    message.startsWith('The service at ') || name === 'TimeoutError' || code === 'OAUTH_TIMEOUT';
  const isBroken =
    code === 'OAUTH_RESPONSE_IS_NOT_CONFORM' ||
    code === 'OAUTH_RESPONSE_IS_NOT_JSON' ||
    code === 'OAUTH_PARSE_ERROR';
  return new SignInRefused(isUnreachable || isBroken ? 'unavailable' : otherwise, detail);
}

function errorFields(error: unknown): Record<'name' | 'code' | 'message' | 'error', string> {
  const fields = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>;
  const text = (name: string): string => (typeof fields[name] === 'string' ? fields[name].slice(0, 300) : '');
  const cause = fields['cause'] instanceof Error ? fields['cause'].message.slice(0, 300) : '';
  // The gateway's own error about a connection stands below the library's.
  const message = cause.startsWith('The service at ') ? cause : text('message');
  return { name: text('name'), code: text('code'), message, error: text('error') };
}

/** The state of one sign-in, in the terms of the SDK. */
import { randomBytes } from 'node:crypto';
import type {
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client';

/** The gateway's registration, where the operator has one. Empty: the gateway registers itself. */
export interface Registration {
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  /** Address of a document with the gateway's metadata, whose address is then its id. */
  readonly clientMetadata?: string | undefined;
}

/** Stores the client, tokens and verifier that the SDK obtains. */
export class SignInProvider implements OAuthClientProvider {
  readonly redirectUrl: string;
  readonly #state = randomBytes(24).toString('base64url');
  readonly #show: (url: URL) => void;
  #client: StoredOAuthClientInformation | undefined;
  #tokens: StoredOAuthTokens | undefined;
  #verifier = '';
  #discovered: OAuthDiscoveryState | undefined;
  readonly clientMetadataUrl?: string;

  /** `show` receives the address at which a person signs in. */
  constructor(redirectUrl: string, registration: Registration, show: (url: URL) => void) {
    const { clientId, clientSecret, clientMetadata } = registration;
    this.redirectUrl = redirectUrl;
    this.#show = show;
    if (clientId !== undefined)
      this.#client = {
        client_id: clientId,
        ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
      };
    if (clientMetadata !== undefined) this.clientMetadataUrl = clientMetadata;
  }

  get clientMetadata(): OAuthClientProvider['clientMetadata'] {
    return {
      client_name: 'Sluice',
      redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    };
  }

  state(): string {
    return this.#state;
  }

  clientInformation(): StoredOAuthClientInformation | undefined {
    return this.#client;
  }

  saveClientInformation(client: StoredOAuthClientInformation): void {
    this.#client = client;
  }

  tokens(): StoredOAuthTokens | undefined {
    return this.#tokens;
  }

  saveTokens(tokens: StoredOAuthTokens): void {
    this.#tokens = tokens;
  }

  redirectToAuthorization(url: URL): void {
    this.#show(url);
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovered = state;
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#discovered;
  }

  /** Drops the tokens without a retry, because the person would have to sign in twice. */
  invalidateCredentials(): void {
    this.#tokens = undefined;
  }
}

import { callKey } from './call-key.ts';
import { GatewayError } from './errors.ts';

/** What a request shows to its provider. */
export type Credential =
  /** A key, shown where the provider wants its keys. */
  | { readonly kind: 'key'; readonly value: string }
  /** A token, shown as `authorization: Bearer` wherever the provider wants its keys. */
  | { readonly kind: 'token'; readonly value: string };

/**
 * The client's own credential for a provider. It is hidden in JSON and where objects are printed.
 *
 * @example
 * call.set(clientCredential, new ClientCredential({ kind: 'key', value: key }));
 */
export class ClientCredential {
  readonly #credential: Credential;

  constructor(credential: Credential) {
    this.#credential = credential;
  }

  get credential(): Credential {
    return this.#credential;
  }
}

/**
 * Holds the client's own credential for a provider, beside its key of this gateway. Set by the plugin that identifies; channels with
 * `credentials: 'client'` send it.
 *
 * @example
 * call.set(clientCredential, new ClientCredential({ kind: 'token', value: token }));
 */
export const clientCredential = callKey<ClientCredential>('client credential');

/** 401 for a call without a credential of its own, of a model that is served with nothing else. */
export function missingCredential(model: string): GatewayError {
  return new GatewayError(
    'missing_api_key',
    `The model "${model}" is served with your own credential of its provider. Send it as you would send it there, and your API key of this gateway in an x-sluice-key header.`,
    { param: 'model' },
  );
}

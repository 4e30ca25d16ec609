/** Keeps a client's own credential for a provider with the call, out of reach of plugins, and makes the error for a missing one. */
import type * as author from './author/call.ts';
import { callKey } from './call-key.ts';
import type { Call } from './call.ts';
import { GatewayError } from './errors.ts';

/**
 * A credential of a client for a provider.
 *
 * @example
 * const own: ClientCredential = { kind: 'token', value: token };
 */
export interface ClientCredential {
  /** A key is sent in the header that the provider uses for keys. A token is sent as `authorization: Bearer`. */
  readonly kind: 'key' | 'token';
  readonly value: string;
}

/** Hides the credential in JSON and where objects are printed. */
class HiddenCredential {
  readonly #credential: ClientCredential;

  constructor(credential: ClientCredential) {
    this.#credential = credential;
  }

  get credential(): ClientCredential {
    return this.#credential;
  }
}

/** Is not exported, because plugins and channels must not read the credential: only channels with `credentials: 'client'` send it. */
const key = callKey<HiddenCredential>('client credential');

/**
 * Sets the client's own credential for a provider, beside its key of this gateway. A plugin of the stage `identify` calls it; channels with
 * `credentials: 'client'` send the credential. Plugins and other channels cannot read it.
 *
 * @example
 * setClientCredential(call, { kind: 'token', value: token });
 */
export function setClientCredential(call: author.Call, credential: ClientCredential): void {
  call.set(key, new HiddenCredential(credential));
}

/** Returns the client's own credential for a provider; undefined where it brought none. */
export function clientCredentialOf(call: Pick<Call, 'get'>): ClientCredential | undefined {
  return call.get(key)?.credential;
}

/** Returns the 401 error for a call without a credential of its own, for a model that only such credentials can use. */
export function missingCredential(model: string): GatewayError {
  return new GatewayError(
    'missing_api_key',
    `The model "${model}" requires your own credential for its provider. Send it in the provider's header, and your API key of this gateway in the header x-sluice-key.`,
    { param: 'model' },
  );
}

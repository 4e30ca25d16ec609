import type { Log } from '../../sdk/author/tools.ts';
import { GatewayError } from '../../sdk/errors.ts';

/** Milliseconds between two tries that fail, as long as what is kept is still good. */
const pause = 10_000;

/**
 * Error of credentials that cannot be had now. The message is for the operator: what failed, why, and what to set; never a secret. It
 * stands in the log, and clients see a plain 502 or 503.
 *
 * @example
 * throw new CredentialsError('The role cannot be assumed: access denied. Check "roleArn".', { role });
 */
export class CredentialsError extends Error {
  /** What the log says besides the message. */
  readonly fields: object;

  constructor(message: string, fields: object = {}) {
    super(message);
    this.fields = fields;
  }
}

/**
 * Options of {@link RenewedCredentials}.
 *
 * @example
 * const how: Renewing<Session> = { ask: () => signIn(options), expires: ({ end }) => end, ahead: () => 60_000, log };
 */
export interface Renewing<Value> {
  /** Requests new credentials. Rejects with an error for the operator, see {@link CredentialsError}. */
  ask(): Promise<Value>;
  /** Returns the time at which the credentials expire, in milliseconds since 1970; Infinity where they do not. */
  expires(value: Value): number;
  /** Returns how many milliseconds before they expire the next ones are requested. */
  ahead(value: Value): number;
  readonly log: Pick<Log, 'error'>;
  readonly now?: () => number;
}

/**
 * One set of credentials for all calls of a channel. The next one is asked for ahead of the end, while the old one is still used; calls
 * wait only where there is none that is good. However many wait, one asks.
 *
 * @example
 * const credentials = new RenewedCredentials({
 *   ask: () => assumeRole(options),
 *   expires: ({ expiration }) => expiration.getTime(),
 *   ahead: () => 5 * 60_000,
 *   log,
 * });
 * const { accessKeyId } = await credentials.get();
 */
export class RenewedCredentials<Value> {
  readonly #how: Renewing<Value>;
  readonly #now: () => number;
  #value: Value | undefined;
  #asking: Promise<Value> | undefined;
  #notBefore = 0;

  constructor(how: Renewing<Value>) {
    this.#how = how;
    this.#now = how.now ?? Date.now;
  }

  /** At once where there are good ones. Rejects with a GatewayError; what `ask` said stands in the log. */
  get(): Value | Promise<Value> {
    const now = this.#now();
    const value = this.#value;
    const left = value === undefined ? 0 : this.#how.expires(value) - now;
    if (value === undefined || left <= 0) return this.#next();
    if (left < this.#how.ahead(value) && now >= this.#notBefore) this.#next().catch(() => {});
    return value;
  }

  /** The provider did not take them: the next call asks anew. `value`: only where these are still the ones in force. */
  forget(value?: Value): void {
    if (value === undefined || value === this.#value) this.#value = undefined;
  }

  #next(): Promise<Value> {
    this.#asking ??= this.#how
      .ask()
      .then(
        (value) => (this.#value = value),
        (error: unknown) => {
          this.#notBefore = this.#now() + pause;
          const fields = error instanceof CredentialsError ? error.fields : {};
          this.#how.log.error(fields, error instanceof Error ? error.message : String(error));
          throw new GatewayError('upstream_error', 'The channel for this model has no valid credentials.', {
            origin: 'gateway',
            cause: error,
          });
        },
      )
      .finally(() => {
        this.#asking = undefined;
      });
    return this.#asking;
  }
}

/** Renews credentials with a limited lifetime for all calls of a channel: one request at a time, ahead of the expiry. */
import type { Log } from '../../sdk/author/tools.ts';
import { GatewayError } from '../../sdk/errors.ts';

/** Milliseconds between two failed requests, as long as the current credentials are valid. */
const pause = 10_000;

/**
 * Error of a failed request for credentials. The message is for the operator: what failed, why, and what to set; never a secret. It is
 * logged, and clients get a generic 502 or 503.
 *
 * @example
 * throw new CredentialsError('The role cannot be assumed: access denied. Check "roleArn".', { role });
 */
export class CredentialsError extends Error {
  /** Fields of the log line. */
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
 * One set of credentials for all calls of a channel. The next one is requested ahead of the expiry, while the old one is still used. Calls wait
 * only where there is no valid one, and share one request.
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

  /** Returns valid credentials at once, else a promise. Rejects with a GatewayError when `ask` fails, whose error is logged. */
  get(): Value | Promise<Value> {
    const now = this.#now();
    const value = this.#value;
    const left = value === undefined ? 0 : this.#how.expires(value) - now;
    if (value === undefined || left <= 0) return this.#next();
    if (left < this.#how.ahead(value) && now >= this.#notBefore) this.#next().catch(() => {});
    return value;
  }

  /** Drops credentials that the provider refused, so that the next call requests new ones. `value`: only where they are the current ones. */
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

/** Sends a current access token as `authorization: Bearer` with each request, renews it ahead of its expiry, and masks tokens in the log. */
import type { Log } from '../../sdk/author/tools.ts';
import { forgetSecret, hideEndingSecret } from '../../log.ts';
import { RenewedCredentials } from './renewed.ts';

/**
 * An access token with its expiry.
 *
 * @example
 * const token: AccessToken = { token: 'eyJ…', expiresAtMs: Date.now() + 3_600_000, lifetimeMs: 3_600_000 };
 */
export interface AccessToken {
  readonly token: string;
  /** Time at which it expires, in milliseconds since 1970. */
  readonly expiresAtMs: number;
  /** Lifetime from the moment it was issued. Absent where the token may have been issued long before. */
  readonly lifetimeMs?: number;
}

type Headers = Readonly<Record<string, string>>;

interface ShownToken {
  readonly headers: Headers;
  readonly expires: number;
  readonly ahead: number;
}

/**
 * Returns the headers with the current access token: at once where it is valid, else as a promise.
 *
 * @example
 * const headersOf: BearerTokens = bearerTokens(ask, log);
 */
export interface BearerTokens {
  (): Headers | Promise<Headers>;
  /** Called with headers that the provider refused, so that their token is not sent again. */
  forget(headers: Headers): void;
}

/** Maximum number of milliseconds before the expiry of a token at which the next one is requested. */
const longestAhead = 4 * 60_000;

/**
 * Returns a function that returns the header `authorization: Bearer …` with the current token, for `withAuthorization`. `ask` requests a new
 * token. It is called before the first request and ahead of each token's expiry: four minutes, or a quarter of its lifetime where that is less.
 * All calls share one token and one request for the next.
 * The function returns headers at once where there is a valid token, else a promise, which rejects with a GatewayError when `ask` fails;
 * the reason is logged. Tokens are masked in the log.
 *
 * @example
 * const tools = withAuthorization(channelTools, bearerTokens(() => askForToken(options), log));
 */
export function bearerTokens(
  ask: () => Promise<AccessToken>,
  log: Pick<Log, 'error'>,
  now?: () => number,
): BearerTokens {
  const hidden = new HiddenTokens();
  const tokens = new RenewedCredentials({
    ask: async (): Promise<ShownToken> => {
      const { token, expiresAtMs, lifetimeMs = Infinity } = await ask();
      const ahead = Math.min(longestAhead, lifetimeMs / 4);
      hidden.add(token);
      return { headers: { authorization: `Bearer ${token}` }, expires: expiresAtMs, ahead };
    },
    expires: ({ expires }) => expires,
    ahead: (token) => token.ahead,
    log,
    ...(now === undefined ? {} : { now }),
  });
  let latest: ShownToken | undefined;
  const shown = (token: ShownToken): Headers => {
    latest = token;
    return token.headers;
  };
  const headersOf = (): Headers | Promise<Headers> => {
    const token = tokens.get();
    return token instanceof Promise ? token.then(shown) : shown(token);
  };
  return Object.assign(headersOf, {
    forget(headers: Headers) {
      if (latest?.headers.authorization === headers.authorization) tokens.forget(latest);
    },
  });
}

/** Tokens that are masked in the log: the latest, and earlier ones that running calls may still log. */
class HiddenTokens {
  readonly #tokens: string[] = [];

  add(token: string): void {
    if (this.#tokens.includes(token)) return;
    hideEndingSecret(token);
    this.#tokens.push(token);
    if (this.#tokens.length > mostHidden) forgetSecret(this.#tokens.shift() ?? '');
  }
}

const mostHidden = 3;

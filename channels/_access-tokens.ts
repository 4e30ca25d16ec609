import { GatewayError, type Log } from 'sluice';
import type { ChannelTools } from 'sluice/internal';

/** A token that a cloud gives out for a while. */
export interface AccessToken {
  readonly token: string;
  /** Milliseconds since 1970. */
  readonly expires: number;
}

/** Milliseconds before the end of a token from which on the next one is asked for, and between two tries that fail. */
const ahead = 4 * 60_000;
const pause = 10_000;

/**
 * One token for all calls of a channel. The next one is asked for ahead of the end, while the old one is still shown; calls wait only
 * where there is none that is good. However many wait, one asks.
 */
export class AccessTokens {
  readonly #ask: () => Promise<AccessToken>;
  readonly #log: Pick<Log, 'error'>;
  readonly #now: () => number;
  #token: AccessToken | undefined;
  #asking: Promise<AccessToken> | undefined;
  #notBefore = 0;

  /** `ask` rejects with a sentence for the operator: which identity failed, why, and what to set; never with a secret. */
  constructor(ask: () => Promise<AccessToken>, log: Pick<Log, 'error'>, now: () => number = Date.now) {
    this.#ask = ask;
    this.#log = log;
    this.#now = now;
  }

  /** The token, at once where there is a good one. Rejects with a GatewayError; what `ask` said stands in the log. */
  get(): string | Promise<string> {
    const now = this.#now();
    const token = this.#token;
    if (token === undefined || token.expires <= now) return this.#next().then((next) => next.token);
    if (token.expires - now < ahead && now >= this.#notBefore) this.#next().catch(() => {});
    return token.token;
  }

  #next(): Promise<AccessToken> {
    this.#asking ??= this.#ask()
      .then(
        (token) => (this.#token = token),
        (error: unknown) => {
          this.#notBefore = this.#now() + pause;
          this.#log.error({}, error instanceof Error ? error.message : String(error));
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

/** The tools of a channel whose requests show a token of `tokens` as `Authorization: Bearer`. */
export function withTokens(tools: ChannelTools, tokens: AccessTokens): ChannelTools {
  const { http, sockets } = tools;
  const shown = <R extends { readonly headers: Readonly<Record<string, string>> }>(
    request: R,
    token: string,
  ): R => ({ ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } });
  return {
    ...tools,
    http: {
      ...http,
      send(call, request) {
        const token = tokens.get();
        if (typeof token === 'string') return http.send(call, shown(request, token));
        return token.then((later) => http.send(call, shown(request, later)));
      },
      read: async (request) => http.read(shown(request, await tokens.get())),
    },
    sockets: {
      ...sockets,
      connect: async (call, request) => sockets.connect(call, shown(request, await tokens.get())),
    },
  };
}

import type { Log } from 'sluice';
import { Renewed } from './_renewed.ts';

/** A token that a cloud gives out for a while. */
export interface AccessToken {
  readonly token: string;
  /** Milliseconds since 1970. */
  readonly expires: number;
}

/** Milliseconds before the end of a token from which on the next one is asked for. */
const ahead = 4 * 60_000;

/** The header that shows a token: what `authorized` puts on every request. The token is that of all calls, see {@link Renewed}. */
export function bearerTokens(
  ask: () => Promise<AccessToken>,
  log: Pick<Log, 'error'>,
  now?: () => number,
): () => Headers | Promise<Headers> {
  const tokens = new Renewed({
    ask,
    expires: ({ expires }: AccessToken) => expires,
    ahead,
    log,
    ...(now === undefined ? {} : { now }),
  });
  const shown = ({ token }: AccessToken): Headers => ({ authorization: `Bearer ${token}` });
  return () => {
    const token = tokens.get();
    return token instanceof Promise ? token.then(shown) : shown(token);
  };
}

type Headers = Readonly<Record<string, string>>;

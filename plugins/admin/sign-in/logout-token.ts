/** Checks the token by which a provider ends sessions: OpenID Connect Back-Channel Logout 1.0. */
import { hash } from 'node:crypto';
import type { JSONWebKeySet } from 'jose';
import { requirePackage, type Stores } from 'sluice';
import { SignInRefused } from './problems.ts';
import { algorithms, type Provider } from './provider.ts';

/** Name of the event in a logout token (section 2.4). */
const event = 'http://schemas.openid.net/event/backchannel-logout';

/** Milliseconds for which a token counts as used, and its maximum age in seconds. */
const remembered = 600_000;
const oldest = 300;

/** Sessions that end: all sessions of a person, or one session at the provider. */
export interface LoggedOut {
  readonly issuer: string;
  readonly subject: string | undefined;
  readonly session: string | undefined;
}

/** Loads the package that checks signatures. Throws with what to install where it is missing. */
async function loadJose() {
  requirePackage('jose', '6', 'check logout tokens', import.meta.url);
  return import('jose');
}

/** Returns whom a logout token is about. Throws {@link SignInRefused} for one that is not right, too old or used before. */
export async function checkLogoutToken(
  token: string,
  provider: Provider,
  stores: Pick<Stores, 'add'>,
): Promise<LoggedOut> {
  const jose = await loadJose();
  const audience = provider.options.clientId;
  // Read before it is verified, so that no keys are requested for tokens of other audiences.
  const claims = await orRefused(() => jose.decodeJwt(token));
  if (![claims.aud].flat().includes(audience))
    throw new SignInRefused('invalid', 'The token is for another client.');
  const issuer = await provider.issuer();
  if (claims.iss !== issuer) throw new SignInRefused('invalid', 'The token is of another issuer.');
  const keys = await provider.keys();
  const { payload } = await orRefused(() =>
    jose.jwtVerify(token, jose.createLocalJWKSet(keys as unknown as JSONWebKeySet), {
      issuer,
      audience,
      algorithms: [...algorithms],
      maxTokenAge: oldest,
      clockTolerance: 30,
    }),
  );
  const { sub, sid, jti, events, nonce } = payload as Record<string, unknown>;
  const isAbout = typeof events === 'object' && events !== null && event in events;
  if (!isAbout || nonce !== undefined || typeof jti !== 'string')
    throw new SignInRefused('invalid', 'The token is not a logout token.');
  const subject = typeof sub === 'string' ? sub : undefined;
  const session = typeof sid === 'string' ? sid : undefined;
  if (subject === undefined && session === undefined)
    throw new SignInRefused('invalid', 'The token names neither a person nor a session.');
  if (!(await stores.add('sign-in-used', hash('sha256', `${issuer} ${jti}`), 1, remembered)))
    throw new SignInRefused('expired', 'The token was used before.');
  return { issuer, subject, session };
}

/** Waits for the library. What it throws is about the token, or about the keys that the provider has sent. */
async function orRefused<Result>(read: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    throw new SignInRefused('invalid', error instanceof Error ? error.message : 'no JWT');
  }
}

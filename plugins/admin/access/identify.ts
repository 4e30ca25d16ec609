/** Finds out who sends a request to the admin API. */
import { GatewayError, type RouteContext } from 'sluice';
import { sessionToken, setSessionCookie } from '../http.ts';
import type { Session, Sessions } from '../sessions.ts';
import type { Actor } from './actor.ts';
import type { TokenActorOf } from './by-token.ts';

/** The sender of a request. */
export interface Identified {
  readonly actor: Actor;
  /** Present for a request with a session cookie, which must prove its intent by the CSRF token. Absent for one with a token. */
  readonly session?: Session;
}

/** Identifies the sender of a request. `https`: as the client sees it. Throws 401 when nobody is known. */
export type ActorOf = (ctx: RouteContext, https: boolean) => Promise<Identified>;

/** Returns the function that identifies senders. Every way to prove who asks is listed here. A token counts before a cookie. */
export function createActorOf(sessions: Sessions, byToken: TokenActorOf): ActorOf {
  return async (ctx, https) => {
    const actor = await byToken(ctx);
    return actor === undefined ? bySession(sessions, ctx, https) : { actor };
  };
}

async function bySession(sessions: Sessions, ctx: RouteContext, https: boolean): Promise<Identified> {
  const token = sessionToken(ctx);
  const found = token === undefined ? undefined : await sessions.find(token);
  if (found === undefined) {
    if (token !== undefined) setSessionCookie(ctx, undefined, https);
    return notLoggedIn();
  }
  if (found.renewed) setSessionCookie(ctx, token, https, found.session.expiresAt);
  return { actor: found.actor, session: found.session };
}

/** Throws 401. */
export function notLoggedIn(): never {
  throw new GatewayError('login_required', 'You are not logged in, or your session has expired.', {
    headers: { 'www-authenticate': 'Session' },
  });
}

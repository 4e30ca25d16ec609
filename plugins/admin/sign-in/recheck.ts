/** Queries providers again about the people in running sessions, so that removed groups take effect. */
import type { Log } from 'sluice';
import type { Audit } from '../audit.ts';
import { userActor } from '../access/actor.ts';
import type { Sessions } from '../sessions.ts';
import { noteAccess } from './audit.ts';
import type { HeldSession, HeldSessions } from './held.ts';
import { renewedUser, type PeopleTools, type SignedIn } from './people.ts';
import { SignInRefused } from './problems.ts';
import type { Provider } from './provider.ts';

/** Parts that the look at running sessions needs. */
export interface RecheckParts {
  readonly providers: ReadonlyMap<string, Provider>;
  readonly held: HeldSessions;
  readonly sessions: Sessions;
  readonly people: PeopleTools;
  readonly audit: Audit;
  readonly log: Log;
}

/** Interval in milliseconds at which due sessions are looked for. */
const longestPause = 60_000;

/** Starts checking the sessions at an interval. Returns the function that stops it. */
export function startRechecking(parts: RecheckParts): () => Promise<void> {
  let shortest = Infinity;
  for (const provider of parts.providers.values()) shortest = Math.min(shortest, checkAfter(provider));
  const pause = Math.min(longestPause, Math.max(200, shortest / 2));
  let running: Promise<void> = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const next = (): void => {
    if (isStopped) return;
    timer = setTimeout(() => {
      running = recheckDue(parts)
        .catch((error: unknown) => {
          parts.log.error({ error }, 'sessions of sign-in providers could not be checked');
        })
        .then(next);
    }, pause);
    timer.unref();
  };
  next();
  return async () => {
    isStopped = true;
    clearTimeout(timer);
    await running;
  };
}

/** Returns the milliseconds after which a session is checked at its provider again. */
export function checkAfter({ options }: Provider): number {
  return options.recheckMinutes * 60_000;
}

/** Checks the sessions that are due sequentially, and removes those that have ended. */
export async function recheckDue(parts: RecheckParts): Promise<void> {
  const all = await parts.held.all();
  if (all.size === 0) return;
  const alive = await parts.sessions.running();
  const down = new Set<string>();
  const now = Date.now();
  for (const [session, held] of all) {
    // oxlint-disable no-await-in-loop -- one at a time, so that a provider is not flooded
    if (!alive.has(session)) await parts.held.drop(session);
    else if (held.checkAt !== undefined && held.checkAt <= now && !down.has(held.provider)) {
      const provider = parts.providers.get(held.provider);
      if (provider === undefined) await endSession(parts, session);
      else if (await parts.held.claim(session, checkAfter(provider)))
        if (!(await recheck(parts, provider, session, held))) down.add(held.provider);
    }
    // oxlint-enable no-await-in-loop
  }
}

/** Checks one session at its provider. Returns false when the provider is unavailable. */
async function recheck(
  parts: RecheckParts,
  provider: Provider,
  session: string,
  held: HeldSession,
): Promise<boolean> {
  const { refreshToken } = parts.held.tokens(session, held);
  const fields = { provider: held.provider, user: held.user };
  try {
    const proved = refreshToken === undefined ? undefined : await provider.renew(refreshToken, held);
    if (proved === undefined) {
      parts.log.info(fields, 'a session ends because the provider has withdrawn its token');
      await endSession(parts, session);
      return true;
    }
    await parts.held.renew(session, proved);
    const note = (one: SignedIn): Promise<void> =>
      noteAccess(parts.audit, { actor: userActor(one.user), ip: '' }, one);
    const renewed = await renewedUser(held.user, proved.person, provider.options, parts.people, note);
    if (renewed === undefined) {
      parts.log.info(fields, 'a session ends because no rule matches the person any more');
      await endSession(parts, session);
    } else await note(renewed);
    return true;
  } catch (error) {
    if (!(error instanceof SignInRefused)) throw error;
    parts.log.warn(
      { ...fields, problem: error.problem, reason: error.message },
      'a session could not be renewed',
    );
    if (error.problem === 'unavailable') return false;
    // The provider lies, or the person may not go on: both end the session.
    await endSession(parts, session);
    return true;
  }
}

async function endSession({ held, sessions }: RecheckParts, session: string): Promise<void> {
  await sessions.endById(session);
  await held.drop(session);
}

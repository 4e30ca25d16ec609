/** Signing in to the admin API and the page at providers of identities. */
import { GatewayError, type RouteContext, type Services } from 'sluice';
import { readBytes, type InternalTools } from 'sluice/internal';
import type { Users } from '../core-types.ts';
import { networkOf } from '../../_failures.ts';
import { userActor } from '../access/actor.ts';
import type { Audit } from '../audit.ts';
import { createOutside, secure, setSessionCookie } from '../http.ts';
import type { Sessions } from '../sessions.ts';
import { noteAccess } from './audit.ts';
import { Flows, pathOfPage } from './flow.ts';
import { HeldSessions } from './held.ts';
import { loadOidc } from './library.ts';
import { checkLogoutToken } from './logout-token.ts';
import type { SignInOptions } from './options.ts';
import { userOf } from './people.ts';
import { SignInRefused } from './problems.ts';
import { Provider } from './provider.ts';
import { checkAfter, startRechecking } from './recheck.ts';

/** Sign-ins that may end within a minute, and logout tokens that may be wrong: from one address, and from all. Each asks the provider. */
const perMinute = { address: 60, all: 1_200 };

/** The most bytes of a logout token's form. */
const longestForm = 32 * 1024;

/** Parts of the admin plugin that signing in needs. */
export interface SignInParts {
  readonly options: SignInOptions;
  readonly sessions: Sessions;
  readonly audit: Audit;
  readonly users: Users;
}

/** Signing in at providers of identities. */
export interface SignIn {
  /** The providers, as the login page shows them. */
  readonly providers: readonly { readonly id: string; readonly label: string }[];
  /** Forgets a session that has ended, and returns the address where the browser signs out of the provider. */
  leave(session: string): Promise<string | undefined>;
}

/** Adds the routes of signing in. Without providers there are none, and no package is needed. */
export async function openSignIn(parts: SignInParts, tools: InternalTools): Promise<SignIn> {
  const { providers: listed, publicUrl } = parts.options;
  if (listed.length === 0 || publicUrl === undefined)
    return { providers: [], leave: () => Promise.resolve(undefined) };
  const oidc = await loadOidc();
  const http: Services = tools.http;
  const providers = new Map(listed.map((one) => [one.id, new Provider(one, publicUrl, oidc, http)]));
  const sealer = await tools.openSealer();
  const held = new HeldSessions(tools.stores, sealer, tools.settings.members.lifetime);
  const people = { users: parts.users, owners: tools.apiKeys.owners, log: tools.log };
  const around: Around = { ...parts, tools, providers, held, people, flows: new Flows(sealer, tools.stores) };
  addRoutes(around);
  tools.onClose(
    startRechecking({
      providers,
      held,
      people,
      sessions: parts.sessions,
      audit: parts.audit,
      log: tools.log,
    }),
  );
  return {
    providers: listed.map(({ id, label }) => ({ id, label })),
    async leave(session) {
      const dropped = await held.drop(session);
      const provider = providers.get(dropped?.held.provider ?? '');
      if (provider === undefined || dropped?.tokens.idToken === undefined) return undefined;
      try {
        return await provider.logoutUrl(dropped.tokens.idToken, `${publicUrl}/dashboard/`);
      } catch (error) {
        tools.log.warn(
          { provider: provider.options.id, reason: reasonOf(error) },
          'the provider cannot sign out',
        );
        return undefined;
      }
    },
  };
}

interface Around extends SignInParts {
  readonly tools: InternalTools;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly flows: Flows;
  readonly held: HeldSessions;
  readonly people: Parameters<typeof userOf>[2];
}

function addRoutes(around: Around): void {
  const { tools, providers } = around;
  const { route, log, settings, clientAddress } = tools;
  const outside = createOutside(settings.trustedProxies);

  /** Answers at a provider's route. A sign-in that is refused leads back to the login page, with a code that it explains. */
  const add = (path: string, handle: (ctx: RouteContext, provider: Provider) => Promise<string>): void =>
    route('GET', `/api/admin/sign-in/:provider${path}`, async (ctx) => {
      secure(ctx);
      const provider = providers.get(ctx.params['provider'] ?? '');
      if (provider === undefined) throw new GatewayError('not_found', 'Unknown sign-in provider.');
      try {
        ctx.redirect(await handle(ctx, provider));
      } catch (error) {
        const problem = error instanceof SignInRefused ? error.problem : 'failed';
        const fields = { provider: provider.options.id, problem, ip: clientAddress(ctx.req).ip };
        if (problem === 'failed') log.error({ ...fields, error }, 'a sign-in failed');
        else log.warn({ ...fields, reason: reasonOf(error) }, 'a sign-in was refused');
        ctx.redirect(`/dashboard/?problem=${problem}`);
      }
    });

  add('', async (ctx, provider) => {
    const returnTo = pathOfPage(new URLSearchParams(ctx.querystring).get('returnTo') ?? undefined);
    const { url, secrets } = await provider.begin();
    around.flows.keep(ctx, provider.options.id, { ...secrets, returnTo }, outside(ctx.req).https);
    return url.href;
  });
  add('/callback', (ctx, provider) =>
    finish(around, ctx, provider, { ip: clientAddress(ctx.req).ip, https: outside(ctx.req).https }),
  );
  route('POST', '/api/admin/sign-in/:provider/logout', (ctx) =>
    logOutByProvider(around, ctx, clientAddress(ctx.req).ip),
  );
}

/** Ends a sign-in: the person is the user of now on, in a session. */
async function finish(
  { tools, flows, people, sessions, audit, users, held }: Around,
  ctx: RouteContext,
  provider: Provider,
  { ip, https }: { readonly ip: string; readonly https: boolean },
): Promise<string> {
  await checkRate(tools, 'sign-in', ip);
  const { id } = provider.options;
  const query = new URLSearchParams(ctx.querystring);
  const flow = await flows.take(ctx, id, query.get('state') ?? '', https);
  const proved = await provider.finish(`?${ctx.querystring}`, flow);
  const signedIn = await userOf(proved.person, provider.options, people, (lost) =>
    noteAccess(audit, { actor: userActor(lost.user), ip }, lost),
  );
  const { user } = signedIn;
  const { token, session } = await sessions.start(user);
  await held.keep(session.id, user.id, id, proved, checkAfter(provider));
  const author = { actor: userActor(user), ip, session };
  await noteAccess(audit, author, signedIn);
  await audit.note(author, { action: 'login', target: id });
  await users.signedIn(user.id);
  setSessionCookie(ctx, token, https, session.expiresAt);
  return flow.returnTo;
}

/** Throws for one too many within a minute. Returns the function that takes this one back. */
async function checkRate({ rates }: InternalTools, what: string, ip: string): Promise<() => void> {
  const rules = [
    { subject: `${what}:${networkOf(ip)}`, limit: perMinute.address, cost: 1 },
    { subject: what, limit: perMinute.all, cost: 1 },
  ];
  const verdict = await rates.take(rules);
  if (!verdict.allowed) throw new SignInRefused('unavailable', 'There are too many of these.');
  return () => {
    for (const { subject } of rules) verdict.grant?.correct(subject, -1);
  };
}

/** Ends the sessions that a provider names. */
async function logOutByProvider(around: Around, ctx: RouteContext, ip: string): Promise<void> {
  secure(ctx);
  const { tools, providers, held, sessions } = around;
  const provider = providers.get(ctx.params['provider'] ?? '');
  if (provider === undefined) throw new GatewayError('not_found', 'Unknown sign-in provider.');
  try {
    const takeBack = await checkRate(tools, 'sign-out', ip);
    const form = new URLSearchParams((await readBytes(ctx.req, longestForm)).toString());
    const out = await checkLogoutToken(form.get('logout_token') ?? '', provider, tools.stores);
    // A provider may end many sessions at once.
    takeBack();
    let count = 0;
    for (const [id, one] of await held.all()) {
      const isMeant =
        one.issuer === out.issuer &&
        (out.subject === undefined || one.subject === out.subject) &&
        (out.session === undefined || one.providerSession === out.session);
      if (!isMeant) continue;
      // oxlint-disable-next-line no-await-in-loop -- a person has few sessions
      await Promise.all([sessions.endById(id), held.drop(id)]);
      count += 1;
    }
    tools.log.info({ provider: provider.options.id, sessions: count }, 'a provider has ended sessions');
    ctx.status = 200;
    ctx.body = '';
  } catch (error) {
    if (!(error instanceof SignInRefused) && !(error instanceof GatewayError)) throw error;
    tools.log.warn({ provider: provider.options.id, reason: reasonOf(error) }, 'a logout token was refused');
    ctx.status = 400;
    ctx.body = { error: 'invalid_request' };
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Provisioning of users and groups by SCIM 2.0 (RFC 7643 and RFC 7644) under `/scim/v2`. */
import { hash, timingSafeEqual } from 'node:crypto';
import type { JsonObject, RouteContext } from 'sluice';
import { type InternalTools } from 'sluice/internal';
import type { Users } from '../core-types.ts';
import type { Actor } from '../access/actor.ts';
import type { TokenActorOf } from '../access/by-token.ts';
import { checkAccess } from '../access/judge.ts';
import type { Audit } from '../audit.ts';
import { createOutside, secure } from '../http.ts';
import { Directory } from './directory.ts';
import { resourceTypes, schemas, serviceProviderConfig } from './discovery.ts';
import { ScimError } from './errors.ts';
import { bodyOf, refuse, send, type Add } from './exchange.ts';
import { listQuery, listResponse, wantedIn } from './list.ts';
import { ScimLock } from './lock.ts';
import { directoryActor, noteFor } from './note.ts';
import type { ScimOptions } from './options.ts';
import { addResources } from './resources.ts';

/** Parts of the admin plugin that SCIM needs. */
export interface ScimParts {
  readonly options: ScimOptions;
  readonly users: Users;
  readonly audit: Audit;
  /** Finds whose token of the admin API a request has. */
  readonly byToken: TokenActorOf;
  /** Address under which clients reach the gateway; absent: the one that the request names. */
  readonly publicUrl: string | undefined;
}

/** Adds the routes of SCIM. */
export function addScim(
  { options, users, audit, byToken, publicUrl }: ScimParts,
  tools: InternalTools,
): void {
  const { stores, log, settings, clientAddress } = tools;
  const outside = createOutside(settings.trustedProxies);
  const isToken = tokenCheck(options.token);

  const add: Add = (method, path, handler) =>
    tools.route(method, `/scim/v2${path}`, async (ctx) => {
      secure(ctx);
      try {
        const actor = isToken(ctx.get('authorization')) ? directoryActor : await actorByToken(byToken, ctx);
        const { https, host = 'localhost' } = outside(ctx.req);
        const origin = publicUrl ?? `${https ? 'https' : 'http'}://${host}`;
        const answer = await handler({
          ctx,
          id: ctx.params['id'] ?? '',
          query: new URLSearchParams(ctx.querystring),
          base: `${origin}/scim/v2`,
          note: noteFor(audit, actor, clientAddress(ctx.req).ip),
          body: () => bodyOf(ctx),
        });
        send(ctx, answer);
      } catch (error) {
        refuse(ctx, error, log);
      }
    });

  addDiscovery(add);
  addResources(add, {
    directory: new Directory({ stores, users, owners: tools.apiKeys.owners }),
    options,
    lock: new ScimLock(stores),
  });
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const)
    add(method, '{/*rest}', ({ ctx }) => {
      if (/^\/scim\/v2\/(?:Bulk|Me)\b/i.test(ctx.path)) throw new ScimError(501, 'This is not supported.');
      if (/^\/scim\/v2\/(?:ServiceProviderConfig|ResourceTypes|Schemas)$/.test(ctx.path))
        throw new ScimError(405, `${ctx.path} takes GET alone.`);
      throw new ScimError(404, `There is nothing at ${method} ${ctx.path.slice(0, 200)}.`);
    });
}

/** Returns whose token of the admin API a request has. It must let its holder write users and owners of the whole gateway. */
async function actorByToken(byToken: TokenActorOf, ctx: RouteContext): Promise<Actor> {
  const actor = await byToken(ctx);
  if (actor === undefined) throw new ScimError(401, 'The bearer token is missing or wrong.');
  for (const group of ['users', 'owners'] as const)
    checkAccess(actor, { group, act: 'write', who: 'gateway' });
  return actor;
}

/** Compares hashes, so that the time reveals nothing about the token. */
function tokenCheck(token: string | undefined): (authorization: string) => boolean {
  if (token === undefined) return () => false;
  const expected = Buffer.from(hash('sha256', token), 'hex');
  return (authorization) => {
    const given = /^Bearer +(\S{1,1000})$/i.exec(authorization)?.[1];
    return given !== undefined && timingSafeEqual(Buffer.from(hash('sha256', given), 'hex'), expected);
  };
}

function addDiscovery(add: Add): void {
  const itself = (one: JsonObject): JsonObject => one;
  add('GET', '/ServiceProviderConfig', ({ base }) => ({ status: 200, body: serviceProviderConfig(base) }));
  for (const [path, make] of [
    ['/ResourceTypes', resourceTypes],
    ['/Schemas', schemas],
  ] as const) {
    add('GET', path, ({ base, query }) => {
      if (query.has('filter')) throw new ScimError(403, 'This list does not support filters.');
      const all = make(base);
      const listed = { all, resource: itself, fields: itself };
      return { status: 200, body: listResponse(listed, listQuery(new URLSearchParams()), wantedIn(query)) };
    });
    add('GET', `${path}/:id`, ({ base, id }) => {
      const body = make(base).find((one) => one['id'] === id);
      if (body === undefined) throw new ScimError(404, `There is no ${id.slice(0, 100)}.`);
      return { status: 200, body };
    });
  }
}

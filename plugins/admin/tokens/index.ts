/** Admin endpoints for tokens of the admin API. */
import { GatewayError, type JsonObject } from 'sluice';
import { TokenMistake } from 'sluice/internal';
import type { AdminToken, AdminTokens, ApiKeys } from '../core-types.ts';
import type { Actor } from '../access/actor.ts';
import { hasScope, type Scope } from '../access/judge.ts';
import type { Audit } from '../audit.ts';
import { orInvalid } from '../or-invalid.ts';
import type { TokenView } from '../schemas/index.ts';
import type { Handlers } from '../serve.ts';

const day = 86_400_000;

/** Parts that the routes about tokens work with. */
export interface TokenTools {
  readonly tokens: AdminTokens;
  readonly owners: Pick<ApiKeys['owners'], 'find'>;
  /** Default lifetime of a token, in days. */
  readonly defaultDays: number;
}

/** Returns the routes about tokens of the admin API. */
export function tokenHandlers(
  { tokens, owners, defaultDays }: TokenTools,
  audit: Audit,
): Handlers<'listTokens' | 'createToken' | 'revokeToken'> {
  const seen = (actor: Actor, token: AdminToken): boolean =>
    actor.organisation === undefined || actor.organisation === token.organisation;

  return {
    async listTokens({ actor }) {
      const all = await tokens.list();
      return { tokens: all.filter((token) => seen(actor, token)).map(viewOf) };
    },
    async createToken(request) {
      const { actor, body } = request;
      const { name, role, scopes, days = defaultDays } = body;
      const organisation = body.organisation ?? actor.organisation;
      await checkMint(actor, { role, scopes, organisation });
      if (organisation !== undefined && owners.find(organisation)?.kind !== 'organisation')
        throw new GatewayError('invalid_value', `There is no organisation ${organisation}.`, {
          param: 'organisation',
        });
      const createdAt = Date.now();
      const wanted = createdAt + days * day;
      const expiresAt = await lastMoment(actor, wanted, body.days);
      const made = await orInvalid(
        TokenMistake,
        tokens.create({
          name,
          role,
          scopes: [...new Set(scopes)],
          createdBy: { kind: actor.kind, id: actor.id, name: actor.name },
          createdAt,
          expiresAt,
          ...(organisation === undefined ? {} : { organisation }),
        }),
      );
      await audit.note(request, {
        action: 'token-create',
        target: made.token.id,
        after: auditFields(made.token),
      });
      return { token: viewOf(made.token), value: made.value };
    },
    async revokeToken(request) {
      const { actor, id } = request;
      const before = await tokens.byId(id);
      if (before === undefined || !seen(actor, before) || (await tokens.revoke(id)) === undefined)
        throw new GatewayError('not_found', `There is no token ${id.slice(0, 100)}.`);
      await audit.note(request, { action: 'token-revoke', target: id, before: auditFields(before) });
      return { ok: true };
    },
  };

  /** Returns the expiry of a new token. It must not outlive the token that creates it, except for a token of a command with access to the database. */
  async function lastMoment(actor: Actor, wanted: number, given: number | undefined): Promise<number> {
    if (actor.kind !== 'token') return wanted;
    const maker = await tokens.byId(actor.id);
    if (maker?.createdBy.kind === 'command-line') return wanted;
    const end = maker?.expiresAt ?? 0;
    if (given !== undefined && wanted > end)
      throw new GatewayError('invalid_value', 'A token cannot make one that expires after itself.', {
        param: 'days',
      });
    return Math.min(wanted, end);
  }
}

/** Throws 403 where an actor would give a token more than it may itself. */
async function checkMint(
  actor: Actor,
  wanted: Pick<AdminToken, 'role' | 'scopes'> & { readonly organisation: string | undefined },
): Promise<void> {
  const missing =
    actor.scopes === undefined
      ? undefined
      : wanted.scopes.find((one) => !hasScope(actor.scopes ?? [], one as Scope));
  if (missing !== undefined)
    throw new GatewayError(
      'forbidden',
      `This token has no scope ${missing}, and cannot grant it to another token.`,
      {
        param: 'scopes',
      },
    );
  if (actor.role !== 'admin' && wanted.role === 'admin')
    throw new GatewayError('forbidden', 'Only an admin can make a token of an admin.', { param: 'role' });
  if (actor.organisation !== undefined && wanted.organisation !== actor.organisation)
    throw new GatewayError('forbidden', 'You can create tokens only for your own organisation.', {
      param: 'organisation',
    });
}

function viewOf({ scopes, author: _author, ...token }: AdminToken): TokenView {
  return { ...token, scopes: [...scopes], state: token.expiresAt <= Date.now() ? 'expired' : 'valid' };
}

/** Returns the fields of a token that the audit keeps. */
function auditFields({ name, role, scopes, organisation, expiresAt }: AdminToken): JsonObject {
  return {
    name,
    role,
    scopes: [...scopes],
    expiresAt,
    ...(organisation === undefined ? {} : { organisation }),
  };
}

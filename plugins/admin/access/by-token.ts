/** Identifies senders of admin requests by a token of the admin API. */
import { hash } from 'node:crypto';
import { adminTokenPrefix, GatewayError, type RouteContext } from 'sluice';
import { type InternalTools } from 'sluice/internal';
import type { AdminToken, AdminTokens } from '../core-types.ts';
import { countFailures, networkOf } from '../../_failures.ts';
import type { Actor } from './actor.ts';

/** Wrong tokens of one address within a minute. Beyond it, tokens that this process does not know are refused without a look. */
const mostWrong = 20;
const minute = 60_000;

/** Maximum number of tokens that are remembered to have been right. */
const mostKnown = 1_000;

/** Identifies the sender of a request with an `Authorization: Bearer` header. Undefined without one; throws 401 for a wrong one. */
export type TokenActorOf = (ctx: RouteContext) => Promise<Actor | undefined>;

/** Returns the function that identifies senders by their tokens. */
export function createTokenActorOf(
  { clientAddress, rates }: Pick<InternalTools, 'clientAddress' | 'rates'>,
  tokens: Pick<AdminTokens, 'find'>,
): TokenActorOf {
  const failures = countFailures(minute);
  /** Hashes of tokens that were right lately: whoever guesses behind the same address must not lock their owners out. */
  const known = new Set<string>();

  async function countWrong(address: string): Promise<void> {
    const here = failures.count(address);
    const subject = `wrong-admin-tokens:${networkOf(address)}`;
    const { allowed, degraded } = await rates.take([{ subject, limit: mostWrong, cost: 1 }]);
    if (here > mostWrong || (!allowed && degraded !== true)) throw tooMany();
  }

  return async ({ req }) => {
    const value = bearerOf(req.headers.authorization);
    if (value === undefined) return undefined;
    const address = clientAddress(req).ip;
    const digest = hash('sha256', value);
    if (failures.of(address) > mostWrong && !known.has(digest)) throw tooMany();
    const token = value.startsWith(adminTokenPrefix) ? await tokens.find(value) : undefined;
    if (token === undefined || token.expiresAt <= Date.now()) {
      known.delete(digest);
      await countWrong(address);
      throw refusal(value, token);
    }
    if (known.size >= mostKnown) known.clear();
    known.add(digest);
    return tokenActor(token);
  };
}

/** Returns the value that an `Authorization` header of the kind Bearer carries; undefined for other kinds. */
export function bearerOf(header: string | undefined): string | undefined {
  return header === undefined ? undefined : /^\s*bearer\s+(\S*)\s*$/i.exec(header)?.[1];
}

/** Returns the actor that a token is. */
export function tokenActor({ id, name, role, scopes, organisation }: AdminToken): Actor {
  return {
    kind: 'token',
    id,
    name,
    role,
    teams: [],
    scopes,
    ...(organisation === undefined ? {} : { organisation }),
  };
}

function refusal(value: string, token: AdminToken | undefined): GatewayError {
  const headers = { headers: { 'www-authenticate': 'Bearer' } };
  if (token !== undefined) {
    const day = new Date(token.expiresAt).toISOString().slice(0, 10);
    return new GatewayError('expired_api_key', `This token of the admin API expired on ${day}.`, headers);
  }
  const sentence = value.startsWith(adminTokenPrefix)
    ? 'This token of the admin API is not known here: it was revoked, or it belongs to another gateway.'
    : `This is not a token of the admin API. Such tokens begin with ${adminTokenPrefix}; API keys of models cannot be used here.`;
  return new GatewayError('invalid_api_key', sentence, headers);
}

function tooMany(): GatewayError {
  return new GatewayError(
    'rate_limit_exceeded',
    'Too many wrong tokens came from your address. Try again in a minute.',
    {
      retryAfter: 60,
    },
  );
}

/** Parses the claims of a provider about a person. */
import type { JsonObject, JsonValue } from 'sluice';
import { SignInRefused } from './problems.ts';
import type { ProviderOptions } from './options.ts';

/** A person, as a provider describes them. */
export interface Person {
  readonly issuer: string;
  readonly subject: string;
  /** Email in lower case. */
  readonly email: string | undefined;
  readonly isEmailVerified: boolean;
  readonly name: string | undefined;
  readonly groups: ReadonlySet<string>;
  readonly externalId: string | undefined;
  /** Id of the session at the provider. */
  readonly session: string | undefined;
}

/** Maximum number of groups of a person, and of characters of a name. */
const mostGroups = 2_000;
const longest = 500;

/** Returns the person that these claims describe. Throws {@link SignInRefused} where the claims cannot be used. */
export function personOf(claims: JsonObject, options: ProviderOptions): Person {
  const { iss, sub } = claims;
  if (typeof iss !== 'string' || typeof sub !== 'string' || sub === '' || sub.length > longest)
    throw new SignInRefused('invalid', 'The claims have no usable iss and sub.');
  const email = textOf(claims['email'])?.toLowerCase();
  return {
    issuer: iss,
    subject: sub,
    email: email !== undefined && /^[^\s@]+@[^\s@]+$/.test(email) ? email : undefined,
    isEmailVerified: isVerified(claims['email_verified'], options.trustsEmail),
    name: textOf(claims['name']) ?? textOf(claims['preferred_username']),
    groups: groupsOf(claims, options.groupsClaim),
    externalId:
      options.externalIdClaim === undefined ? undefined : textOf(claimAt(claims, options.externalIdClaim)),
    session: textOf(claims['sid']),
  };
}

/** Returns true when claims have the groups, or state that there are too many of them. */
export function hasGroups(claims: JsonObject, name: string): boolean {
  return claimAt(claims, name) !== undefined || isOverage(claims, name);
}

/** Returns true for a verified email: `true` as in the standard, or the text that some providers send. An absent claim counts only if the operator allows it. */
function isVerified(claim: JsonValue | undefined, isTrusted: boolean): boolean {
  return claim === undefined ? isTrusted : claim === true || claim === 'true';
}

function groupsOf(claims: JsonObject, name: string): ReadonlySet<string> {
  if (isOverage(claims, name))
    throw new SignInRefused(
      'group',
      `The provider omitted the claim "${name}" because the person is in too many groups. Configure it to send only groups that are assigned to the application.`,
    );
  const claim = claimAt(claims, name);
  const values = Array.isArray(claim) ? claim : [claim];
  if (values.length > mostGroups)
    throw new SignInRefused('group', `The claim "${name}" has more than ${mostGroups} groups.`);
  return new Set(values.filter((value) => typeof value === 'string' && value.length <= longest) as string[]);
}

/** Returns true for a claim that Entra ID left out because it is too large. It names such claims in `_claim_names`, with an address where to ask. */
function isOverage(claims: JsonObject, name: string): boolean {
  const names = claims['_claim_names'];
  return typeof names === 'object' && names !== null && Object.hasOwn(names, name);
}

/** Returns a claim by its name, or by a dotted path where no claim has that name. */
function claimAt(claims: JsonObject, path: string): JsonValue | undefined {
  if (Object.hasOwn(claims, path)) return claims[path];
  let value: JsonValue | undefined = claims;
  for (const step of path.split('.')) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, step))
      return undefined;
    value = (value as JsonObject)[step];
  }
  return value;
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= longest ? value : undefined;
}

/**
 * Checks the member names of request bodies for spellings that case-insensitive providers would read as another member, and for too many
 * members.
 */
import { GatewayError } from './errors.ts';
import type { JsonObject } from '../model/json.ts';

/**
 * Returns the case-folded form of a name: case-insensitive providers read two names with the same form as one member.
 *
 * @example
 * const isModel = Object.keys(body).some((name) => foldName(name) === 'model');
 */
export function foldName(name: string): string {
  return isFolded.test(name) ? name : name.toUpperCase().toLowerCase();
}

/** Names that fold to themselves, which nearly all names of requests do. */
const isFolded = /^[a-z0-9_]*$/;

/** Returns the error message for an object with more members than the limit. */
export function tooManyMembers(name: string, limit: number): string {
  return `${name} has more than ${limit} fields.`;
}

/** Options of {@link checkRequestMembers}. */
export interface MemberLimits {
  /** The client's path of the object. */
  readonly path: string;
  readonly members: number;
}

/** Throws 400 for a request inside a body that has too many members, or whose names {@link checkMemberNames} refuses. */
export function checkRequestMembers(request: JsonObject, { path, members }: MemberLimits): void {
  if (Object.keys(request).length > members)
    throw new GatewayError('invalid_value', tooManyMembers(path, members), { param: path });
  checkMemberNames(request, path);
}

/**
 * Throws 400 for a body that a case-insensitive provider (such as many in Go) reads differently: another spelling of `model`, and two
 * spellings of one name. The provider must read the values that were checked here. `path`: path of the body in the client's body.
 */
export function checkMemberNames(body: JsonObject, path = ''): void {
  let seen: Map<string, string> | undefined;
  for (const name in body) {
    if (!/[^a-z0-9_]/.test(name)) continue;
    const folded = foldName(name);
    if (folded === name) continue;
    const param = (path === '' ? name : `${path}.${name}`).slice(0, 100);
    if (folded === 'model')
      throw new GatewayError(
        'invalid_value',
        `Unknown field "${param}": some providers read it as "model". Use lower case.`,
        { param },
      );
    const other = seen?.get(folded) ?? (Object.hasOwn(body, folded) ? folded : undefined);
    if (other !== undefined)
      throw new GatewayError(
        'invalid_value',
        `Some providers read the fields "${param}" and "${other.slice(0, 100)}" as one. Send one of them.`,
        { param },
      );
    (seen ??= new Map()).set(folded, name);
  }
}

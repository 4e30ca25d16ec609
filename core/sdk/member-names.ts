import { GatewayError } from './errors.ts';
import type { JsonObject } from '../model/json.ts';

/**
 * Returns a name as those providers read it who do not tell upper from lower case: two names with one folded form are one member to them.
 *
 * @example
 * const isModel = Object.keys(body).some((name) => foldName(name) === 'model');
 */
export function foldName(name: string): string {
  return isFolded.test(name) ? name : name.toUpperCase().toLowerCase();
}

/** Names that fold to themselves, which nearly all names of requests do. */
const isFolded = /^[a-z0-9_]*$/;

/** The sentence for an object with more members than the limit. */
export function tooManyMembers(name: string, limit: number): string {
  return `${name} has more than ${limit} fields.`;
}

/** What {@link checkRequestMembers} keeps to. */
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
 * Throws 400 for a body that means something else to a provider that ignores case in names (many that are written in Go do): another
 * spelling of `model`, and two spellings of one name. What was checked here must be what the provider reads. `path`: where the body stands
 * in that of the client.
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

import { GatewayError } from './errors.ts';
import type { JsonObject } from '../model/json.ts';

/** A name as those providers read it who do not tell upper from lower case: two names that fold to one are one member to them. */
export function foldedName(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/**
 * 400 for a body that says something else to a provider who does not tell upper from lower case in names (many written in Go do not): any
 * other spelling of `model`, and two spellings of one name. What was checked here must be what is understood there.
 */
export function checkMemberNames(body: JsonObject): void {
  let seen: Map<string, string> | undefined;
  for (const name in body) {
    if (!/[^a-z0-9_]/.test(name)) continue;
    const folded = foldedName(name);
    if (folded === name) continue;
    if (folded === 'model')
      throw new GatewayError('invalid_value', `"${name}" is read as the model by some: write model.`, {
        param: name,
      });
    const other = seen?.get(folded) ?? (Object.hasOwn(body, folded) ? folded : undefined);
    if (other !== undefined)
      throw new GatewayError(
        'invalid_value',
        `"${name.slice(0, 100)}" and "${other.slice(0, 100)}" are the same to some: send one of them.`,
        { param: name.slice(0, 100) },
      );
    (seen ??= new Map()).set(folded, name);
  }
}

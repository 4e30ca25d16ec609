/** Reports fields that only another format knows as dropped, for requests and for replies. */
import type { Extra } from '../../model/extra.ts';
import { isObject, type JsonValue } from '../../model/json.ts';
import { aside } from './extra.ts';
import { setOf } from './fields.ts';

/**
 * Reports every member that only another format has as dropped. Formats and keys that begin with `$` record a spelling and are not
 * reported. `path`: path of the part in the client's request; undefined at the top level.
 *
 * @example
 * reportForeign(request.extra, 'acme', undefined, target.drop);
 */
export function reportForeign(
  extra: Extra | undefined,
  format: string,
  path: string | undefined,
  drop: (path: string) => void,
): void {
  if (extra === undefined) return;
  for (const [from, fields] of Object.entries(extra)) {
    if (from === format || from.startsWith('$')) continue;
    for (const field of Object.keys(fields)) {
      if (field === aside && isObject(fields[field]))
        for (const name of Object.keys(fields[field])) drop(placed(path, name));
      else if (!field.startsWith('$')) drop(placed(path, field));
    }
  }
}

/** Under these names a piece of a reply keeps the fields of several levels: those of a chunk, of one answer in it, and of its delta. */
const levels = setOf('chunk choice delta $choice');
/** Name of a random text that a provider adds to hide the length of a chunk. Never reported as dropped. */
export const noise = 'obfuscation';

/** Does the same as {@link reportForeign} for a part of a response: reports each field of all levels by its own name, unless it is empty. */
export function dropForeignReply(
  extra: Extra | undefined,
  format: string,
  drop: (path: string) => void,
): void {
  if (extra === undefined) return;
  for (const [from, fields] of Object.entries(extra)) {
    if (from === format || from.startsWith('$')) continue;
    for (const [name, value] of Object.entries(fields)) {
      if (!levels.has(name) || !isObject(value))
        reportForeign({ [from]: { [name]: value } }, format, undefined, drop);
      else for (const inner in value) if (inner !== noise && says(value[inner])) drop(inner);
    }
  }
}

function says(value: JsonValue | undefined): boolean {
  if (value === null || value === undefined || value === '') return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

function placed(path: string | undefined, field: string): string {
  return path === undefined || path === '' ? field : `${path}.${field}`;
}

import type { Extra } from '../../model/extra.ts';
import { isObject } from '../../model/json.ts';
import { aside } from './extra.ts';

/**
 * Reports every field that only another format knows as lost. Formats and keys that begin with `$` say how something was spelled and are no loss.
 * `path` is the piece's place in the client's words; empty at the top level.
 */
export function loseForeign(
  extra: Extra | undefined,
  format: string,
  path: string | undefined,
  lose: (path: string) => void,
): void {
  if (extra === undefined) return;
  for (const [from, fields] of Object.entries(extra)) {
    if (from === format || from.startsWith('$')) continue;
    for (const field of Object.keys(fields)) {
      if (field === aside && isObject(fields[field]))
        for (const name of Object.keys(fields[field])) lose(placed(path, name));
      else if (!field.startsWith('$')) lose(placed(path, field));
    }
  }
}

function placed(path: string | undefined, field: string): string {
  return path === undefined || path === '' ? field : `${path}.${field}`;
}

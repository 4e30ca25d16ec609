import { randomUUID } from 'node:crypto';

/** Returns the provider's id of a completion with the prefix of a format; a new id if there is none. */
export function completionId(prefix: string, id: string): string {
  if (id.startsWith(prefix)) return id;
  const bare = id.replace(/^(?:chatcmpl|cmpl|msg|resp|gen)[-_]/, '').replaceAll(/[^A-Za-z0-9]/g, '');
  return prefix + (bare === '' ? randomUUID().replaceAll('-', '') : bare.slice(0, 64));
}

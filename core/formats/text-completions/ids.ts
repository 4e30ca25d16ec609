import { randomUUID } from 'node:crypto';

const prefix = 'cmpl-';

/** The provider's id in this format's style; a new one where there is none. */
export function replyId(id: string): string {
  if (id.startsWith(prefix)) return id;
  const bare = id.replace(/^(?:chatcmpl|msg|resp|gen)[-_]/, '').replaceAll(/[^A-Za-z0-9]/g, '');
  return prefix + (bare === '' ? randomUUID().replaceAll('-', '') : bare.slice(0, 64));
}

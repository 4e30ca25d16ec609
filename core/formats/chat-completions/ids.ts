import { randomUUID } from 'node:crypto';
import { idPrefix } from './wire.ts';

/** The provider's id in this format's style; a new one where there is none. */
export function replyId(id: string): string {
  if (id.startsWith(idPrefix)) return id;
  const bare = id.replace(/^(?:chatcmpl|cmpl|msg|resp|gen)[-_]/, '').replaceAll(/[^A-Za-z0-9]/g, '');
  return idPrefix + (bare === '' ? randomUUID().replaceAll('-', '') : bare.slice(0, 64));
}

/** Ids of messages and tool calls. */
import { randomBytes } from 'node:crypto';

const prefix = 'msg_';
/** Prefixes that other formats give their ids. */
const foreign = /^(chatcmpl-|cmpl-|resp_|gen-|rs_|call_)/;

/** Returns the reply's id in this format's style: the provider's own, re-spelled; a fresh one where it gave none. */
export function replyId(id: string): string {
  if (id.startsWith(prefix) && id.length > prefix.length) return id;
  const kept = id.replace(foreign, '').replaceAll(/[^A-Za-z0-9]/g, '');
  return prefix + (kept === '' ? freshPart() : kept);
}

/** Returns an id for a call that the provider did not name. */
export function freshCallId(): string {
  return `toolu_${freshPart()}`;
}

function freshPart(): string {
  return randomBytes(12).toString('hex');
}

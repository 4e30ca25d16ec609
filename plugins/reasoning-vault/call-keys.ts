/**
 * Keys under which turns are stored, made from their tool calls. The id of a call alone shows only that some turn with this id is stored. The id
 * together with a digest of all that came before the turn (`conversation.ts`) identifies the turn, because many providers and clients count ids
 * from 0 in each conversation, or in each turn.
 */
import { hash } from 'node:crypto';
import type { CalledTool } from './turn.ts';

/** An id of a call, and the tool that it calls. */
export type IdOfCall = Pick<CalledTool, 'id' | 'name'>;

/** Returns the key that exists when any turn with a call of this id is stored. */
export function idKey(owner: string, { id }: IdOfCall): string {
  return turnKey(owner, id);
}

/** Returns the key of a call in one turn. `before`: digest of the conversation before the turn. */
export function exactKey(owner: string, { id, name }: IdOfCall, before: string): string {
  return turnKey(owner, id, whereOf({ name }, before));
}

/** Returns what distinguishes a call from others with the same id: its tool, and the digest of all before its turn. */
export function whereOf({ name }: Pick<IdOfCall, 'name'>, before: string): string {
  return `${name} ${before}`;
}

function turnKey(owner: string, id: string, where?: string): string {
  return `turn:${hash('sha256', JSON.stringify([owner, id, where]), 'base64url')}`;
}

/** Bits of randomness from which on an id counts as unique. Ids of eight letters and digits have 41, of eight hexadecimal digits 32. */
const enoughChance = 30;

/** Digest that the gateway appends to ids which providers do not accept. It adds no randomness to the id. */
const digestOfId = /_[A-Za-z0-9_-]{16}$/;

/**
 * Returns true for an id that is random enough to be unique among conversations. Used only where a turn with the id is stored and the conversation before it
 * has changed, for example because the client has summarised it.
 */
export function isByChance({ id, name }: IdOfCall): boolean {
  const runs =
    id
      .replace(digestOfId, '')
      .replace(name, ' ')
      .match(/[A-Za-z0-9]+/g) ?? [];
  return runs.reduce((bits, run) => bits + chanceIn(run), 0) >= enoughChance;
}

/** Estimates the bits of randomness of letters and digits: none in words, in camel case, and in small numbers. */
function chanceIn(run: string): number {
  if (/^(?:\d{1,9}|[A-Z]?[a-z]+(?:[A-Z][a-z]+)*\d{0,4}|[A-Z]+\d{0,4})$/.test(run)) return 0;
  if (/^\d+$/.test(run)) return run.length * Math.log2(10);
  if (/^[\da-f]+$/i.test(run)) return run.length * 4;
  return run.length * Math.log2(/[a-z]/.test(run) && /[A-Z]/.test(run) ? 62 : 36);
}

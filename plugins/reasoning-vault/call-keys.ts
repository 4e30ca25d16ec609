import { hash } from 'node:crypto';
import type { CalledTool } from './turn.ts';

/**
 * The keys of a turn's calls. An id alone tells whether anything is known of a call, whoever made the id; which turn of which conversation
 * that is, the id tells together with what stood before the turn (`conversation.ts`): many providers and clients count from 0 in each
 * conversation, or in each turn.
 */

/** An id of a call, and the tool that it calls. */
export type IdOfCall = Pick<CalledTool, 'id' | 'name'>;

/** The key under which it is kept that something is known of a call with this id. */
export function idKey(owner: string, { id }: IdOfCall): string {
  return turnKey(owner, id);
}

/** The key of a call with this id in the turn behind so much of a conversation. */
export function exactKey(owner: string, { id, name }: IdOfCall, before: string): string {
  return turnKey(owner, id, whereOf({ name }, before));
}

/** What tells a call from others with its id: its tool, and the digest of all before its turn. */
export function whereOf({ name }: Pick<IdOfCall, 'name'>, before: string): string {
  return `${name} ${before}`;
}

function turnKey(owner: string, id: string, where?: string): string {
  return `turn:${hash('sha256', JSON.stringify([owner, id, where]), 'base64url')}`;
}

/** Bits of chance by which an id is taken for no other conversation's. Ids of eight letters and digits have 41, hexadecimal ones of eight have 32. */
const enoughChance = 30;

/** The digest that the gateway puts behind ids that providers do not take: it tells no more than the id that was spelled. */
const digestOfId = /_[A-Za-z0-9_-]{16}$/;

/**
 * True for an id that no other conversation has, by the chance that it holds. Asked only where an id is known and what stood before the turn
 * has changed since, as it does when a client has its conversation summarised.
 */
export function isByChance({ id, name }: IdOfCall): boolean {
  const runs =
    id
      .replace(digestOfId, '')
      .replace(name, ' ')
      .match(/[A-Za-z0-9]+/g) ?? [];
  return runs.reduce((bits, run) => bits + chanceIn(run), 0) >= enoughChance;
}

/** Bits of chance in letters and digits: none in words, in words that are written together, and in small numbers. */
function chanceIn(run: string): number {
  if (/^(?:\d{1,9}|[A-Z]?[a-z]+(?:[A-Z][a-z]+)*\d{0,4}|[A-Z]+\d{0,4})$/.test(run)) return 0;
  if (/^\d+$/.test(run)) return run.length * Math.log2(10);
  if (/^[\da-f]+$/i.test(run)) return run.length * 4;
  return run.length * Math.log2(/[a-z]/.test(run) && /[A-Z]/.test(run) ? 62 : 36);
}

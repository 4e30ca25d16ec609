import type { Block } from '../../../model/chat.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import type { EncodeTarget } from '../../../sdk/format.ts';
import { name } from '../wire.ts';
import { refuseContent } from '../../_shared/refuse.ts';

/** What the encoders of one request share. */
export interface Writing {
  readonly target: EncodeTarget;
  /** The client wrote this format: what it wrote is given back as it was, right or wrong. */
  readonly native: boolean;
  /** The provider's spelling of a tool's name. */
  readonly toolName: (name: string) => string;
  /** Reasoning had to be left out: an open tool loop may then not go on thinking. */
  reasoningDropped: boolean;
}

/** Where the client said it. */
export function placeOf(block: Block): string {
  return block.at ?? 'messages';
}

/** {@link refuseContent} */
export function refuse(block: Block, what: string, { target }: Writing): undefined {
  return refuseContent(block, what, name, target);
}

/** Writes the cache mark of a piece. The format knows two lifetimes; another is left to the provider's default. */
export function addCache(
  wire: MutableObject,
  piece: { readonly cache?: { readonly ttl?: string } },
  writing: Writing,
  at: string,
): void {
  if (piece.cache === undefined) return;
  const { ttl } = piece.cache;
  const known = ttl === '5m' || ttl === '1h' || (writing.native && ttl !== undefined);
  if (!known && ttl !== undefined) writing.target.lose(`${at}.cache`);
  wire.cache_control = known ? { type: 'ephemeral', ttl } : { type: 'ephemeral' };
}

import type { Block } from '../../../model/chat.ts';
import type { JsonObject } from '../../../model/json.ts';
import { refuseContent } from '../../_shared/refuse.ts';
import type { EncodeTarget } from '../../../sdk/format.ts';
import { name } from '../wire.ts';

/** What the encoders of one request share. */
export interface Writing {
  readonly target: EncodeTarget;
  /** The client wrote this format: what it wrote is given back as it was, right or wrong. */
  readonly native: boolean;
  /** The provider's spelling of a tool's name. */
  readonly toolName: (name: string) => string;
  /** How often each name of a document was given out: providers refuse a name that two have. */
  readonly documents: Map<string, number>;
}

/** Where the client said it. */
export function placeOf(block: Block): string {
  return block.at ?? 'messages';
}

/** 400 for what cannot be carried, or nothing with a report where the operator prefers that or the conversation can do without. */
export function refuse(block: Block, what: string, { target }: Writing): undefined {
  return refuseContent(block, what, name, target);
}

/** The cache point that stands behind a marked piece. The format knows two lifetimes; another is left to the provider's default. */
export function cachePoint(
  cache: { readonly ttl?: string } | undefined,
  at: string,
  { native, target }: Writing,
): readonly JsonObject[] {
  if (cache === undefined) return [];
  if (target.traits.refuses?.includes('cache') === true) {
    target.lose(`${at}.cache`);
    return [];
  }
  const { ttl } = cache;
  const known = ttl === '5m' || ttl === '1h' || (native && ttl !== undefined);
  if (!known && ttl !== undefined) target.lose(`${at}.cache`);
  return [{ cachePoint: { type: 'default', ...(known ? { ttl } : {}) } }];
}

/** State that the encoders of one Converse request share, and the cache point behind a marked block. */
import type { JsonObject } from '../../../model/json.ts';
import { cacheMark, type Writing as HistoryWriting } from '../../_shared/writing.ts';

/** State that the encoders of one request share. */
export interface Writing extends HistoryWriting {
  /** Number of uses of each document name, because providers refuse two documents of one name. */
  readonly documents: Map<string, number>;
}

/** Returns the cache point that stands behind a marked piece. */
export function cachePoint(
  cache: { readonly ttl?: string } | undefined,
  at: string,
  writing: Writing,
): readonly JsonObject[] {
  if (cache === undefined) return [];
  const { drop, traits } = writing.target;
  if (traits.refuses?.includes('cache') !== true)
    return [{ cachePoint: cacheMark('default', cache, writing, at) }];
  drop(`${at}.cache`);
  return [];
}

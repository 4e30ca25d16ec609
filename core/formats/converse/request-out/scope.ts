import type { JsonObject } from '../../../model/json.ts';
import { cacheMark, type Writing as HistoryWriting } from '../../_shared/writing.ts';

/** What the encoders of one request share. */
export interface Writing extends HistoryWriting {
  /** How often each name of a document was given out: providers refuse a name that two have. */
  readonly documents: Map<string, number>;
}

/** The cache point that stands behind a marked piece. */
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

/** State that the encoders of one Messages request share, and `cache_control` of a piece. */
import { cacheMark, type Writing as HistoryWriting } from '../../_shared/writing.ts';
import type { MutableObject } from '../../../model/json.ts';

/** State that the encoders of one request share. */
export interface Writing extends HistoryWriting {
  /** True when reasoning was left out: thinking must then be turned off inside a tool loop. */
  reasoningDropped: boolean;
}

/** Writes the cache mark of a piece. */
export function addCache(
  wire: MutableObject,
  { cache }: { readonly cache?: { readonly ttl?: string } },
  writing: Writing,
  at: string,
): void {
  if (cache !== undefined) wire.cache_control = cacheMark('ephemeral', cache, writing, at);
}

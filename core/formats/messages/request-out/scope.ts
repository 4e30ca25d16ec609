import { cacheMark, type Writing as HistoryWriting } from '../../_shared/writing.ts';
import type { MutableObject } from '../../../model/json.ts';

/** What the encoders of one request share. */
export interface Writing extends HistoryWriting {
  /** Reasoning had to be left out: an open tool loop may then not go on thinking. */
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

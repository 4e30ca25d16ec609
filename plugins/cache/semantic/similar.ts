/** Finds kept responses to questions that mean the same. */
import type { Call } from 'sluice';
import { ageOf, type Entry } from '../entry.ts';
import type { CacheKey } from '../key.ts';
import type { ResponseStore } from '../store.ts';
import type { EmbeddedQuestion, SemanticIndex } from './index.ts';

/** Known data of the question of a call. */
export interface Similar {
  /** The question with its vector; undefined where it has none. */
  readonly embedded: EmbeddedQuestion | undefined;
  /** The response to a question that means the same. */
  readonly found: Entry | undefined;
}

/** Returns the question of a call, and a response to one that means the same which is at most `ttl` and `maxAge` seconds old. */
export async function findSimilar(
  index: SemanticIndex,
  store: ResponseStore,
  call: Call,
  key: CacheKey,
  { ttl, maxAge }: { readonly ttl: number; readonly maxAge: number },
): Promise<Similar> {
  const embedded = await index.embed(call, key);
  const digest = embedded === undefined ? undefined : await index.find(embedded);
  if (digest === undefined) return { embedded, found: undefined };
  const entry = await store.find(digest);
  if (entry !== undefined && ageOf(entry) <= ttl)
    return { embedded, found: ageOf(entry) <= maxAge ? entry : undefined };
  if (!store.hasFailed) index.forget(digest);
  return { embedded, found: undefined };
}

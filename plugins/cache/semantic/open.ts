import type { PluginTools } from 'sluice';
import { lifetimeOf, type CacheOptions, type SemanticOptions } from '../options.ts';
import type { Questions } from './questions.ts';
import { SharedQuestions } from './shared.ts';
import { VectorIndex } from './vectors.ts';

/** Opens the place where vectors are kept. Rejects with an Error for the operator where that cannot be used. */
export async function openQuestions(
  semantic: SemanticOptions,
  options: CacheOptions,
  tools: Pick<PluginTools, 'stores' | 'log'>,
): Promise<Questions> {
  const { store, perPartition, questions } = semantic;
  const vectors = store === 'memory' ? undefined : await openShared(semantic, options, tools);
  return vectors === undefined
    ? VectorIndex.open(perPartition, questions)
    : new SharedQuestions(vectors, lifetimeOf(options), tools.log);
}

async function openShared(
  { store, perPartition, questions }: SemanticOptions,
  { databaseEntries }: CacheOptions,
  { stores, log }: Pick<PluginTools, 'stores' | 'log'>,
): ReturnType<PluginTools['stores']['vectors']> {
  // Other workers have no use for questions whose responses they cannot find.
  if (databaseEntries === 0) {
    if (store === 'auto') return undefined;
    throw new Error("semantic.store: 'pgvector' needs databaseEntries of at least 1.");
  }
  try {
    const vectors = await stores.vectors('cache-questions', { perPartition, most: questions });
    if (vectors === undefined && store === 'pgvector')
      throw new Error(
        "semantic.store: 'pgvector' needs PostgreSQL as the gateway's database, which is SQLite. Set database, or use 'memory'.",
      );
    return vectors;
  } catch (error) {
    if (store === 'pgvector') throw error;
    log.warn({ error }, 'the database cannot store vectors of questions: each worker stores them in memory');
    return undefined;
  }
}

import type { EmbedPurpose } from '../../model/embed.ts';

/** The name under which this format keeps what only it knows. */
export const formatName = 'embeddings';

/** Below a provider's base URL. */
export const path = '/embeddings';

/** Most inputs of one request. */
export const mostInputs = 2048;

/** How vendors that speak this format beyond its official fields say what vectors are for. */
const purposes: Readonly<Record<string, EmbedPurpose>> = {
  query: 'query',
  search_query: 'query',
  'retrieval.query': 'query',
  RETRIEVAL_QUERY: 'query',
  document: 'document',
  passage: 'document',
  search_document: 'document',
  'retrieval.passage': 'document',
  RETRIEVAL_DOCUMENT: 'document',
  'text-matching': 'similarity',
  SEMANTIC_SIMILARITY: 'similarity',
  classification: 'classification',
  CLASSIFICATION: 'classification',
  clustering: 'clustering',
  separation: 'clustering',
  CLUSTERING: 'clustering',
  QUESTION_ANSWERING: 'question',
  FACT_VERIFICATION: 'fact',
  'code.query': 'code-query',
  CODE_RETRIEVAL_QUERY: 'code-query',
};

/** The purpose that a vendor's word names; undefined for one that nobody else knows. */
export function purposeOf(word: unknown): EmbedPurpose | undefined {
  return typeof word === 'string' && Object.hasOwn(purposes, word) ? purposes[word] : undefined;
}

/** Constants of the embeddings format, and the purposes of embeddings (`input_type`, `task`) in the words of several vendors. */
import type { EmbedPurpose } from '../../model/embed.ts';

/** The name under which this format keeps what only it knows. */
export const formatName = 'embeddings';

/** Path below a provider's base URL. */
export const path = '/embeddings';

/** Most inputs of one request. */
export const mostInputs = 2048;

/** Purposes of embeddings by the words of vendors that extend this format. */
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

/** Returns the purpose that a vendor's word names; undefined for an unknown word. */
export function purposeOf(word: unknown): EmbedPurpose | undefined {
  return typeof word === 'string' && Object.hasOwn(purposes, word) ? purposes[word] : undefined;
}

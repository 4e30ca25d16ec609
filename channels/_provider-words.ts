import type { EmbedPurpose } from 'sluice/internal';

/** The half of a codec that a format for clients has, where the words are a provider's own: nobody may come there. */
export function noClient(): never {
  throw new Error('No client speaks the words of this channel.');
}

/** What Cohere's models call the purposes of embeddings, wherever they are served; a document where nothing is said. */
export function cohereInputType(purpose: EmbedPurpose | undefined): string {
  return (purpose === undefined ? undefined : cohereInputTypes[purpose]) ?? 'search_document';
}

const cohereInputTypes: { readonly [Purpose in EmbedPurpose]?: string } = {
  query: 'search_query',
  question: 'search_query',
  'code-query': 'search_query',
  classification: 'classification',
  clustering: 'clustering',
};

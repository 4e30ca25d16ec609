import type { GatewayEvent, JsonValue } from 'sluice';
import {
  reportForeign,
  noUsage,
  readVectors,
  type EmbedPurpose,
  type EmbedRequest,
} from 'sluice/channel-kit';

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

/** Reports what a request for embeddings says that no such provider has words for; `format` is the channel's own. */
export function dropOfEmbed(
  { title, user, extra }: { readonly [Name in 'title' | 'user' | 'extra']?: EmbedRequest[Name] | undefined },
  format: string,
  drop: (path: string) => void,
): void {
  reportForeign(extra, format, undefined, drop);
  if (title !== undefined) drop('title');
  if (user !== undefined) drop('user');
}

/** An answer of vectors, and of the tokens that they took where the provider counts them. */
export function embedded(
  list: readonly JsonValue[],
  tokens: JsonValue | undefined,
  id = '',
): readonly GatewayEvent[] {
  return [
    { type: 'head', id, model: '' },
    { type: 'result', value: { vectors: readVectors(list) } },
    ...(typeof tokens === 'number' ? [{ type: 'usage', usage: { ...noUsage, input: tokens } } as const] : []),
  ];
}

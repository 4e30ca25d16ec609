/**
 * Parts that codecs for providers' own embeddings APIs share: names of purposes, reporting of dropped fields, and the events of a response.
 */
import type { GatewayEvent, JsonValue } from 'sluice';
import {
  reportForeign,
  noUsage,
  readVectors,
  type EmbedPurpose,
  type EmbedRequest,
} from 'sluice/channel-kit';

/** Returns the `input_type` of Cohere's models for a purpose. Default: `search_document`. */
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

/** Reports the fields of an embeddings request that these providers do not support. `format` is the channel's own. */
export function dropOfEmbed(
  { title, user, extra }: { readonly [Name in 'title' | 'user' | 'extra']?: EmbedRequest[Name] | undefined },
  format: string,
  drop: (path: string) => void,
): void {
  reportForeign(extra, format, undefined, drop);
  if (title !== undefined) drop('title');
  if (user !== undefined) drop('user');
}

/** Returns the events of a response: vectors, and the number of input tokens where the provider states it. */
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

import type { Citation } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';

/** A source in this format's words; undefined for one without an address, for which the format has no place. */
export function writeCitation(citation: Citation): JsonObject | undefined {
  if (citation.url === undefined) return undefined;
  return {
    type: 'url_citation',
    url_citation: {
      start_index: citation.start ?? 0,
      end_index: citation.end ?? 0,
      title: citation.title ?? '',
      url: citation.url,
    },
  };
}

/** Decodes and encodes `url_citation` annotations of chat completions. */
import type { Citation } from '../../model/chat.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { sameJson } from '../../json/same-json.ts';
import { formatName } from './wire.ts';

/** Decodes an annotation. One that could not be rebuilt exactly is kept whole in `extra`. */
export function readCitation(item: JsonObject): Citation {
  const inner = isObject(item.url_citation) ? item.url_citation : {};
  const citation: Citation = {
    ...(typeof inner.url === 'string' ? { url: inner.url } : {}),
    ...(typeof inner.title === 'string' ? { title: inner.title } : {}),
    ...(typeof inner.start_index === 'number' ? { start: inner.start_index } : {}),
    ...(typeof inner.end_index === 'number' ? { end: inner.end_index } : {}),
  };
  return sameJson(writeCitation(citation), item)
    ? citation
    : { ...citation, extra: { [formatName]: { $item: item } } };
}

/** Encodes a citation; undefined for one without a URL, which the format cannot carry. */
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

/** Decodes and encodes annotations of Responses. */
import type { Citation } from '../../model/chat.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { formatName } from './wire.ts';

/** Decodes an annotation; `$annotation` keeps it for clients of this format. */
export function readAnnotation(annotation: JsonObject): Citation {
  const { url, title, filename, start_index: start, end_index: end } = annotation;
  const shown = typeof title === 'string' ? title : filename;
  return {
    ...(typeof url === 'string' ? { url } : {}),
    ...(typeof shown === 'string' ? { title: shown } : {}),
    ...(typeof start === 'number' ? { start } : {}),
    ...(typeof end === 'number' ? { end } : {}),
    extra: { [formatName]: { $annotation: annotation } },
  };
}

/** Encodes a citation; undefined for one without a URL. One without offsets covers the text so far, `length` characters. */
export function writeAnnotation(citation: Citation, length: number): JsonObject | undefined {
  const kept = citation.extra?.[formatName]?.$annotation;
  if (isObject(kept)) return kept;
  if (citation.url === undefined) return undefined;
  return {
    type: 'url_citation',
    start_index: citation.start ?? 0,
    end_index: citation.end ?? length,
    title: citation.title ?? '',
    url: citation.url,
  };
}

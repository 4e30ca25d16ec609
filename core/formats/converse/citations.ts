/** Decodes and encodes citations of Converse; locations in documents are kept as they came. */
import type { Citation } from '../../model/chat.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { textsIn } from '../_shared/fields.ts';
import { own, withExtra } from './wire.ts';

/** Decodes a citation. Its wire form is kept in `extra`, because locations in documents have no neutral form. */
export function decodeCitation(value: JsonObject): Citation {
  const web = isObject(value.location) && isObject(value.location.web) ? value.location.web : {};
  const quote = textsIn(value.sourceContent).join('');
  return {
    ...(typeof web.url === 'string' ? { url: web.url } : {}),
    ...(typeof value.title === 'string' ? { title: value.title } : {}),
    ...(quote === '' ? {} : { quote }),
    ...withExtra({ $wire: value }),
  };
}

/** Returns the wire form of a citation that came in this format; undefined for others. */
export function ownCitation(citation: Citation): JsonObject | undefined {
  const { $wire } = own(citation.extra);
  return isObject($wire) ? $wire : undefined;
}

/** Encodes a citation for a client: this format's own unchanged, another's as a web page; undefined when it has no URL. */
export function citationForClient(citation: Citation): JsonObject | undefined {
  const wire = ownCitation(citation);
  const { url, title, quote } = citation;
  if (wire !== undefined || url === undefined) return wire;
  return {
    ...(title === undefined ? {} : { title }),
    ...(quote === undefined ? {} : { sourceContent: [{ text: quote }] }),
    location: { web: { url } },
  };
}

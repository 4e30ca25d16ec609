import type { Citation } from '../../model/chat.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { textsIn } from '../_shared/fields.ts';
import { own, withExtra } from './wire.ts';

/** A citation of the wire. What it is in this format's words is kept: places in documents mean nothing to others. */
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

/** The wire form of a citation that this format made; undefined for another's. */
export function ownCitation(citation: Citation): JsonObject | undefined {
  const { $wire } = own(citation.extra);
  return isObject($wire) ? $wire : undefined;
}

/** A citation for a client: this format's own as it was, another's as a page of the web; undefined when it names none. */
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

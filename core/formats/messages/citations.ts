/** Decodes and encodes citations of Messages; citations of other formats become web search results. */
import type { Citation } from '../../model/chat.ts';
import { parseObject } from '../../json/parse.ts';
import type { JsonObject, MutableObject } from '../../model/json.ts';
import { own, withExtra } from './wire.ts';

/** Prefix of an `encrypted_index` that the gateway wrote: it marks a citation of another format, whose offsets follow in base64url. */
const sealed = 'gw1.';

/** Decodes a citation. Offsets in the quoted document are kept in `extra`, because neutral offsets count characters of the answer. */
export function decodeCitation(value: JsonObject): Citation {
  const index = value.encrypted_index;
  if (typeof index === 'string' && index.startsWith(sealed)) return unsealed(value, index);
  const rest: MutableObject = { ...value };
  const neutral: { url?: string; title?: string; quote?: string } = {};
  if (typeof rest.cited_text === 'string') neutral.quote = take(rest, 'cited_text');
  if (typeof rest.url === 'string') neutral.url = take(rest, 'url');
  else if (typeof rest.source === 'string' && /^https?:/i.test(rest.source)) neutral.url = rest.source;
  if (typeof rest.title === 'string') neutral.title = take(rest, 'title');
  else if (typeof rest.document_title === 'string') {
    neutral.title = take(rest, 'document_title');
    rest.$title = 'document_title';
  }
  return { ...neutral, ...withExtra(rest) };
}

function take(from: MutableObject, key: string): string {
  const value = from[key];
  delete from[key];
  return typeof value === 'string' ? value : '';
}

function unsealed(value: JsonObject, index: string): Citation {
  const range = parseObject(Buffer.from(index.slice(sealed.length), 'base64url').toString());
  return {
    ...(typeof value.url === 'string' ? { url: value.url } : {}),
    ...(typeof value.title === 'string' ? { title: value.title } : {}),
    ...(typeof value.cited_text === 'string' && value.cited_text !== '' ? { quote: value.cited_text } : {}),
    ...(typeof range?.start === 'number' ? { start: range.start } : {}),
    ...(typeof range?.end === 'number' ? { end: range.end } : {}),
  };
}

/** Encodes a citation that came in this format; undefined for others, because a provider refuses an `encrypted_index` that it did not make. */
export function encodeCitation(citation: Citation): JsonObject | undefined {
  const fields = own(citation.extra);
  if (fields.type === undefined) return undefined;
  const { $title, ...rest } = fields;
  const wire: MutableObject = { ...rest };
  if (citation.quote !== undefined) wire.cited_text = citation.quote;
  if (citation.url !== undefined && rest.source === undefined) wire.url = citation.url;
  if (citation.title !== undefined)
    wire[$title === 'document_title' ? 'document_title' : 'title'] = citation.title;
  return wire;
}

/** Encodes a citation for a client: this format's own unchanged, another's as a web search result; undefined when it has no URL. */
export function citationForClient(citation: Citation): JsonObject | undefined {
  const wire = encodeCitation(citation);
  if (wire !== undefined || citation.url === undefined) return wire;
  const { url, title, quote, start, end } = citation;
  const range = Buffer.from(JSON.stringify({ start, end })).toString('base64url');
  return {
    type: 'web_search_result_location',
    cited_text: quote ?? '',
    url,
    title: title ?? null,
    encrypted_index: sealed + range,
  };
}

/** The format of a client where its path is that of several, or of none. */
import type { IncomingHttpHeaders } from 'node:http';
import { isSigned } from '../formats/_shared/signed.ts';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/**
 * Returns the name of the format that a client speaks where the path is the same for several, such as `/v1/models`. A version header means
 * messages, whatever carries the key; a generateContent key means generateContent; everything else is chat completions.
 */
export function listFormat(headers: Headers, query: URLSearchParams): string {
  if (headers['anthropic-version'] || headers['a-version']) return 'messages';
  if (headers['x-goog-api-key'] || headers['x-g-api-key'] || query.has('key')) return 'generate-content';
  return 'chat-completions';
}

/** Most bytes of a request that are read to find out who sent it. */
const mostBytes = 64 * 1024;

/** Headers that tell formats apart. */
const tellingHeaders: ReadonlySet<string> = new Set([
  'anthropic-version',
  'a-version',
  'x-goog-api-key',
  'x-g-api-key',
  'authorization',
  'amz-sdk-invocation-id',
]);

/**
 * Returns the name of the format in which an error is written that belongs to no route. The path decides where it has a format of its own,
 * else the headers that clients of one format send.
 */
export function errorFormat(url: string, headers: Readonly<IncomingHttpHeaders>): string {
  const mark = url.indexOf('?');
  const path = mark < 0 ? url : url.slice(0, mark);
  if (/^\/v1(?:beta|\/projects\/|\/publishers\/|\/models\/.+:)/.test(path)) return 'generate-content';
  if (path.startsWith('/model/') || path.startsWith('/foundation-models')) return 'converse';
  if (path.startsWith('/v1/messages')) return 'messages';
  if (isSigned(headers)) return 'converse';
  return listFormat(headers, new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)));
}

/** Does the same as {@link errorFormat} for bytes that Node's parser refused, from what can be read of their first line and headers. */
export function errorFormatOfBytes(bytes: Buffer | undefined): string {
  const text = bytes?.toString('latin1', 0, mostBytes) ?? '';
  const end = text.indexOf('\r\n\r\n');
  const [line = '', ...lines] = (end < 0 ? text : text.slice(0, end)).split('\r\n');
  const headers: IncomingHttpHeaders = {};
  for (const one of lines) {
    const colon = one.indexOf(':');
    const name = one.slice(0, Math.max(0, colon)).toLowerCase();
    if (tellingHeaders.has(name)) headers[name] = one.slice(colon + 1).trim();
  }
  return errorFormat(line.split(' ', 2)[1] ?? '', headers);
}

/** Parses the headers of one part of a form strictly, and rejects spellings that other frameworks read differently. */
import { isUtf8 } from 'node:buffer';
import type { PartHead } from '../model/form.ts';
import { GatewayError } from '../sdk/errors.ts';

/** Maximum length of the name of a field, in characters. */
const longestName = 200;

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Matches one parameter of a disposition: a token or a quoted string after `=`, without blanks. The alternatives share no first letter, so that the match takes linear time. */
const parameter = /[ \t]*;[ \t]*([A-Za-z]+\*?)=(?:"((?:[^"\\]|\\.)*)"|([!#$%&'*+.^_`|~0-9A-Za-z-]+))/uy;
/** RFC 8187: .NET and Apache HttpClient 5 write it beside `filename`, old versions of urllib3 instead of it for names that are not ASCII. */
const extended = /^utf-8'[A-Za-z0-9-]*'((?:[!#$&+.^_`|~0-9A-Za-z-]|%[0-9A-Fa-f]{2})+)$/i;

/** Headers of one part. */
export interface ParsedHead {
  readonly head: PartHead;
  /** True for a text whose charset is the same as UTF-8 only where all of its bytes are ASCII. */
  readonly mustBeAscii: boolean;
}

/**
 * Parses the headers of a part, as RFC 7578 and the official SDKs write them, and nothing else. Frameworks read other spellings in different
 * ways: a part that is a text to one is a file to the other. Throws 400 for anything that could be read in two ways.
 */
export function parsePartHead(bytes: Buffer): ParsedHead {
  if (!isUtf8(bytes)) throw refusedPart('the headers of a part are not valid UTF-8');
  const headers = headersIn(bytes.toString());
  const disposition = headers.get('content-disposition');
  if (disposition === undefined) throw refusedPart('a part has no content-disposition');
  checkEncodings(headers);
  const { name, filename } = namesIn(disposition);
  const type = headers.get('content-type') ?? '';
  if (/^multipart\b/i.test(type)) throw refusedPart('a part is a form itself');
  const [mimeType = ''] = type.split(';', 1);
  const fallback = filename === undefined ? 'text/plain' : 'application/octet-stream';
  return {
    head: { name, filename, mimeType: mimeType.trim().toLowerCase() || fallback },
    mustBeAscii: filename === undefined && hasAsciiCharset(type),
  };
}

/** Returns the 400 error for a malformed form. */
export function refusedPart(reason: string): GatewayError {
  return new GatewayError(
    'invalid_request',
    `The form is damaged or not plain multipart/form-data: ${reason}.`,
  );
}

/** Returns the header values by their names in lower case. A line that begins with a blank (a folded header) has no name. */
function headersIn(text: string): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (const line of text.split('\r\n')) {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (!token.test(name) || /\p{Cc}/u.test(value)) throw refusedPart('a part has a header that is none');
    if (headers.has(name)) throw refusedPart(`a part has the header ${name.slice(0, 100)} twice`);
    headers.set(name, value);
  }
  return headers;
}

/** Throws for encodings that change bytes: Retrofit, Apache HttpClient 4 and multipart-post name one of those that do not. */
function checkEncodings(headers: ReadonlyMap<string, string>): void {
  const encoding = headers.get('content-transfer-encoding');
  if (encoding !== undefined && !/^(?:7bit|8bit|binary)$/i.test(encoding))
    throw refusedPart('a part has a content-transfer-encoding');
  if (headers.has('content-encoding')) throw refusedPart('a part has a content-encoding');
}

/**
 * Returns true when the content type has a charset that equals UTF-8 only for ASCII. Apache HttpClient sends ISO-8859-1 by default. Throws for
 * other charsets.
 */
function hasAsciiCharset(type: string): boolean {
  const charset = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(type)?.[1];
  return charset !== undefined && isAsciiCharset(charset);
}

/** Returns false for UTF-8, and true for charsets that agree with it on ASCII. Throws for others. */
export function isAsciiCharset(charset: string): boolean {
  if (/^utf-?8$/i.test(charset)) return false;
  if (!/^(?:us-ascii|iso-8859-1)$/i.test(charset)) throw notUtf8();
  return true;
}

/** Returns the 400 error for a text that frameworks may decode with another charset than UTF-8. */
export function notUtf8(): GatewayError {
  return refusedPart('a text is not UTF-8');
}

function namesIn(disposition: string): { readonly name: string; readonly filename: string | undefined } {
  const found = new Map<string, string>();
  let at = 'form-data'.length;
  if (!/^form-data(?=[ \t;]|$)/i.test(disposition)) throw refusedPart('a part has another disposition');
  while (at < disposition.length) {
    parameter.lastIndex = at;
    const [whole = '', name = '', quoted, plain = ''] = parameter.exec(disposition) ?? [];
    const key = name.toLowerCase();
    if (whole === '' || found.has(key) || !['name', 'filename', 'filename*'].includes(key))
      throw refusedPart('a part must have one name="…" and at most one filename="…"');
    found.set(key, quoted ?? plain);
    at += whole.length;
  }
  return { name: nameIn(found.get('name')), filename: filenameIn(found) };
}

/** Returns the name of a field. Backslashes are refused because some clients escape with them, and others mean them. */
function nameIn(name: string | undefined): string {
  if (name === undefined || name === '') throw refusedPart('a part has no name');
  if (name.includes('\\')) throw refusedPart('the name of a field has a backslash');
  if (name.length > longestName)
    throw new GatewayError('invalid_value', 'The name of a form field is too long.');
  return name;
}

/** Returns the name of the file: Go and curl escape quotes and backslashes, browsers write them as codes. */
function filenameIn(found: ReadonlyMap<string, string>): string | undefined {
  const star = found.get('filename*');
  const encoded = star === undefined ? undefined : (extended.exec(star)?.[1] ?? '%');
  try {
    const name =
      encoded === undefined
        ? found.get('filename')?.replace(/\\(["\\])/g, '$1')
        : decodeURIComponent(encoded);
    return name?.replace(/^.*[/\\]/s, '');
  } catch {
    throw refusedPart('the name of a file has an unknown encoding');
  }
}

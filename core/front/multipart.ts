/** Incremental parser of `multipart/form-data` (RFC 7578), and of the boundary in its content type. */
import { isAscii } from 'node:buffer';
import type { PartHead } from '../model/form.ts';
import { GatewayError } from '../sdk/errors.ts';
import { isAsciiCharset, notUtf8, parsePartHead, refusedPart } from './part-head.ts';

/** Tokens of a form, in order: each part is one `head`, any number of `data`, and one `end`. */
export type FormToken =
  | { readonly type: 'head'; readonly head: PartHead }
  | { readonly type: 'data'; readonly bytes: Buffer }
  | { readonly type: 'end' };

/** State of the parser. `first`: a head has ended, and no data has come yet. */
type State = 'start' | 'head' | 'first' | 'data' | 'behind' | 'end';

/** Maximum length of the headers of a part, in bytes. */
const longestHead = 8 * 1024;
const headEnd = Buffer.from('\r\n\r\n');
const lineEnd = Buffer.from('\r\n');

/** Returns the boundary that a content type names. Throws 415 for a body that is no form, and 400 unless it names exactly one, as RFC 2046 has it. */
export function boundaryOf(contentType: string): string {
  const boundary = parametersOf(contentType).get('boundary') ?? '';
  if (!/^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/.test(boundary)) throw noBoundary();
  return boundary;
}

/** Returns a parser for a content type. Throws as {@link boundaryOf}, and 400 for a charset other than UTF-8, US-ASCII and ISO-8859-1. */
export function formParserOf(contentType: string): FormParser {
  const charset = parametersOf(contentType).get('charset');
  return new FormParser(boundaryOf(contentType), charset !== undefined && isAsciiCharset(charset));
}

/** Parameters by their names in lower case. */
function parametersOf(contentType: string): ReadonlyMap<string, string> {
  if (!/^\s*multipart\/form-data\s*(;|$)/i.test(contentType))
    throw new GatewayError('unsupported_media_type', 'Content-Type must be multipart/form-data.');
  const [, parameters = ''] = /^\s*multipart\/form-data[ \t]*(.*)$/i.exec(contentType) ?? [];
  const each = /[ \t]*;[ \t]*(boundary|charset)=(?:"([^"\\]*)"|([!#$%&'*+.^_`|~0-9A-Za-z-]+))[ \t]*/iy;
  const found = new Map<string, string>();
  for (let at = 0; at < parameters.length; at = each.lastIndex) {
    each.lastIndex = at;
    const [, name = '', quoted, plain = ''] = each.exec(parameters) ?? [];
    if (name === '' || found.has(name.toLowerCase())) throw noBoundary();
    found.set(name.toLowerCase(), quoted ?? plain);
  }
  return found;
}

function noBoundary(): GatewayError {
  return new GatewayError(
    'invalid_request',
    'Content-Type must name one boundary between the parts of the form, of 1 to 70 letters.',
  );
}

/**
 * Parses `multipart/form-data` while it comes, as browsers and SDKs write it (RFC 7578) and no more liberally: what is read here must be what
 * every framework reads. Throws 400 for anything else. Holds no more than the head of a part.
 */
export class FormParser {
  readonly #delimiter: Buffer;
  #state: State = 'start';
  /** Begins with a line end, so that the first boundary is parsed like the others. */
  #rest: Buffer = lineEnd;
  #hasBlank = false;
  readonly #isAsciiForm: boolean;
  #mustBeAscii = false;

  /** `isAsciiForm`: names and texts must be ASCII, because the form names a charset that is the same as UTF-8 only there. */
  constructor(boundary: string, isAsciiForm = false) {
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
    this.#isAsciiForm = isAsciiForm;
  }

  /** Adds some bytes and yields what they complete. */
  *push(bytes: Buffer): Generator<FormToken, undefined> {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    for (let token = this.#step(); token !== undefined; token = this.#step())
      if (token !== 'moved') yield token;
    return undefined;
  }

  /** Throws where the form is not complete. */
  finish(): void {
    const isBlank = this.#rest.equals(headEnd.subarray(0, this.#rest.length));
    if (this.#state !== 'end' || !isBlank || this.#rest.length % 2 !== 0) throw refusedPart('it has no end');
  }

  /** Returns the next token, `moved` where there may be one behind, and undefined where more bytes must come. */
  #step(): FormToken | 'moved' | undefined {
    switch (this.#state) {
      case 'start':
        return this.#start();
      case 'head':
        return this.#head();
      case 'first':
        return this.#first();
      case 'data':
        return this.#data();
      case 'behind':
        return this.#behind();
      case 'end':
        // Some clients end the form with an empty line.
        if (this.#rest.length > headEnd.length) throw refusedPart('something stands behind its end');
        return undefined;
    }
  }

  #start(): 'moved' | undefined {
    const delimiter = this.#delimiter;
    // Some clients write an empty line before the form.
    if (!this.#hasBlank && this.#rest.subarray(0, headEnd.length).equals(headEnd)) {
      this.#hasBlank = true;
      return this.#move(lineEnd.length, 'start');
    }
    if (this.#rest.length < delimiter.length) return undefined;
    if (!this.#rest.subarray(0, delimiter.length).equals(delimiter))
      throw refusedPart('it does not begin with its boundary');
    return this.#move(delimiter.length, 'behind');
  }

  #behind(): 'moved' | undefined {
    if (this.#rest.length < 2) return undefined;
    const two = this.#rest.subarray(0, 2).toString('latin1');
    if (two !== '\r\n' && two !== '--') throw refusedPart('its boundary goes on');
    return this.#move(2, two === '--' ? 'end' : 'head');
  }

  #head(): FormToken | undefined {
    const end = this.#rest.indexOf(headEnd);
    if (end > longestHead || (end < 0 && this.#rest.length > longestHead))
      throw refusedPart(`the headers of a part have more than ${longestHead} bytes`);
    if (end < 0) return undefined;
    const bytes = this.#rest.subarray(0, end);
    if (this.#isAsciiForm && !isAscii(bytes)) throw notUtf8();
    const { head, mustBeAscii } = parsePartHead(bytes);
    this.#mustBeAscii = mustBeAscii || (this.#isAsciiForm && head.filename === undefined);
    this.#move(end + headEnd.length, 'first');
    return { type: 'head', head };
  }

  /** Throws for a boundary in place of the data: some frameworks read an empty part there, others its text. */
  #first(): 'moved' | undefined {
    const boundary = this.#delimiter.subarray(lineEnd.length);
    const start = this.#rest.subarray(0, boundary.length);
    if (!start.equals(boundary.subarray(0, start.length))) return this.#move(0, 'data');
    if (start.length < boundary.length) return undefined;
    throw refusedPart('a part has no data');
  }

  #data(): FormToken | undefined {
    const end = this.#rest.indexOf(this.#delimiter);
    if (end === 0) {
      this.#move(this.#delimiter.length, 'behind');
      return { type: 'end' };
    }
    const bytes = this.#rest.subarray(0, end < 0 ? this.#certain() : end);
    if (bytes.length === 0) return undefined;
    if (this.#mustBeAscii && !isAscii(bytes)) throw notUtf8();
    this.#move(bytes.length, 'data');
    return { type: 'data', bytes };
  }

  /** Returns the number of bytes that cannot belong to a delimiter of which the rest has not come. */
  #certain(): number {
    const from = Math.max(0, this.#rest.length - this.#delimiter.length);
    const start = this.#rest.subarray(from).lastIndexOf(lineEnd[0] ?? 0) + from;
    const tail = this.#rest.subarray(Math.max(from, start));
    const isDelimiter = start >= from && this.#delimiter.subarray(0, tail.length).equals(tail);
    return isDelimiter ? start : this.#rest.length;
  }

  #move(bytes: number, state: State): 'moved' {
    this.#rest = this.#rest.subarray(bytes);
    this.#state = state;
    return 'moved';
  }
}

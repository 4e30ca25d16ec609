import type { JsonValue, UpstreamRequest } from 'sluice';
import { stringEnd } from 'sluice/internal';

const [quote, comma, colon, opening, closing, list, listEnd, slash] = Buffer.from('",:{}[]\\');

/**
 * A JSON body with members at its top set, or (undefined) taken out. All others stay the bytes that they were, with numbers that no
 * program could hold and names that are given twice. A form, and what is no object, is given back as it is.
 */
export function editMembers<Body extends UpstreamRequest['body']>(
  body: Body,
  edits: Readonly<Record<string, JsonValue | undefined>>,
): Body | Buffer {
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) return body;
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const members = membersOf(bytes);
  if (members === undefined) return body;
  const kept = members.filter(({ name }) => !Object.hasOwn(edits, name));
  const set = Object.entries(edits).filter(([, value]) => value !== undefined);
  const pieces: Buffer[] = [];
  let before = '{';
  for (const [name, value] of set) {
    pieces.push(Buffer.from(`${before}${JSON.stringify(name)}:${JSON.stringify(value)}`));
    before = ',';
  }
  for (const { start, end } of kept) {
    pieces.push(Buffer.from(before), bytes.subarray(start, end));
    before = ',';
  }
  pieces.push(Buffer.from(before === '{' ? '{}' : '}'));
  return Buffer.concat(pieces);
}

interface Member {
  readonly name: string;
  /** From the quote before its name to behind its value. */
  readonly start: number;
  readonly end: number;
}

/** The members at the top of an object; undefined where the bytes are none. */
function membersOf(bytes: Buffer): readonly Member[] | undefined {
  let at = behindBlanks(bytes, 0);
  if (bytes[at] !== opening) return undefined;
  const members: Member[] = [];
  at = behindBlanks(bytes, at + 1);
  if (bytes[at] === closing) return members;
  for (;;) {
    const start = at;
    if (bytes[start] !== quote) return undefined;
    const nameEnd = stringEnd(bytes, start);
    if (nameEnd < 0) return undefined;
    at = behindBlanks(bytes, nameEnd + 1);
    if (bytes[at] !== colon) return undefined;
    const end = valueEnd(bytes, behindBlanks(bytes, at + 1));
    if (end === undefined) return undefined;
    const spelled = bytes.subarray(start, nameEnd + 1);
    const name = spelled.includes(slash ?? 0)
      ? (JSON.parse(spelled.toString()) as string)
      : spelled.toString('utf8', 1, spelled.length - 1);
    members.push({ name, start, end });
    at = behindBlanks(bytes, end);
    if (bytes[at] === closing) return members;
    if (bytes[at] !== comma) return undefined;
    at = behindBlanks(bytes, at + 1);
  }
}

/** Where the value that begins at `start` ends; strings are hopped over. */
function valueEnd(bytes: Buffer, start: number): number | undefined {
  let depth = 0;
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === quote) {
      at = stringEnd(bytes, at);
      if (at < 0) return undefined;
      if (depth === 0) return at + 1;
    } else if (byte === opening || byte === list) depth += 1;
    else if (byte === closing || byte === listEnd) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (byte === comma && depth === 0) return at;
  }
  return undefined;
}

function behindBlanks(bytes: Buffer, start: number): number {
  let at = start;
  for (;;) {
    const byte = bytes[at];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}

/** Finds where members of an object stand in its bytes, and reads their values. */
import type { JsonObject, JsonValue, MutableObject } from '../model/json.ts';
import { stringEnd } from './strings.ts';

const [quote, comma, colon, opening, closing, list, listEnd] = Buffer.from('",:{}[]');

const begin = Buffer.from('{');
const separator = Buffer.from(',');
const finish = Buffer.from('}');

/** Longest value that {@link readMembers} parses, in bytes. */
const longestValue = 4096;

/**
 * Returns the values of these members at the top of a JSON object; of a name that is given twice the last one. Values that are long or no
 * JSON are left out. Undefined for bytes that are no object.
 */
export function readMembers(bytes: Buffer, names: readonly string[]): JsonObject | undefined {
  const found: MutableObject = {};
  const isObject = eachMember(bytes, ({ name, value, end: valueStop }) => {
    if (!names.includes(name)) return;
    delete found[name];
    if (valueStop - value > longestValue) return;
    try {
      found[name] = JSON.parse(bytes.toString('utf8', value, valueStop)) as JsonValue;
    } catch {
      // The parser of the whole body reports it.
    }
  });
  return isObject ? found : undefined;
}

/** The members of an object that is written anew. Those that stay side by side are one piece: few pieces, however many members there are. */
export class Members {
  readonly #bytes: Buffer;
  readonly #parts: Buffer[] = [begin];
  #start = -1;
  #end = -1;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  keep(start: number, stop: number): void {
    if (this.#start < 0) this.#start = start;
    this.#end = stop;
  }

  skip(): void {
    if (this.#start >= 0) {
      this.#separate();
      this.#parts.push(this.#bytes.subarray(this.#start, this.#end));
    }
    this.#start = -1;
  }

  /** Adds a member that was written by itself, in one or two pieces. */
  put(first: Buffer, second?: Buffer): void {
    this.skip();
    this.#separate();
    this.#parts.push(first);
    if (second !== undefined) this.#parts.push(second);
  }

  /** Returns the object with these members. */
  joined(): Buffer {
    this.skip();
    this.#parts.push(finish);
    return Buffer.concat(this.#parts);
  }

  #separate(): void {
    if (this.#parts.length > 1) this.#parts.push(separator);
  }
}

/** Position of a member in the bytes of an object. */
export interface Member {
  readonly name: string;
  /** From the quote before its name to behind its value. */
  readonly start: number;
  /** Index of the first byte of the value. */
  readonly value: number;
  readonly end: number;
}

/** Visits the members at the top of an object in their order. Returns false where the bytes are no object. */
export function eachMember(bytes: Buffer, visit: (member: Member) => void): boolean {
  let at = behindBlanks(bytes, 0);
  if (bytes[at] !== opening) return false;
  at = behindBlanks(bytes, at + 1);
  if (bytes[at] === closing) return true;
  for (;;) {
    const member = memberAt(bytes, at);
    if (member === undefined) return false;
    visit(member);
    at = behindBlanks(bytes, member.end);
    if (bytes[at] === closing) return true;
    if (bytes[at] !== comma) return false;
    at = behindBlanks(bytes, at + 1);
  }
}

function memberAt(bytes: Buffer, start: number): Member | undefined {
  if (bytes[start] !== quote) return undefined;
  const nameEnd = stringEnd(bytes, start);
  if (nameEnd < 0) return undefined;
  const at = behindBlanks(bytes, nameEnd + 1);
  if (bytes[at] !== colon) return undefined;
  const value = behindBlanks(bytes, at + 1);
  const valueStop = valueEnd(bytes, value);
  if (valueStop === undefined) return undefined;
  return { name: nameIn(bytes, start, nameEnd), start, value, end: valueStop };
}

/** Returns the name between the quotes at `start` and `end`; a spelling with escapes that no parser takes stands for itself. */
function nameIn(bytes: Buffer, start: number, end: number): string {
  const plain = bytes.toString('utf8', start + 1, end);
  if (!plain.includes('\\')) return plain;
  try {
    return JSON.parse(`"${plain}"`) as string;
  } catch {
    return plain;
  }
}

/** Returns the index behind the JSON value that begins at `start`; undefined where the bytes end before it does. */
export function valueEnd(bytes: Buffer, start: number): number | undefined {
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

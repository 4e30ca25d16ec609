/** Reads and writes long JSON, quicker than the platform does. */
import type { JsonValue } from '../../model/json.ts';
import { instantiate, pageSize, type ModuleMemory } from '../web-assembly.ts';
import { code } from './code.ts';

/*
 * A translated request of an agent is mostly long texts, with a character here and there that is no Latin letter. One of those is enough
 * for JSON to become a string of two bytes a character, which is read and made at half the speed, and is garbage of twice the size.
 *
 * To be read, such characters are first spelled as escapes: 250 KB in 77 messages take 0.6 ms instead of 1.3. To be written, long texts
 * are escaped sixteen bytes at a time, straight into the bytes that are sent: 0.45 ms instead of 1.2. Both are done by a small module in
 * WebAssembly, and give what JSON.parse and JSON.stringify give.
 */

/** Bodies below this are as quick as ever, in bytes. */
const worthwhile = 64 * 1024;

/** Texts from this length on are escaped here, in UTF-16 units. */
const long = 256;

/** As much of a text as is escaped at once, in UTF-16 units: each takes at most three bytes, or six where it has to be escaped. */
const span = 64 * 1024;

/** As many bytes of JSON as are spelled at once: each may become three. */
const piece = 128 * 1024;

/** Memory layout of the module; see texts.wat. */
const text = 1024;
const written = text + 3 * span + 16;
const memoryEnd = written + 6 * span + 16;

interface Module {
  readonly memory: ModuleMemory;
  escape(length: number, to: number): number;
  spell(length: number, to: number): number;
}

let module: Module | undefined;
let memory = Buffer.alloc(0);

function start(): Module {
  const made = instantiate<Module>(code);
  made.memory.grow(Math.ceil(memoryEnd / pageSize) - 1);
  memory = Buffer.from(made.memory.buffer);
  for (let character = 0; character < 128; character += 1) {
    const spelled = JSON.stringify(String.fromCharCode(character)).slice(1, -1);
    memory.write(spelled, character * 8, 'latin1');
    memory[character * 8 + 7] = spelled.length;
  }
  return made;
}

/**
 * Returns the same value as JSON.parse. The bytes must be valid JSON in UTF-8, checked by the caller, because errors may be missed here.
 */
export function parseJson(bytes: Buffer): JsonValue {
  return JSON.parse(
    (bytes.length < worthwhile ? undefined : inAscii(bytes)) ?? bytes.toString('utf8'),
  ) as JsonValue;
}

/** Returns the same JSON in ASCII alone; undefined where that would be much longer. */
function inAscii(bytes: Buffer): string | undefined {
  const { spell } = (module ??= start());
  let json = '';
  for (let from = 0; from < bytes.length;) {
    let to = Math.min(bytes.length, from + piece);
    // The bytes of a character stay together.
    while (to < bytes.length && ((bytes[to] ?? 0) & 0xc0) === 0x80) to -= 1;
    bytes.copy(memory, text, from, to);
    const length = spell(to - from, written);
    if (length > (to - from) * 1.25) return undefined;
    json += memory.toString('latin1', written, written + length);
    from = to;
  }
  return json;
}

/** Returns the same JSON as JSON.stringify, as bytes if it is long. `about`: its estimated length in bytes. */
export function writeJson(value: JsonValue, about: number): string | Buffer {
  return about < worthwhile ? JSON.stringify(value) : new Writer(about).bytesOf(value);
}

/** The bytes of one JSON text. */
class Writer {
  readonly #module = (module ??= start());
  #bytes: Buffer;
  #length = 0;
  /** Value to write next. */
  #waiting = '';

  constructor(about: number) {
    this.#bytes = Buffer.allocUnsafeSlow(about + 4096);
  }

  bytesOf(value: JsonValue): Buffer {
    this.#value(value);
    this.#flush();
    return this.#bytes.subarray(0, this.#length);
  }

  #value(value: JsonValue | undefined): void {
    if (typeof value === 'string') {
      // Half of a character has to be spelled out.
      if (value.length < long || !value.isWellFormed()) this.#waiting += JSON.stringify(value);
      else this.#text(value);
    } else if (Array.isArray(value)) {
      this.#list(value as readonly JsonValue[]);
    } else if (typeof value === 'object' && value !== null) {
      this.#object(value as Readonly<Record<string, JsonValue | undefined>>);
    } else {
      this.#waiting += JSON.stringify(value ?? null);
    }
  }

  #list(values: readonly JsonValue[]): void {
    let before = '[';
    for (const value of values) {
      this.#waiting += before;
      this.#value(value);
      before = ',';
    }
    this.#waiting += before === '[' ? '[]' : ']';
  }

  #object(values: Readonly<Record<string, JsonValue | undefined>>): void {
    let before = '{';
    for (const name of Object.keys(values)) {
      const value = values[name];
      if (value === undefined) continue;
      this.#waiting += `${before}${JSON.stringify(name)}:`;
      before = ',';
      // Schemas have many values and hardly a long text.
      if (name === 'tools') this.#waiting += JSON.stringify(value);
      else this.#value(value);
    }
    this.#waiting += before === '{' ? '{}' : '}';
  }

  #text(value: string): void {
    this.#waiting += '"';
    this.#flush();
    for (let from = 0; from < value.length;) {
      let to = Math.min(value.length, from + span);
      // Both halves of a character stay together.
      if (to < value.length && (value.charCodeAt(to - 1) & 0xfc00) === 0xd800) to -= 1;
      const length = this.#module.escape(memory.write(value.slice(from, to), text), written);
      this.#makeRoom(length);
      memory.copy(this.#bytes, this.#length, written, written + length);
      this.#length += length;
      from = to;
    }
    this.#waiting = '"';
  }

  #flush(): void {
    this.#makeRoom(3 * this.#waiting.length);
    this.#length += this.#bytes.write(this.#waiting, this.#length);
    this.#waiting = '';
  }

  #makeRoom(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#bytes.length, this.#length + bytes));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

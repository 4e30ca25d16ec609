/** The outline of a long body: the body without its long texts, which is all that is parsed of a request that passes through. */
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { code } from './code.ts';
import type { Outline } from './outline.ts';
import { parseJson } from '../long/index.ts';
import { MarkedTexts } from './marks.ts';
import { instantiate, pageSize, type ModuleMemory } from '../web-assembly.ts';
import { toolsOf } from './tools.ts';
import { writeEndings } from './endings.ts';
import { addressEndings } from '../../model/address-endings.ts';

/**
 * Builds the outline of a body: the same JSON without its long texts, about a tenth of its length. Only the outline is parsed, because an
 * agent's request is mostly long texts that the gateway does not need for checks, routing and pass-through. At 730 KB in 285 messages, in
 * milliseconds of CPU: all of it counted, parsed and checked 2.5, its outline made, parsed and checked 0.9; a whole call by `sluice start`
 * 5.9 and 2.9.
 */

/** Minimum length of a string that is left out, in bytes between its quotes. */
export const longest = 62;

/**
 * Names of members, three levels deep or deeper, whose strings are left out where they are long: of these words no check reads more than
 * that they are some. Signatures, ids, addresses and data are not among them.
 */
export const leftOutNames: readonly string[] = [
  'text',
  'content',
  'thinking',
  'arguments',
  'output',
  'description',
  'reasoning',
  // Of a tool's input.
  'old_string',
  'new_string',
  'file_text',
  'old_str',
  'new_str',
  'command',
  'prompt',
  'patch',
  'code',
  'diff',
];

/** Bytes from which on an outline is quicker than parsing all. */
export const worthwhile = 8 * 1024;

/** The longest body whose outline is made: the scanner's memory is more than twice as much, and is not given back. */
const most = 4 * 1024 * 1024;

/** Memory layout of the scanner; see scan.wat. */
const places = { names: 256, text: 8192 } as const;
const nameLength = 16;
const deepest = 3000;
/** Zeros behind the text, by which the scanner knows its end. */
const padding = 32;

interface Scanner {
  readonly memory: ModuleMemory;
  outline(length: number, to: number, depths: number, values: number, long: number, spans: number): number;
}

let scanner: Scanner | undefined;
let bytesOf = Buffer.alloc(0);

function start(): Scanner {
  const made = instantiate<Scanner>(code);
  bytesOf = Buffer.from(made.memory.buffer);
  leftOutNames.forEach((name, index) => {
    const at = places.names + index * nameLength;
    bytesOf[at] = name.length;
    bytesOf.write(name, at + 1, 'latin1');
  });
  writeEndings(bytesOf, addressEndings);
  return made;
}

/**
 * Returns the outline of the JSON object in the bytes, which must be UTF-8. Returns undefined if the body is not an object, has a duplicate
 * member, exceeds the limits or is too long; the caller then parses all of it and reports the error. `counted`: called with the number of
 * values before any is created.
 */
export function outlineOf(
  bytes: Buffer,
  limits: { readonly depth: number; readonly values: number; readonly members: number },
  counted: (values: number) => void = () => {},
): Outline | undefined {
  if (bytes.length > most) return undefined;
  const { memory, outline } = (scanner ??= start());
  const end = places.text + bytes.length;
  const to = Math.ceil((end + padding) / 16) * 16;
  const spans = Math.ceil((to + bytes.length + padding) / 16) * 16;
  // A text that is left out has more bytes than two numbers.
  const missing = spans + bytes.length / 8 + padding - memory.buffer.byteLength;
  if (missing > 0) {
    memory.grow(Math.ceil(missing / pageSize));
    bytesOf = Buffer.from(memory.buffer);
  }
  bytes.copy(bytesOf, places.text);
  bytesOf.fill(0, end, end + padding);
  const length = outline(
    bytes.length,
    to,
    Math.min(limits.depth, deepest),
    limits.values,
    longest + 2,
    spans,
  );
  if (length < 0) return undefined;
  const members = bytesOf.readUInt32LE(8);
  if (members > limits.members) return undefined;
  counted(bytesOf.readUInt32LE(148));
  const text = bytesOf.toString('utf8', to, to + length);
  const body = parsed(text, to, to + length);
  if (body === undefined) return undefined;
  if (members > 1 && members !== Object.keys(body).length) return undefined;
  const [from, until] = [bytesOf.readUInt32LE(0), bytesOf.readUInt32LE(4)];
  return {
    text,
    body,
    cut: cutMembers(),
    leftOut: bytesOf.readUInt32LE(144),
    mayNameAddress: bytesOf.readUInt32LE(172) !== 0 || text.includes('\\u00'),
    texts: {
      spans: new Uint32Array(memory.buffer.slice(spans, spans + 8 * bytesOf.readUInt32LE(168))),
      beforeTools: bytesOf.readUInt32LE(160),
      inTools: bytesOf.readUInt32LE(164),
    },
    model: from === 0 ? undefined : { start: from - places.text, end: until - places.text },
  };
}

/** Returns the outline that stands between two places of the scanner's memory, where it is an object. Its tools may be those of an earlier one. */
function parsed(text: string, begin: number, end: number): JsonObject | undefined {
  const [from, until] = [bytesOf.readUInt32LE(152), bytesOf.readUInt32LE(156)];
  try {
    if (until === 0) {
      const value: unknown = JSON.parse(text);
      return isObject(value) ? value : undefined;
    }
    const before = bytesOf.toString('utf8', begin, from);
    const after = bytesOf.toString('utf8', until, end);
    // In their own place among the members.
    const value = JSON.parse(`${before}:0${after}`) as Record<string, JsonValue>;
    value.tools = toolsOf(bytesOf.subarray(from, until));
    return value;
  } catch {
    return undefined;
  }
}

function cutMembers(): readonly string[] {
  const count = bytesOf.readUInt32LE(12);
  return Array.from({ length: count }, (_, index) => {
    const [from, until] = [bytesOf.readUInt32LE(16 + 8 * index), bytesOf.readUInt32LE(20 + 8 * index)];
    return JSON.parse(bytesOf.toString('utf8', from, until)) as string;
  });
}

/** Source of the members of a body that are not parsed yet. */
interface Source {
  readonly outline: Outline;
  readonly bytes: Buffer;
  readonly whole: JsonObject;
}

const source = Symbol('source');

/** The members that hold conversations: most of a long request. */
const conversations: ReadonlySet<string> = new Set(['messages', 'input', 'contents']);

/**
 * Returns the whole body of an outline. Members with left-out texts are parsed on first access. Reading the conversation parses the whole body;
 * every other member is parsed alone, because little was left out of it.
 */
export function wholeOf(outline: Outline, bytes: Buffer): JsonObject {
  const { body, cut } = outline;
  const whole = { ...body };
  if (cut.length === 0) return whole;
  Object.defineProperty(whole, source, { value: { outline, bytes, whole } satisfies Source });
  for (const name of cut) Object.defineProperty(whole, name, lateMember(name));
  return whole;
}

/** Names of members that many requests have. */
const lateMembers = new Map<string, PropertyDescriptor>();
const mostLateMembers = 100;

/**
 * Returns a member that is read when it is asked for. Its function knows no body, but finds what it needs in the object that it belongs to: V8 puts
 * the functions of such members among old objects, and whatever they refer to lives until all garbage is collected. The bytes of each
 * long request did, which cost a call of 250 KB a sixth more CPU.
 */
function lateMember(name: string): PropertyDescriptor {
  const known = lateMembers.get(name);
  if (known !== undefined) return known;
  const member: PropertyDescriptor = {
    get(this: { readonly [source]: Source }) {
      return conversations.has(name) ? readAll(this[source])[name] : readAlone(this[source], name);
    },
    enumerable: true,
    configurable: true,
  };
  if (lateMembers.size < mostLateMembers) lateMembers.set(name, member);
  return member;
}

function readAll({ outline, bytes, whole }: Source): JsonObject {
  const all = parseJson(bytes) as JsonObject;
  for (const name of outline.cut) define(whole, name, all[name]);
  return all;
}

function readAlone(from: Source, name: string): JsonValue | undefined {
  const { outline, bytes, whole } = from;
  const value =
    MarkedTexts.of(outline, bytes)?.restoredAll(outline.body[name] ?? null) ?? readAll(from)[name];
  define(whole, name, value);
  return value;
}

function define(whole: JsonObject, name: string, value: JsonValue | undefined): void {
  Object.defineProperty(whole, name, { value, enumerable: true, configurable: true, writable: true });
}

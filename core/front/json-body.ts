import { isUtf8 } from 'node:buffer';
import type { Exchange } from '../call/exchange.ts';
import { measureJson, type JsonCounts, type JsonLimits } from '../json/measure.ts';
import { outlineOf, wholeOf, worthwhile } from '../json/outline/index.ts';
import { isObject, type JsonObject } from '../model/json.ts';
import { GatewayError } from '../sdk/errors.ts';
import { tooManyMembers } from '../sdk/member-names.ts';
import type { BudgetShare } from './byte-budget.ts';

/** Limits on what a stranger can send. */
export interface BodyLimits extends JsonLimits {
  /** Bytes, after decompression. */
  readonly body: number;
}

/** The bytes behind a byte-order mark: JSON has none, and a provider need not forgive one. */
export function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/** The JSON object in the bytes. 400 when it is not UTF-8, not JSON, not an object, too deep or too many values. */
export function parseJsonBody(bytes: Buffer, limits: BodyLimits): JsonObject {
  return readJsonBody(bytes, limits).body;
}

/** What a value takes in memory beside its bytes, about: a member of an object, a list in a list. A body of long texts has few. */
const parsedValue = 64;

/** What {@link understandJson} keeps to. */
export interface UnderstandOptions {
  readonly limits: BodyLimits;
  /** Grows by what the values take in memory: 503 where there is no room. */
  readonly held: BudgetShare;
}

/**
 * Parses and checks the JSON of a call, and leaves it with the call. Of a long request only the outline is; whoever refuses
 * it by that looks at all of it first, so that refusals are the same.
 * Throws 400 as {@link parseJsonBody} does, and with the path of what the format forbids.
 */
export function understandJson(exchange: Exchange, bytes: Buffer, { limits, held }: UnderstandOptions): void {
  const { codec, wire } = exchange;
  if (codec.outlines === true && bytes.length >= worthwhile && isUtf8(bytes)) {
    const outline = outlineOf(bytes, limits, (values) => held.grow(bytes.length + values * parsedValue));
    if (outline !== undefined) {
      exchange.understand(bytes, wholeOf(outline, bytes));
      try {
        exchange.outline(outline, codec.validate(outline.body, wire.params));
        return;
      } catch {
        // What is wrong is told of the whole.
      }
      exchange.decoded = codec.validate(wire.body ?? {}, wire.params);
      return;
    }
  }
  const read = readJsonBody(bytes, limits, held);
  exchange.understand(read.bytes, read.body);
  exchange.decoded = codec.validate(read.body, wire.params);
}

/** Counts the memory that parsed values take. Throws 503 where there is no room. */
export interface HeldBody {
  /** Makes it `bytes` in all. */
  grow(bytes: number): void;
}

/**
 * As {@link parseJsonBody}, with the bytes that say this and nothing else: where a member is given twice providers differ on which of the
 * two counts, and what was checked here must be what is sent. `held` grows by what the values take in memory: 503 where there is no room.
 */
export function readJsonBody(
  bytes: Buffer,
  limits: BodyLimits,
  held?: HeldBody,
): { readonly body: JsonObject; readonly bytes: Buffer } {
  if (bytes.length === 0)
    throw new GatewayError('invalid_json', 'The request has no body: send a JSON object.');
  const { value, counts } = readObject(bytes, limits, 'The body', held);
  const isRepeating = counts.members > 1 && counts.members !== Object.keys(value).length;
  return { body: value, bytes: isRepeating ? Buffer.from(JSON.stringify(value)) : bytes };
}

/**
 * Parses a JSON object that goes on as the bytes that it is, so that no member may be given twice, in the object or in the objects in it.
 * Has the limits of bodies; errors begin with `name`. Throws 400, and 503 where `held` has no room.
 */
export function parseJsonLine(bytes: Buffer, limits: BodyLimits, name: string, held?: HeldBody): JsonObject {
  const { value, counts } = readObject(bytes, limits, name, held);
  const isRepeating =
    counts.members !== Math.max(1, Object.keys(value).length) || counts.inner !== innerMembers(value);
  if (isRepeating) throw new GatewayError('invalid_json', `${name} gives a field twice.`);
  return value;
}

function readObject(
  bytes: Buffer,
  limits: BodyLimits,
  name: string,
  held?: HeldBody,
): { readonly value: JsonObject; readonly counts: JsonCounts } {
  if (!isUtf8(bytes)) throw new GatewayError('invalid_json', `${name} is not valid UTF-8.`);
  const counts = measure(bytes, limits, name);
  held?.grow(bytes.length + counts.values * parsedValue);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    const reason = error instanceof Error ? error.message.slice(0, 200) : '';
    throw new GatewayError('invalid_json', `${name} is not valid JSON: ${reason}`, { cause: error });
  }
  if (!isObject(value)) throw new GatewayError('invalid_type', `${name} must be a JSON object.`);
  return { value, counts };
}

/** Number of members of the objects and lists in an object; an empty one counts as one. */
function innerMembers(value: JsonObject): number {
  let count = 0;
  for (const name in value) {
    const member = value[name];
    if (typeof member !== 'object' || member === null) continue;
    count += Math.max(1, Array.isArray(member) ? member.length : Object.keys(member).length);
  }
  return count;
}

/** Counts depth, values and members before anything is built from them. Throws 400 beyond the limits. */
export function measure(bytes: Buffer, limits: BodyLimits, name = 'The body'): JsonCounts {
  return measureJson(bytes, limits, (limit) => {
    switch (limit) {
      case 'depth':
        return tooMuch(`${name} is nested deeper than ${limits.depth} levels.`);
      case 'values':
        return tooMuch(`${name} holds more than ${limits.values} values.`);
      case 'members':
        return tooMuch(tooManyMembers(name, limits.members));
    }
  });
}

function tooMuch(message: string): GatewayError {
  return new GatewayError('invalid_value', message);
}

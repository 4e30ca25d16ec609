/** Parses JSON bodies of requests within the limits on depth, values and members, and rejects or removes repeated members. */
import { isUtf8 } from 'node:buffer';
import type { Exchange } from '../call/exchange.ts';
import { measureJson, type JsonCounts, type JsonLimits } from '../json/measure.ts';
import { outlineOf, wholeOf, worthwhile } from '../json/outline/index.ts';
import { isObject, type JsonObject } from '../model/json.ts';
import { GatewayError } from '../sdk/errors.ts';
import { tooManyMembers } from '../sdk/member-names.ts';
import type { BudgetShare } from './byte-budget.ts';

/** Limits on a JSON body. */
export interface BodyLimits extends JsonLimits {
  /** Bytes, after decompression. */
  readonly body: number;
}

/** Returns the bytes without a byte-order mark, because JSON allows none and providers may refuse it. */
export function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/** Parses a JSON object. Throws 400 for bytes that are not UTF-8, not JSON, not an object, too deep or of too many values. */
export function parseJsonBody(bytes: Buffer, limits: BodyLimits): JsonObject {
  return readJsonBody(bytes, limits).body;
}

/** Approximate memory of one parsed value beside its bytes, in bytes: a member of an object, or a list in a list. */
const parsedValue = 64;

/** Options of {@link understandJson}. */
export interface UnderstandOptions {
  readonly limits: BodyLimits;
  /** Grows by the memory of the values. Throws 503 where there is no room. */
  readonly held: BudgetShare;
}

/**
 * Parses and validates the JSON body of a call, and stores it in the exchange. Of a long body only the outline is parsed. When the outline is
 * invalid the whole body is validated, so that errors are the same. Throws 400 as {@link parseJsonBody} does, and with the path of a member that
 * the format forbids.
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
        // The validation of the whole body below throws the error.
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
 * Does the same as {@link parseJsonBody}, and also returns the bytes of exactly this object. They are encoded anew where a member is repeated, because providers differ
 * on which of the two counts and the validated body must be the one that is sent. `held` grows by the memory of the values: 503 where there
 * is no room.
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
 * Parses a JSON object whose bytes are forwarded unchanged, and therefore rejects repeated members in the object and in the objects in it.
 * Has the limits of bodies; errors begin with `name`. Throws 400, and 503 where `held` has no room.
 */
export function parseJsonLine(bytes: Buffer, limits: BodyLimits, name: string, held?: HeldBody): JsonObject {
  const { value, counts } = readObject(bytes, limits, name, held);
  const isRepeating =
    counts.members !== Math.max(1, Object.keys(value).length) || counts.inner !== innerMembers(value);
  if (isRepeating) throw new GatewayError('invalid_json', `${name} has a duplicate field.`);
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

/** Returns the number of members of the objects and lists in an object; an empty one counts as one. */
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
        return tooMuch(`${name} has more than ${limits.values} values.`);
      case 'members':
        return tooMuch(tooManyMembers(name, limits.members));
    }
  });
}

function tooMuch(message: string): GatewayError {
  return new GatewayError('invalid_value', message);
}

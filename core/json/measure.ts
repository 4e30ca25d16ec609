/** Counts depth, values and members of JSON before anything is built from it. */
import { stringEnd } from './strings.ts';

/** Limits on the JSON of a client. */
export interface JsonLimits {
  readonly depth: number;
  readonly values: number;
  /** Members of the object at the top. One of a hundred thousand takes seconds to check, and no format has so many. */
  readonly members: number;
}

/** Counts of one JSON text. */
export interface JsonCounts {
  readonly values: number;
  /** Number of members at the top level, duplicates included. An empty object counts as one. */
  readonly members: number;
  /** The same one level down, of objects and lists. */
  readonly inner: number;
}

/**
 * Counts the JSON in the bytes; strings are skipped at the speed of `indexOf`. Calls `refuse` with the first limit that is exceeded and throws
 * what it returns.
 */
export function measureJson(
  bytes: Buffer,
  limits: JsonLimits,
  refuse: (limit: keyof JsonLimits) => Error,
): JsonCounts {
  let depth = 0;
  let values = 0;
  let members = 1;
  let inner = 0;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (byte === 0x22) {
      const end = stringEnd(bytes, index);
      if (end < 0) break;
      index = end;
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      values += 1;
      if (depth === 2) inner += 1;
      if (depth > limits.depth) throw refuse('depth');
    } else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1;
    } else if (byte === 0x2c) {
      values += 1;
      if (depth === 1) members += 1;
      else if (depth === 2) inner += 1;
    }
    if (values > limits.values) throw refuse('values');
    if (members > limits.members) throw refuse('members');
  }
  return { members, values, inner };
}

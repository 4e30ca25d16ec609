import type { EmbedVector } from '../../model/embed.ts';
import type { JsonValue } from '../../model/json.ts';

/** A vector as numbers. Throws when the text is no base64 of 32-bit floats. */
export function asNumbers(vector: EmbedVector): readonly number[] {
  if (typeof vector !== 'string') return vector;
  const bytes = Buffer.from(vector, 'base64');
  if (bytes.length === 0 || bytes.length % 4 !== 0)
    throw new Error('A vector is no base64 of 32-bit floats.');
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4));
}

/** A vector as base64 of little-endian 32-bit floats. */
export function asBase64(vector: EmbedVector): string {
  if (typeof vector === 'string') return vector;
  const bytes = Buffer.allocUnsafe(vector.length * 4);
  vector.forEach((value, index) => bytes.writeFloatLE(value, index * 4));
  return bytes.toString('base64');
}

/** A vector as a provider sent it; undefined when it is none. */
export function readVector(value: JsonValue | undefined): EmbedVector | undefined {
  if (typeof value === 'string') return value;
  return Array.isArray(value) && value.every((one) => typeof one === 'number')
    ? (value as readonly number[])
    : undefined;
}

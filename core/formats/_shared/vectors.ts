/** Embedding vectors as lists of numbers or as base64 of little-endian 32-bit floats: reading, conversion and checks. */
import type { EmbedResult, EmbedVector } from '../../model/embed.ts';
import type { JsonValue } from '../../model/json.ts';
import { unusableResponse } from './upstream-error/index.ts';

/** Returns a vector as numbers. Throws when the text is no base64 of 32-bit floats. */
export function asNumbers(vector: EmbedVector): readonly number[] {
  if (typeof vector !== 'string') return vector;
  const numbers = floatsIn(vector);
  if (numbers === undefined) throw unusableResponse('sent a vector that is damaged');
  return numbers;
}

/** Returns a vector as base64 of little-endian 32-bit floats. */
export function asBase64(vector: EmbedVector): string {
  if (typeof vector === 'string') return vector;
  const bytes = Buffer.allocUnsafe(vector.length * 4);
  vector.forEach((value, index) => bytes.writeFloatLE(value, index * 4));
  return bytes.toString('base64');
}

/** Returns the vector that a provider sent; undefined if it is invalid: empty, malformed, or with numbers outside of 32-bit floats. */
export function readVector(value: JsonValue | undefined): EmbedVector | undefined {
  if (typeof value === 'string') return floatsIn(value) === undefined ? undefined : value;
  if (!Array.isArray(value) || value.length === 0) return undefined;
  return value.every((one) => typeof one === 'number' && Number.isFinite(Math.fround(one)))
    ? (value as readonly number[])
    : undefined;
}

/**
 * Returns the vectors of a list, each an array of numbers or base64 of little-endian 32-bit floats. Throws GatewayError when the list is
 * empty or one of them is neither.
 *
 * @example
 * const vectors = readVectors(data.map((one) => (isObject(one) ? one.embedding : undefined)));
 */
export function readVectors(list: readonly (JsonValue | undefined)[]): readonly EmbedVector[] {
  const vectors = list.map(readVector).filter((vector) => vector !== undefined);
  if (vectors.length === 0 || vectors.length !== list.length)
    throw unusableResponse('sent JSON that is not a list of embeddings');
  return vectors;
}

function floatsIn(base64: string): readonly number[] | undefined {
  const bytes = Buffer.from(base64, 'base64');
  // The decoder skips characters that are not base64. The text is then longer than its bytes.
  const length = base64.replace(/=+$/, '').length;
  if (bytes.length === 0 || bytes.length % 4 !== 0 || Math.ceil((bytes.length * 4) / 3) !== length)
    return undefined;
  const numbers = Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatLE(index * 4));
  return numbers.every((one) => Number.isFinite(one)) ? numbers : undefined;
}

/** Throws unless there is one vector for each input, where their number is known: otherwise vectors cannot be assigned to inputs. */
export function checkCount({ vectors }: EmbedResult, inputs: number | undefined): void {
  if (inputs === undefined || vectors.length === inputs) return;
  throw unusableResponse(`gave ${vectors.length} embeddings for ${inputs} inputs`);
}

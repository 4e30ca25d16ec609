/**
 * Returns a table for lookups by names that clients and providers choose. It has no inherited members: `table['constructor']` is
 * undefined, where an object literal has a function.
 *
 * @example
 * const finishReasons = lookupTable<FinishReason>({ END: 'stop', MAX_TOKENS: 'length' });
 * const reason = finishReasons[String(body.reason)] ?? 'other';
 */
export function lookupTable<Value>(
  entries: Readonly<Record<string, Value>>,
): Readonly<Record<string, Value>> {
  return Object.assign(Object.create(null) as Record<string, Value>, entries);
}

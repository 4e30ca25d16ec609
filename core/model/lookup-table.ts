/**
 * Returns a table to be asked for words of clients and providers. It has no inherited members: asked for `constructor`, it returns
 * undefined, where an object would return a function.
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

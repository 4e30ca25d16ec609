/**
 * A table that is asked for words of clients and providers. It has what is written in it, and nothing that every object has: asked for
 * `constructor`, an object would answer with a function.
 */
export function wordTable<Value>(entries: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> {
  return Object.assign(Object.create(null) as Record<string, Value>, entries);
}

import type { JsonObject, Extra } from 'sluice';
import { reportForeign } from 'sluice/channel-kit';

/**
 * Returns the fields of a client's request that are words of the provider's own, which the client's format does not know. Every other that only
 * some format knows is reported as lost.
 */
export function ownWords(
  extra: Extra | undefined,
  words: readonly string[],
  drop: (path: string) => void,
): JsonObject {
  const own = new Map<string, JsonObject[string]>();
  const rest = new Map<string, JsonObject>();
  for (const [format, fields] of Object.entries(extra ?? {})) {
    const others = Object.entries(fields).filter(([name, value]) => {
      if (!words.includes(name)) return true;
      own.set(name, value);
      return false;
    });
    rest.set(format, Object.fromEntries(others));
  }
  reportForeign(Object.fromEntries(rest), '', undefined, drop);
  return Object.fromEntries(own);
}

/** Names under which callers see what several servers have: without clashes, and the same whichever other servers are up. */
import { createHash } from 'node:crypto';

/** Maximum length that clients and models take. */
const maxLength = 64;

/** Separates a server's prefix from the name that the server gives. */
const separator = '__';

/** Returns functions that name what servers with these prefixes have. */
export function nameScheme(prefixes: readonly string[]): NameScheme {
  const named = prefixes.filter((prefix) => prefix !== '');
  return {
    exposed(prefix, name) {
      const plain = prefix === '' ? name : prefix + separator + name;
      const looksForeign = prefix === '' && named.some((other) => name.startsWith(other + separator));
      if (!looksForeign && plain.length <= maxLength && /^[A-Za-z0-9_-]+$/.test(plain)) return plain;
      // Hash of the tool's own name only, so that it stays the same when other tools are added or removed.
      const hash = createHash('sha256').update(`${prefix}\0${name}`).digest('hex').slice(0, 8);
      const cleaned = (looksForeign ? `_${plain}` : plain).replaceAll(/[^A-Za-z0-9_-]/g, '_');
      return `${cleaned.slice(0, maxLength - hash.length - 1)}_${hash}`;
    },
    prefixOf(exposed) {
      const end = exposed.indexOf(separator);
      const prefix = end === -1 ? undefined : exposed.slice(0, end);
      return prefix !== undefined && named.includes(prefix) ? prefix : '';
    },
  };
}

/** Names of tools and prompts. */
export interface NameScheme {
  /** Returns the name that callers see: at most 64 letters, digits, underscores and hyphens. */
  exposed(prefix: string, name: string): string;
  /** Returns the prefix of the only server that may have given the name. */
  prefixOf(exposed: string): string;
}

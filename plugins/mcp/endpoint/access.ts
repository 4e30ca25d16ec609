/** Which API keys may use which servers and tools. */
import { matchesName, type ApiKey } from 'sluice';
import type { McpOptions, ServedConfig } from '../options.ts';

/** Rights of one key. */
export interface Rights {
  /** Returns true when the key may use anything of the server. */
  mayUse(server: ServedConfig): boolean;
  /** Returns true when the key may use a tool, prompt or the like: `name` is the server's, `exposed` the one that callers see. */
  mayCall(server: ServedConfig, name: string, exposed: string): boolean;
}

/** Returns the permissions of a key; `undefined` for a caller without one, when the gateway requires no keys. */
export function rightsOf(
  key: Pick<ApiKey, 'id' | 'name'> | undefined,
  { access }: Pick<McpOptions, 'access'>,
): Rights {
  const isNamed = (patterns: readonly string[]): boolean =>
    key === undefined ? patterns.includes('*') : matchesName(patterns, key.name) || patterns.includes(key.id);
  const entries = access.filter(({ keys }) => isNamed(keys));
  const isUnrestricted = access.length === 0;
  return {
    mayUse: ({ keys }) => (isUnrestricted || entries.length > 0) && (keys === undefined || isNamed(keys)),
    mayCall(server, name, exposed) {
      const { allow, deny } = server.tools;
      if (!this.mayUse(server) || !matchesName(allow, name) || matchesName(deny, name)) return false;
      return (
        isUnrestricted ||
        entries.some((entry) => matchesName(entry.allow, exposed) && !matchesName(entry.deny, exposed))
      );
    },
  };
}

/** Which API keys may use which servers and tools. */
import type { ApiKey } from 'sluice';
import type { McpOptions, ServedConfig } from '../options.ts';

/** Rights of one key. */
export interface Rights {
  /** True when the key may use anything of the server. */
  mayUse(server: ServedConfig): boolean;
  /** True when the key may use a tool, prompt or the like: `name` is the server's, `exposed` the one that callers see. */
  mayCall(server: ServedConfig, name: string, exposed: string): boolean;
}

/** Returns the rights of a key; `undefined` is a caller without one, where the gateway asks for none. */
export function rightsOf(
  key: Pick<ApiKey, 'id' | 'name'> | undefined,
  { access }: Pick<McpOptions, 'access'>,
): Rights {
  const isNamed = (patterns: readonly string[]): boolean =>
    key === undefined ? patterns.includes('*') : matches(patterns, key.name) || patterns.includes(key.id);
  const entries = access.filter(({ keys }) => isNamed(keys));
  const isUnrestricted = access.length === 0;
  return {
    mayUse: ({ keys }) => (isUnrestricted || entries.length > 0) && (keys === undefined || isNamed(keys)),
    mayCall(server, name, exposed) {
      const { allow, deny } = server.tools;
      if (!this.mayUse(server) || !matches(allow, name) || matches(deny, name)) return false;
      return (
        isUnrestricted ||
        entries.some((entry) => matches(entry.allow, exposed) && !matches(entry.deny, exposed))
      );
    },
  };
}

/** True when a pattern is the name, or has `*` in place of some of its characters. */
export function matches(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) => matchesOne(pattern, name));
}

/** Goes through the name once for each part of the pattern. */
function matchesOne(pattern: string, name: string): boolean {
  const [first = '', ...parts] = pattern.split('*');
  const last = parts.pop();
  if (last === undefined) return pattern === name;
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last))
    return false;
  let at = first.length;
  for (const part of parts) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= name.length - last.length;
}

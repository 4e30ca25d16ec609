import { isObject, maskSecrets, parseJson, type JsonValue } from 'sluice';

/** What stands in place of what was removed. */
const removed = '…';

/** Makes bodies fit to be kept. */
export interface Redactor {
  /** The body of a request, as text: without the credentials that clients send for MCP servers. */
  request(body: JsonValue): string;
  /** A body that is known as JSON, as text. */
  json(body: JsonValue): string;
  /** A body as it went over the wire: JSON, or lines of server-sent events. What should be JSON and is cut off goes. */
  text(body: string): string;
}

/** True for a rule that {@link redactor} understands. */
export function isRule(rule: string): boolean {
  if (!rule.startsWith('/')) return rule.split('.').every((name) => name !== '');
  try {
    return patternOf(rule) !== undefined;
  } catch {
    return false;
  }
}

/**
 * Removes what the rules name: `/pattern/flags` in any text, or the path of a JSON member, `messages.*.content`, where `*` is any member
 * or place and `**` any number of them. What looks like a credential goes in any case.
 */
export function redactor(rules: readonly string[]): Redactor {
  const patterns = rules.flatMap((rule) => (rule.startsWith('/') ? (patternOf(rule) ?? []) : []));
  const paths = rules.flatMap((rule) => (rule.startsWith('/') ? [] : [rule.split('.')]));
  const finish = (text: string): string =>
    maskSecrets(patterns.reduce((left, pattern) => left.replace(pattern, removed), text));
  const json = (body: JsonValue): string => JSON.stringify(paths.length === 0 ? body : without(body, paths));
  return {
    request: (body) => finish(JSON.stringify(without(body, [...paths, ...serverCredentials]))),
    json: (body) => finish(json(body)),
    text(body) {
      if (paths.length === 0) return finish(body);
      const whole = parsed(body);
      if (whole !== undefined) return finish(json(whole));
      const lines = body.split('\n').map((line) => {
        const [, field = '', rest = ''] = /^((?:data|event|id|retry)?:? ?)(.*)$/s.exec(line) ?? [];
        if (!/^[[{]/.test(rest)) return field === '' && rest.trim() !== '' ? removed : line;
        const value = parsed(rest);
        return field + (value === undefined ? removed : json(value));
      });
      return finish(lines.join('\n'));
    },
  };
}

function patternOf(rule: string): RegExp | undefined {
  const [, source, flags = ''] = /^\/(.+)\/([imsu]*)$/s.exec(rule) ?? [];
  return source === undefined ? undefined : new RegExp(source, `g${flags}`);
}

function parsed(text: string): JsonValue | undefined {
  try {
    const value = parseJson(text);
    return typeof value === 'object' ? value : undefined;
  } catch {
    return undefined;
  }
}

type Path = readonly string[];

/** Where requests of all formats have credentials for MCP servers, which need not look like any. */
const serverCredentials: readonly Path[] = [
  'tools.*.authorization',
  'tools.*.headers',
  'mcp_servers.*.authorization_token',
  'tools.*.mcpServers.*.streamableHttpTransport.headers',
  'tools.*.mcp_servers.*.streamable_http_transport.headers',
].map((path) => path.split('.'));

/** The value without what the paths lead to. */
function without(value: JsonValue, paths: readonly Path[]): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  const inside = (name: string, member: JsonValue): JsonValue => {
    const deeper = paths.flatMap((path) => beyond(path, name));
    if (deeper.some((path) => path.length === 0)) return removed;
    return deeper.length === 0 ? member : without(member, deeper);
  };
  if (!isObject(value)) return value.map((member, index) => inside(String(index), member));
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      member === undefined ? undefined : inside(name, member),
    ]),
  );
}

/** What is left of a path behind a member of this name. */
function beyond([first, ...rest]: Path, name: string): readonly Path[] {
  if (first === '**') return [['**', ...rest], ...beyond(rest, name)];
  return first === name || first === '*' ? [rest] : [];
}

/** Removes credentials, and what the operator's rules name, from bodies before they are stored in the usage log. */
import { isObject, maskSecrets, parseJson, type JsonValue } from 'sluice';
import { patternOf, removed } from '../_redaction.ts';

/** Redacts bodies of requests and responses. */
export interface Redactor {
  /** Returns the body of a request as text, without the credentials that clients send for MCP servers. */
  request(body: JsonValue): string;
  /** Returns a JSON body as text. */
  json(body: JsonValue): string;
  /** Redacts a text that is no body: its rules for members have no effect. */
  plain(text: string): string;
  /** Redacts the text of a body: JSON or Server-Sent Events. JSON that is cut off is removed. */
  text(body: string): string;
}

/** Returns true for a rule that {@link redactor} understands. */
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
    plain: finish,
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

function parsed(text: string): JsonValue | undefined {
  try {
    const value = parseJson(text);
    return typeof value === 'object' ? value : undefined;
  } catch {
    return undefined;
  }
}

type Path = readonly string[];

/** Paths of credentials for MCP servers in requests of all formats, because such values need not look like credentials. */
const serverCredentials: readonly Path[] = [
  'tools.*.authorization',
  'tools.*.headers',
  'mcp_servers.*.authorization_token',
  'tools.*.mcpServers.*.streamableHttpTransport.headers',
  'tools.*.mcp_servers.*.streamable_http_transport.headers',
].map((path) => path.split('.'));

/** Returns a value without the members at these paths. */
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

/** Returns the rest of a path behind a member of this name; none where the path does not match. */
function beyond([first, ...rest]: Path, name: string): readonly Path[] {
  if (first === '**') return [['**', ...rest], ...beyond(rest, name)];
  return first === name || first === '*' ? [rest] : [];
}

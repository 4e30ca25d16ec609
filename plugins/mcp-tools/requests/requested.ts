/** MCP servers as a request names them, whatever its format. */
import { GatewayError, type Call, type JsonObject, type JsonValue } from 'sluice';
import type { ServedTool } from '../../mcp/servers/index.ts';
import { isObject, optionalNames, optionalObject, optionalText, wrong } from '../json.ts';

/** One server that a client requests. */
export interface RequestedServer {
  /** Name by which the client knows the server. */
  readonly label: string;
  readonly url?: string | undefined;
  readonly connector?: string | undefined;
  /** Headers for the server. They hold the client's credentials. */
  readonly headers: Readonly<Record<string, string>>;
  /** Path in the request, for errors. */
  readonly at: string;
  /** Returns true for a tool that the client allows. */
  allows(tool: ServedTool): boolean;
  /** Returns true for a tool that may run only after the client has approved the call. */
  needsApproval(tool: ServedTool): boolean;
}

/** A choice that names tools of a server: one of them, or all. */
export interface ServerChoice {
  readonly label: string;
  readonly name?: string | undefined;
}

/** A function, as the format of the client writes one. */
export interface FunctionTool {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonObject;
}

/** Returns the names of the functions that stand for a tool of a choice. */
export type NamesOf = (choice: ServerChoice) => readonly string[];

/** The MCP servers of a request, in one format. */
export interface McpRequest {
  readonly servers: readonly RequestedServer[];
  /** Number of the client's own entries in the tools of the body. */
  readonly ownTools: number;
  /** Maximum number of tool calls that the client allows. */
  readonly maxCalls?: number;
  /**
   * Returns the body without servers and with these functions. `isFirst` is false for later rounds, in which the model must not be forced to call
   * a tool again.
   */
  body(functions: readonly FunctionTool[], namesOf: NamesOf, isFirst: boolean): JsonObject;
}

/** Reads the MCP servers of a request of one format. */
export type RequestReader = (call: Call) => McpRequest;

/** Characters of a header's name, and of its value. */
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const headerValue = /^[\t\x20-\x7e\x80-\xff]{0,8192}$/;
/** Headers that the gateway sets. */
const reserved = /^(?:host|content-.*|transfer-encoding|connection|accept|mcp-.*)$/i;
const maxHeaders = 32;

/** Returns the headers for a server. Throws 400 for one that cannot be sent. */
export function readHeaders(value: JsonValue | undefined, path: string): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  const given = Object.entries(optionalObject(value, path) ?? {});
  if (given.length > maxHeaders) throw wrong(path, `an object with at most ${maxHeaders} headers`);
  for (const [name, text] of given) {
    // The value is a credential: no error shows it.
    if (!headerName.test(name) || typeof text !== 'string' || !headerValue.test(text))
      throw wrong(path, 'an object of headers with texts');
    if (reserved.test(name))
      throw wrong(path, `an object without the header "${name}", which the gateway sets`);
    headers[name.toLowerCase()] = text;
  }
  return headers;
}

/** Returns the header that carries an access token. */
export function tokenHeader(value: JsonValue | undefined, path: string): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'string' || !headerValue.test(value)) throw wrong(path, 'a token');
  return { authorization: /^(?:bearer|basic) /i.test(value) ? value : `Bearer ${value}` };
}

/** Maximum length of the URL of a server. */
const longestUrl = 2048;

/** Returns the URL of a server as it was written. */
export function readUrl(value: JsonValue | undefined, path: string): string | undefined {
  return optionalText(value, path, longestUrl);
}

/** Returns true for a tool that its server declares to change nothing. */
function isReadOnly(tool: ServedTool): boolean {
  return tool.annotations?.readOnlyHint === true;
}

/** Returns the test of a filter: `['a']`, `{tool_names: ['a'], read_only: true}`. Undefined where none was given. */
export function readFilter(
  value: JsonValue | undefined,
  path: string,
): ((tool: ServedTool) => boolean) | undefined {
  if (value === undefined || value === null) return undefined;
  const filter = isObject(value) ? value : { tool_names: value };
  const names = optionalNames(filter['tool_names'], isObject(value) ? `${path}.tool_names` : path);
  const { read_only: readOnly } = filter;
  return (tool) =>
    (names === undefined || names.has(tool.name)) &&
    (typeof readOnly !== 'boolean' || isReadOnly(tool) === readOnly);
}

/** Throws if several servers have the same label. */
export function checkLabels(servers: readonly RequestedServer[]): void {
  const seen = new Set<string>();
  for (const { label, at } of servers) {
    if (seen.has(label))
      throw new GatewayError('invalid_value', `${at}: another server has the name "${label}".`, {
        param: at,
      });
    seen.add(label);
  }
}

/** The tools of the servers of one call, under names that every model takes. */
import { GatewayError, type Call, type JsonObject, type Log } from 'sluice';
import type { ServedTool } from '../mcp/servers/index.ts';
import type { ChosenServer } from './choose.ts';
import { isObject } from './json.ts';
import type { Options } from './options.ts';
import type { FunctionTool, ServerChoice } from './requests/index.ts';

/** A tool of a server as the model knows it. */
export interface OfferedTool {
  readonly server: ChosenServer;
  readonly tool: ServedTool;
  /** Name of the function. */
  readonly name: string;
  readonly needsApproval: boolean;
}

/** The tools of one server. */
export interface ListedServer {
  readonly server: ChosenServer;
  readonly tools: readonly ServedTool[];
}

/** The tools of one server, with the bytes of their definitions. */
interface MeasuredServer extends ListedServer {
  readonly bytes: number;
}

/** Maximum length of a name that every provider accepts. */
const longestName = 64;
/** Maximum length in characters of the description of a tool that is sent to models. */
const longestDescription = 4_096;

/** Tools by the names of their functions. */
export class ToolCatalog {
  readonly listed: readonly ListedServer[];
  /** The functions that the model is given. */
  readonly functions: readonly FunctionTool[];
  readonly #byName = new Map<string, OfferedTool>();
  /** Tools by server and by their name at the server. */
  readonly #byOrigin = new Map<string, OfferedTool>();

  /** `taken`: names of the client's own functions. */
  constructor(listed: readonly ListedServer[], taken: Iterable<string>) {
    this.listed = listed;
    const names = new Set(taken);
    for (const { server, tools } of listed)
      for (const tool of tools) {
        const name = freeName(server.label, tool.name, names);
        names.add(name);
        const offered = { server, tool, name, needsApproval: server.needsApproval(tool) };
        this.#byName.set(name, offered);
        this.#byOrigin.set(originOf(server.label, tool.name), offered);
      }
    this.functions = [...this.#byName.values()].map(({ name, tool }) => ({
      name,
      description: (tool.description ?? '').slice(0, longestDescription),
      schema: tool.inputSchema as JsonObject,
    }));
  }

  /** Returns the tool behind a function. */
  named(name: string): OfferedTool | undefined {
    return this.#byName.get(name);
  }

  /** Returns the tool of a server. */
  ofServer(label: string, name: string): OfferedTool | undefined {
    return this.#byOrigin.get(originOf(label, name));
  }

  /** Returns the functions that a choice names. */
  namesOf({ label, name }: ServerChoice): readonly string[] {
    return [...this.#byName.values()]
      .filter(({ server, tool }) => server.label === label && (name === undefined || tool.name === name))
      .map((one) => one.name);
  }
}

function originOf(label: string, name: string): string {
  return JSON.stringify([label, name]);
}

/** Returns the name of the function for a tool: the tool's own where that is free, else with the label of its server, else with a number. */
function freeName(label: string, name: string, taken: ReadonlySet<string>): string {
  const plain = functionName(name);
  const named = functionName(`${label}_${name}`);
  for (const wanted of [plain, named]) if (!taken.has(wanted)) return wanted;
  for (let number = 2; ; number += 1) {
    const wanted = `${named.slice(0, longestName - 8)}_${number}`;
    if (!taken.has(wanted)) return wanted;
  }
}

/** Returns a name in the letters that every provider takes. */
export function functionName(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, longestName);
  return /^[A-Za-z_]/.test(plain) ? plain : `_${plain}`.slice(0, longestName);
}

/** Limits of the tools of one request. */
export type ListLimits = Pick<Options, 'maxTools' | 'maxToolBytes' | 'toolTimeout'>;

/**
 * Lists the tools of all servers. Rejects with 424 when a server of the request cannot be reached; one that is offered is left out. Rejects with 400
 * where there are too many tools.
 */
export async function listServers(
  call: Call,
  servers: readonly ChosenServer[],
  limits: ListLimits,
  log: Log,
): Promise<readonly ListedServer[]> {
  const signal = AbortSignal.any([call.signal, AbortSignal.timeout(Math.round(limits.toolTimeout * 1000))]);
  const lists = await Promise.all(
    servers.map(async (server) => ({ server, tools: await toolsOf(call, server, signal, log) })),
  );
  const usable = lists.map(({ server, tools: all }) => {
    const tools = all.filter((tool) => isUsable(tool) && server.allows(tool));
    return { server, tools, bytes: sizeOf(tools) };
  });
  checkSize(
    usable.filter(({ server }) => server.at !== undefined),
    limits,
  );
  return fitting(usable, limits, (server) =>
    log.warn(
      { id: call.id, server },
      'an offered MCP server is omitted: too many tools together with the other servers',
    ),
  );
}

async function toolsOf(
  call: Call,
  server: ChosenServer,
  signal: AbortSignal,
  log: Log,
): Promise<readonly ServedTool[]> {
  try {
    return await server.server.listTools(signal);
  } catch (error) {
    if (call.signal.aborted) throw error;
    log.warn({ id: call.id, server: server.label, error }, 'the tools of an MCP server cannot be listed');
    if (server.at === undefined) return [];
    // Why it cannot be reached is not for clients, who may have chosen the address.
    throw new GatewayError(
      'upstream_error',
      `${server.at}: the tools of the MCP server "${server.label}" cannot be listed.`,
      { param: server.at, status: 424, retryable: false, origin: 'upstream', cause: error },
    );
  }
}

/** Returns false for a tool that no provider takes. */
function isUsable({ name, inputSchema }: ServedTool): boolean {
  const schema = inputSchema as JsonObject;
  return (
    typeof name === 'string' &&
    name !== '' &&
    name.length <= 128 &&
    isObject(schema) &&
    schema['type'] === 'object'
  );
}

/** Returns the servers of the request, and the offered ones that fit beside them. */
function fitting(
  lists: readonly MeasuredServer[],
  { maxTools, maxToolBytes }: ListLimits,
  leftOut: (label: string) => void,
): readonly ListedServer[] {
  let count = 0;
  let sum = 0;
  return lists.filter(({ server, tools, bytes }) => {
    const fits = count + tools.length <= maxTools && sum + bytes <= maxToolBytes;
    if (server.at === undefined && !fits) leftOut(server.label);
    if (server.at === undefined && (!fits || tools.length === 0)) return false;
    count += tools.length;
    sum += bytes;
    return true;
  });
}

/** Returns the size in bytes of the definitions that are sent to models. */
function sizeOf(tools: readonly ServedTool[]): number {
  let bytes = 0;
  for (const { name, description = '', inputSchema } of tools)
    bytes += Buffer.byteLength(JSON.stringify([name, description.slice(0, longestDescription), inputSchema]));
  return bytes;
}

function checkSize(lists: readonly MeasuredServer[], { maxTools, maxToolBytes }: ListLimits): void {
  const count = lists.reduce((sum, { tools }) => sum + tools.length, 0);
  if (count > maxTools)
    throw new GatewayError(
      'invalid_value',
      `The MCP servers of this request have ${count} tools; at most ${maxTools} are allowed. Name those that you need (allowed_tools).`,
    );
  const bytes = lists.reduce((sum, list) => sum + list.bytes, 0);
  if (bytes > maxToolBytes)
    throw new GatewayError(
      'invalid_value',
      `The tools of the MCP servers of this request have definitions of ${bytes} bytes; at most ${maxToolBytes} are allowed. Name those that you need (allowed_tools).`,
    );
}

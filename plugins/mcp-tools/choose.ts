/** Decides which servers a call uses, and whether the gateway or the provider calls them. */
import { caller, GatewayError, matchesName, type Call } from 'sluice';
import type { ServedTool, ToolServer } from '../mcp/servers/index.ts';
import type { Options } from './options.ts';
import type { ServerPool } from './pool.ts';
import type { RequestedServer } from './requests/index.ts';

/** A server that the gateway calls for one request. */
export interface ChosenServer {
  readonly label: string;
  readonly server: ToolServer;
  /** Charge for each call of a tool, in micro-dollars. */
  readonly price: number;
  /** Path in the request. Undefined for a server that is offered: the call goes on without it when it fails. */
  readonly at?: string;
  allows(tool: ServedTool): boolean;
  needsApproval(tool: ServedTool): boolean;
}

/** Prefix of a URL that stands for the name of a server. */
const ownScheme = 'sluice:';

/** Finds the servers of a call among those of the operator. */
export class ServerChoices {
  readonly #options: Options;
  readonly #pool: ServerPool;
  /** Names of servers by URL. */
  readonly #byUrl: ReadonlyMap<string, string>;

  constructor(options: Options, pool: ServerPool) {
    this.#options = options;
    this.#pool = pool;
    this.#byUrl = new Map(
      Object.entries(options.servers).flatMap(([name, server]) =>
        'url' in server ? [[plainUrl(server.url), name] as const] : [],
      ),
    );
  }

  /** True when some server is offered to some calls. */
  get offers(): boolean {
    return this.#options.offer.length > 0;
  }

  /** Returns true when the gateway must call at least one of these servers, because the operator has configured it. */
  hasOwn(requested: readonly RequestedServer[]): boolean {
    return requested.some((one) => this.#nameOf(one) !== undefined);
  }

  /** Returns true when the gateway may call all of these servers. */
  canServe(requested: readonly RequestedServer[]): boolean {
    return requested.every((one) => this.#nameOf(one) !== undefined || this.#isOpen(one));
  }

  /** Returns the servers that are offered to a call, without those that the call requests. */
  offered(call: Call, requested: readonly RequestedServer[] = []): readonly ChosenServer[] {
    const excluded = new Set(requested.map((one) => this.#nameOf(one)));
    const names = new Set<string>();
    for (const { servers, models, keys } of this.#options.offer)
      if (mayUse(call, { models, keys })) for (const name of servers) names.add(name);
    return [...names].flatMap((name) => {
      const server = this.#options.servers[name];
      if (server === undefined || excluded.has(name) || !mayUse(call, server)) return [];
      return [this.#own(name, name, { allows: () => true, needsApproval: () => false })];
    });
  }

  /** Returns the servers that a call requests. Throws 400 or 403 for servers that it may not use. Servers of clients are closed with the call. */
  chosen(call: Call, requested: readonly RequestedServer[]): readonly ChosenServer[] {
    if (requested.length > this.#options.maxServers)
      throw new GatewayError(
        'invalid_value',
        `A request may name at most ${this.#options.maxServers} MCP servers.`,
      );
    for (const one of requested) this.#check(call, one);
    return requested.map((one) => {
      const name = this.#nameOf(one);
      if (name !== undefined) return this.#own(name, one.label, one, one.at);
      const { label, url = '', headers, at } = one;
      const server = this.#pool.ofClient(call, { label, url, headers, at });
      return {
        label,
        server,
        price: 0,
        at,
        allows: (tool) => one.allows(tool),
        needsApproval: (tool) => one.needsApproval(tool),
      };
    });
  }

  #own(
    name: string,
    label: string,
    rules: Pick<ChosenServer, 'allows' | 'needsApproval'>,
    at?: string,
  ): ChosenServer {
    const { chargeMicroDollars: price = 0, allowedTools } = this.#options.servers[name] ?? {};
    return {
      label,
      server: this.#pool.named(name),
      price,
      ...(at === undefined ? {} : { at }),
      allows: (tool) =>
        (allowedTools === undefined || allowedTools.includes(tool.name)) && rules.allows(tool),
      needsApproval: (tool) => rules.needsApproval(tool),
    };
  }

  #check(call: Call, one: RequestedServer): void {
    const { label, at } = one;
    const name = this.#nameOf(one);
    const server = name === undefined ? undefined : this.#options.servers[name];
    if (server !== undefined) {
      if (!mayUse(call, server))
        throw new GatewayError('forbidden', `The MCP server "${label}" may not be used for this request.`, {
          param: at,
        });
    } else if (!this.#isOpen(one))
      throw new GatewayError(
        'unsupported_tool',
        one.url === undefined
          ? `${at}: this gateway has no MCP server "${label}".`
          : `${at}: this gateway connects only to MCP servers that its operator has configured.`,
        { param: at },
      );
  }

  #isOpen({ url }: RequestedServer): boolean {
    return this.#options.clientServers && url !== undefined && !url.startsWith(ownScheme);
  }

  /** Returns the name of the configured server that a request names; undefined if there is none. */
  #nameOf({ label, url, connector }: RequestedServer): string | undefined {
    const name =
      url === undefined
        ? (connector ?? label)
        : url.startsWith(ownScheme)
          ? url.slice(ownScheme.length)
          : this.#byUrl.get(plainUrl(url));
    return name !== undefined && Object.hasOwn(this.#options.servers, name) ? name : undefined;
  }
}

/** Returns the one spelling of a URL. */
function plainUrl(text: string): string {
  return URL.parse(text)?.href ?? text;
}

function mayUse(
  call: Call,
  { models, keys }: { readonly models: readonly string[]; readonly keys: readonly string[] },
): boolean {
  const { id = '', name = '' } = call.get(caller) ?? {};
  return matchesName(models, call.model) && (matchesName(keys, id) || matchesName(keys, name));
}

/** Handles calls that use MCP servers, and detects these calls. */
import { chatOf, isChat, type Call, type Next, type PluginTools, type Target } from 'sluice';
import { listServers, ToolCatalog } from './catalog.ts';
import { ServerChoices, type ChosenServer } from './choose.ts';
import { readHistory } from './history.ts';
import { wrong } from './json.ts';
import { ToolLoop } from './loop.ts';
import type { Options } from './options.ts';
import { ServerPool } from './pool.ts';
import {
  asksForServers,
  readerOf,
  remembersServers,
  type McpRequest,
  type RequestReader,
} from './requests/index.ts';
import { replyFormatOf } from './reply-formats.ts';

function hasSeveralChoices({ outline }: Call): boolean {
  return isChat(outline) && (outline.settings.choices ?? 1) > 1;
}

/** The plugin at work. */
export class McpTools {
  readonly #options: Options;
  readonly #tools: PluginTools;
  readonly #pool: ServerPool;
  readonly #choices: ServerChoices;
  readonly #calls: ReturnType<PluginTools['metrics']['counter']>;

  constructor(chosen: Options, tools: PluginTools) {
    this.#options = chosen;
    this.#tools = tools;
    this.#pool = new ServerPool(chosen, tools);
    this.#choices = new ServerChoices(chosen, this.#pool);
    this.#calls = tools.metrics.counter(
      'tool_calls',
      'Calls of tools of MCP servers, by server and result.',
      ['server', 'result'],
    );
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  /** Answers a call that has to do with MCP, and passes all others on. */
  answer(call: Call, next: Next): ReturnType<Next> {
    if (call.operation !== 'chat' && call.operation !== 'count-tokens') return next(call);
    const reader = readerOf(call.format.name);
    if (reader === undefined) return next(call);
    const remembers = remembersServers(call);
    const isConcerned = remembers || this.#choices.offers || asksForServers(call);
    return isConcerned ? this.#concerned(call, next, reader, remembers) : next(call);
  }

  /** Returns true for a call whose servers the gateway calls, and the provider never. */
  callsServersOf(call: Call): boolean {
    const reader = readerOf(call.format.name);
    if (reader === undefined || !asksForServers(call)) return false;
    const { servers } = reader(call);
    if (this.#choices.hasOwn(servers)) return true;
    return this.#choices.canServe(servers) && !this.#isNative(call, 'some');
  }

  async #concerned(call: Call, next: Next, reader: RequestReader, remembers: boolean): ReturnType<Next> {
    const request = reader(call);
    const { servers: requested } = request;
    const offered = hasSeveralChoices(call) ? [] : this.#choices.offered(call, requested);
    if (requested.length === 0 && offered.length === 0) {
      const isForeign = remembers && !this.#isNative(call, 'some');
      return isForeign ? this.#serve(call, next, request, []) : next(call);
    }
    // A provider that calls servers itself gets only the servers of the client.
    if (requested.length > 0 && !this.#choices.hasOwn(requested)) {
      if (this.#isNative(call, 'every') || !this.#choices.canServe(requested)) return next(call);
      if (this.#isNative(call, 'some')) return await this.#firstNative(call, next, request);
    }
    return this.#serve(call, next, request, [...this.#choices.chosen(call, requested), ...offered]);
  }

  /** Returns true when all, or some, of the channels for the model call the servers of a request by themselves. */
  #isNative(call: Call, which: 'every' | 'some'): boolean {
    const targets = this.#tools.catalog.targets(call.model);
    const callsServers = ({ traits }: Target): boolean => traits.mcp?.includes(call.format.name) === true;
    return targets.length > 0 && targets[which](callsServers);
  }

  /** Asks the channels first. Some call servers by themselves; if a channel refuses that, the gateway calls them. */
  async #firstNative(call: Call, next: Next, request: McpRequest): ReturnType<Next> {
    try {
      return await next(call);
    } catch (error) {
      if (!(error instanceof Error) || !('code' in error) || error.code !== 'unsupported_tool') throw error;
      return await this.#serve(call, next, request, this.#choices.chosen(call, request.servers));
    }
  }

  async #serve(
    call: Call,
    next: Next,
    request: McpRequest,
    servers: readonly ChosenServer[],
  ): ReturnType<Next> {
    const { log, runTool } = this.#tools;
    const chat = chatOf(call);
    if (servers.length > 0 && hasSeveralChoices(call))
      throw wrong('n', '1 where tools of MCP servers are used');
    const ownTools = new Set(chat.tools.flatMap((tool) => ('name' in tool ? (tool.name ?? []) : [])));
    const listed = await listServers(call, servers, this.#options, log);
    const catalog = new ToolCatalog(listed, ownTools);
    const history = readHistory(chat.messages, catalog);
    if (call.operation === 'count-tokens')
      return next(
        call.with({
          body: request.body(catalog.functions, (choice) => catalog.namesOf(choice), true),
          messages: history.messages,
        }),
      );
    const loop = new ToolLoop({
      call,
      next,
      request,
      catalog,
      history,
      format: replyFormatOf(call.format.name),
      options: this.#options,
      ownTools,
      readsImages: this.#readsImages(call),
      runTool,
      ran: (server, isFailed) =>
        this.#calls.add({ server: this.#labelOf(server), result: isFailed ? 'failed' : 'completed' }),
    });
    return loop.begin();
  }

  /** Returns the label for metrics. Labels that clients choose have no series of their own. */
  #labelOf(label: string): string {
    return Object.hasOwn(this.#options.servers, label) ? label : 'client';
  }

  #readsImages(call: Call): boolean {
    const takes = this.#tools.catalog.list().find(({ id }) => id === call.model)?.takes;
    return takes === undefined || takes.includes('image');
  }
}

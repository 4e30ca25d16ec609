import type { Observable } from 'rxjs';
import type { z } from 'zod';
import type { Call } from '../call/call.ts';
import type { Upstream, UpstreamRequest } from './channel.ts';
import type { Codecs, Format, Operation } from './format.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { JsonValue } from '../model/json.ts';
import type { ModelTraits } from '../model/traits.ts';
import type { Log } from '../log.ts';
import type { Notices } from './notices.ts';
import type { Load } from '../front/overload.ts';
import type { Processes } from '../state/links/processes.ts';
import type { Catalog } from '../routing/catalog.ts';
import type { DirectCalls } from '../routing/direct-call.ts';
import type { TaskCalls } from '../routing/task-call.ts';
import type { GuardedStream } from '../upstream/guarded/stream.ts';
import type { Health } from '../routing/health/index.ts';
import type { ApiKeys } from '../state/api-keys.ts';
import type { Stores } from '../state/stores.ts';
import type { FetchMedia } from '../upstream/guarded/media.ts';
import type { HttpClient } from '../upstream/send.ts';
import type { UpstreamSockets } from '../upstream/socket.ts';
import type { GatewayConfig } from './config.ts';
import type { Settings } from '../settings/index.ts';
import type { Prices } from '../money/prices/index.ts';
import type { PriceRow } from '../settings/prices.ts';
import type { Bookkeeper, Ledger } from '../money/ledger/index.ts';
import type { Rates } from '../money/rates/index.ts';
import type { UsageLog } from '../money/usage-log/index.ts';

/* ---- Plugins ------------------------------------------------------------------------------------------------------ */

/**
 * When a plugin runs, outermost first:
 * `observe` sees everything, also refusals (headers only: the body is not read yet);
 * `identify` says who calls, by headers alone;
 * — the body is read here, after the caller is known —
 * `admit` refuses or meters: behind it the caller may ask for the model, within its limits, and what the call may cost is reserved;
 * `shape` changes requests and replies, or answers by itself; — a channel is chosen here, and each try runs what follows anew —
 * `translate` puts the request into the channel's words.
 */
export type Stage = 'observe' | 'identify' | 'admit' | 'shape' | 'translate';

/** The rest of the pipeline. Call it once (again only to retry or fall back, before the first event was passed on). */
export type Next = (call: Call) => Promise<Observable<GatewayEvent>>;

/**
 * A plugin at work on one call. The promise is the request phase: `await` what you need, throw a GatewayError to refuse, or answer by
 * yourself without calling `next`. The observable is the response phase: synchronous operators only; unsubscribing cancels everything up
 * to the provider's socket. Returning what `next` gave costs nothing per event.
 */
export type Handler = (call: Call, next: Next) => Promise<Observable<GatewayEvent>>;

/** What `setup` gets besides its options. */
export interface PluginTools {
  /** Writes lines that carry the plugin's name; known secrets are masked. */
  readonly log: Log;
  readonly stores: Stores;
  readonly apiKeys: ApiKeys;
  readonly catalog: Catalog;
  /** Calls of the gateway's own, to a channel of its choice. Works once the gateway has been built, not during `setup`. */
  readonly directCalls: DirectCalls;
  /** Questions to providers about tasks that they work on. As `directCalls`, not during `setup`. */
  readonly taskCalls: TaskCalls;
  /** Streams a file from a URL that a provider gave. */
  readonly download: GuardedStream;
  readonly prices: Prices;
  readonly ledger: Ledger;
  readonly bookkeeper: Bookkeeper;
  readonly usageLog: UsageLog;
  readonly rates: Rates;
  /** What is known of channels' health. */
  readonly health: Health;
  /** How much this process has to do. */
  readonly overload: Load;
  /** The processes that serve together, of which this is one. */
  readonly processes: Processes;
  /** The settings in force; secrets in them are for their owners alone. */
  readonly settings: Settings;
  readonly notices: Notices;
  /** Adds a route of the plugin's own, outside the pipeline: no key is asked. Paths of formats cannot be taken. */
  readonly route: (
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    handler: RouteHandler,
  ) => void;
  /** Adds a route of the plugin's own inside the pipeline: its caller is identified and admitted; the stages behind that are about models. */
  readonly endpoint: (endpoint: Endpoint) => void;
  /** Adds a way to tell that a request comes from whoever runs the gateway, who may see what strangers may not. */
  readonly operator: (isOperator: (request: import('node:http').IncomingMessage) => Promise<boolean>) => void;
  /** The most that any running plugin reads of replies. */
  readonly reads: () => Reads;
  /** Fetches images and files from URLs that clients gave: from public addresses alone, and within the limits of the settings. */
  readonly fetchMedia: FetchMedia;
  /** The format of a name; undefined when there is none. */
  readonly format: (name: string) => Format | undefined;
  /** Runs when the gateway closes or this configuration is replaced. */
  readonly onClose: (job: () => void | Promise<void>) => void;
}

/** A plain request handler for a plugin's own route. */
export type RouteHandler = (
  request: import('node:http').IncomingMessage,
  response: import('node:http').ServerResponse,
  params: Readonly<Record<string, string>>,
) => void | Promise<void>;

/** A route that answers from what the gateway keeps: operation `state`, no model, no channel. */
export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** path-to-regexp 8 pattern: `/v1/things/:id`. */
  readonly path: string;
  /** The format in which it answers and refuses. */
  readonly format: string;
  /** True when this request wants a stream: the handler then answers with `frames` events of server-sent events. */
  streams?(query: URLSearchParams): boolean;
  /**
   * Answers with one `result` event, whose value is the reply's body, or with `frames`. A JSON body of the request is `call.body`
   * (an empty object where none was sent); `params` are the path's.
   */
  handle(call: Call, params: Readonly<Record<string, string>>): Promise<Observable<GatewayEvent>>;
}

/** `content` turns pass-through off, so that every reply comes as decoded events; `usage` makes streams tell their usage. */
export type Reads = 'nothing' | 'usage' | 'content';

/** What a plugin declares. `definePlugin` carries its types; only `name`, `stage` and `setup` are required. */
export interface PluginSpec<Schema extends z.ZodType> {
  /** The file's or folder's name. */
  readonly name: string;
  readonly stage: Stage;
  /** Plugins of the same or an earlier stage that must run before this one. It is an error when one of them is off. */
  readonly after?: readonly string[];
  /** Plugins of the same stage that must run after this one, where they are on. */
  readonly before?: readonly string[];
  /** What it reads of replies. Default `nothing`. */
  readonly reads?: Reads;
  /** True: discovery alone does not switch it on, an entry in the config does. */
  readonly whenListed?: boolean;
  /** A zod object; every member has a default, so that a file dropped into the folder runs. */
  readonly options?: Schema;
  /** Runs once at start-up. Name the inner function: it shows in stack traces. */
  setup(options: z.output<Schema>, tools: PluginTools): Handler | Promise<Handler>;
}

/** A plugin in the config's list: its options, or the wish to have it off. */
export interface PluginEntry {
  readonly kind: 'plugin';
  readonly spec: PluginSpec<z.ZodType>;
  readonly options: unknown;
  readonly enabled: boolean;
}

/** What a plugin file exports by default: call it with options in `gateway.config.ts`, or switch the plugin off. */
export interface Plugin<Schema extends z.ZodType = z.ZodType> {
  (options?: z.input<Schema>): PluginEntry;
  readonly spec: PluginSpec<Schema>;
  off(): PluginEntry;
}

/** Declares a plugin. See `plugins/README.md` for a whole example. */
export function definePlugin<Schema extends z.ZodType>(spec: PluginSpec<Schema>): Plugin<Schema> {
  const wide = spec as unknown as PluginSpec<z.ZodType>;
  const plugin = (options?: z.input<Schema>): PluginEntry => ({
    kind: 'plugin',
    spec: wide,
    options: options ?? {},
    enabled: true,
  });
  return Object.assign(plugin, {
    spec,
    off: (): PluginEntry => ({ kind: 'plugin', spec: wide, options: {}, enabled: false }),
  });
}

/* ---- Channels ----------------------------------------------------------------------------------------------------- */

/** Options that every channel kind takes. */
export interface ChannelOptions {
  /** Names this channel in the log and the dashboard. Default: the kind's name. */
  readonly id?: string;
  readonly key?: string | undefined;
  /** Several keys of one account family. */
  readonly keys?: readonly string[];
  readonly baseUrl?: string;
  /**
   * Public names (with `*` patterns), or a map from public name to the provider's name. In a map the stars of a public name carry over:
   * `'gpt-*': 'openai/gpt-*'`. `'discover'`: what the provider lists, and nothing else. Default: the kind's own list.
   */
  readonly models?: readonly string[] | Readonly<Record<string, string>> | 'discover';
  /** True: the provider is asked for its models now and then, so that model lists have those that fit the patterns of `models`. */
  readonly discover?: boolean;
  /** Higher is tried first. Default 0. */
  readonly priority?: number;
  /** Share among channels of one priority. Default 1. */
  readonly weight?: number;
  /** Headers of every request to this provider, after the channel's own: set, or taken off. Names in any case. */
  readonly headers?: {
    readonly set?: Readonly<Record<string, string>>;
    readonly remove?: readonly string[];
  };
  /**
   * Members of every JSON body, by path (`generationConfig.seed`, `tools.0.strict`), and texts of every form, by name: set, or taken off, in
   * the words of the format that the channel speaks. What is taken off goes first.
   */
  readonly body?: {
    readonly set?: Readonly<Record<string, JsonValue>>;
    readonly remove?: readonly string[];
  };
  /** Instructions for every chat: before the client's own, unless `place` says otherwise. */
  readonly systemPrompt?: string | { readonly text: string; readonly place?: 'before' | 'after' | 'instead' };
  /** `http://user:password@host:port`: connections are tunnelled through it, with CONNECT. Its own certificate is one that Node trusts. */
  readonly proxy?: string;
  /** Milliseconds, where they differ from the gateway's `timeouts` and `routing`. */
  readonly timeouts?: {
    readonly connect?: number;
    readonly idle?: number;
    readonly firstToken?: number;
    readonly attempt?: number;
  };
  /** PEM texts of certificates and their key, a server name, or `verify: false` for a provider whose certificate nobody vouches for. */
  readonly tls?: {
    readonly ca?: string | readonly string[];
    readonly cert?: string;
    readonly key?: string;
    readonly servername?: string;
    readonly verify?: boolean;
  };
  /** Further members of bodies by which this provider chooses models by itself: see `routingFields` of the kind. */
  readonly routingFields?: readonly string[];
  /** Model traits by public or provider's name (`*` allowed) that differ from what the kind says. */
  readonly traits?: Readonly<Record<string, ModelTraits>>;
}

/** What a channel kind's `setup` gets besides its options. */
export interface ChannelTools {
  readonly log: Log;
  /** The keys, in the order of `call.target.key.index`; empty where there is none. */
  readonly keys: readonly string[];
  /** Requests to this channel's provider, with the operator's headers, proxy and times. */
  readonly http: HttpClient;
  /** WebSockets to this channel's provider, for `connect`. */
  readonly sockets: UpstreamSockets;
  readonly format: (name: string) => Format | undefined;
  readonly onClose: (job: () => void | Promise<void>) => void;
}

/** What one instance of a channel kind can do. */
export interface ChannelParts {
  readonly speaks: { readonly [O in Operation]?: readonly string[] };
  /** Shapes that only this kind speaks: a codec for an operation, under its own format name in `speaks`. */
  readonly codecs?: Codecs;
  traits?(upstreamModel: string): ModelTraits;
  /** Asks the provider which models it has, by its own names. Rejects when it does not say. Absent where it cannot be asked. */
  listModels?(): Promise<readonly string[]>;
  /** See {@link Channel.open}; `call.target.key.index` is the place of the key to use in `tools.keys`. */
  open(call: Call, request: UpstreamRequest): Promise<Upstream>;
  /** See {@link Channel.connect}. */
  connect?(call: Call, request: UpstreamRequest): Promise<Observable<GatewayEvent>>;
}

/** What a channel kind declares. `defineChannel` carries its types; only `name` and `setup` are required. */
export interface ChannelSpec<Schema extends z.ZodObject> {
  /** The file's name. */
  readonly name: string;
  /** Models served when the config names none: names and patterns, or `discover` for those that the provider lists. */
  readonly models?: readonly string[] | 'discover';
  /** The provider's names in the list of known models: whose prices and limits its models have, and which names stand behind patterns. */
  readonly catalogue?: readonly string[];
  /** What its models cost, whatever the list says: rows as in the config's `prices`, by the provider's name or pattern. */
  readonly prices?: Readonly<Record<string, PriceRow>>;
  /** Whether `discover` is on unless the config says otherwise. Default false. */
  readonly discover?: boolean;
  /** False when the kind needs no key. Default true. */
  readonly needsKey?: boolean;
  /** Options beyond those that every kind takes. */
  readonly options?: Schema;
  /**
   * Members at the top of a request's body by which this provider chooses models, or what else costs money, by itself. They are refused
   * to keys that may use certain models alone, and to those with a budget in dollars.
   */
  readonly routingFields?: readonly string[];
  setup(options: ChannelOptions & z.output<Schema>, tools: ChannelTools): ChannelParts;
}

/** A channel in the config's list. */
export interface ChannelEntry {
  readonly kind: 'channel';
  readonly spec: ChannelSpec<z.ZodObject>;
  readonly options: ChannelOptions & Readonly<Record<string, unknown>>;
}

/** What a channel file exports by default: call it with options in `gateway.config.ts`. */
export interface ChannelKind<Schema extends z.ZodObject = z.ZodObject> {
  (options?: ChannelOptions & z.input<Schema>): ChannelEntry;
  readonly spec: ChannelSpec<Schema>;
}

/** Declares a channel kind. See `channels/README.md` for a whole example. */
export function defineChannel<Schema extends z.ZodObject>(spec: ChannelSpec<Schema>): ChannelKind<Schema> {
  const wide = spec as unknown as ChannelSpec<z.ZodObject>;
  const channel = (options?: ChannelOptions & z.input<Schema>): ChannelEntry => ({
    kind: 'channel',
    spec: wide,
    options: (options ?? {}) as ChannelEntry['options'],
  });
  return Object.assign(channel, { spec });
}

/* ---- Formats and the config --------------------------------------------------------------------------------------- */

/** Declares a format: one folder in `core/formats/`. */
export function defineFormat(format: Format): Format {
  return format;
}

/** Declares the operator's configuration; it only carries the types. Falsy entries of `plugins` and `channels` are passed over. */
export function defineConfig(config: GatewayConfig): GatewayConfig {
  return config;
}

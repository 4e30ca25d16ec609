/** Public types for authors of channels: options, declaration of a channel kind, parts of a channel, and its entry in the config. */
import type { Observable } from 'rxjs';
import type { z } from 'zod';
import type { Codecs, Operation, SessionWatch } from '../format.ts';
import type { GatewayEvent } from '../../model/event.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import type { PriceRow } from '../../settings/prices.ts';
import type { KeyRegion, PricedModel, Upstream, UpstreamRequest } from '../channel.ts';
import type { Download, HttpClient, SocketClient } from './http.ts';
import type { Call } from './call.ts';
import type { Log } from './tools.ts';

/**
 * Options that every channel kind takes.
 *
 * @example
 * openai({ id: 'work', key: env('OPENAI_API_KEY'), models: { fast: 'gpt-5-mini' }, priority: 1 })
 */
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
   * `{ name, baseModel }` in place of the provider's name states which known model stands behind a name of your own, such as that of an
   * Azure deployment: its price, limits and traits apply. `baseModel` is the provider's name of the model, or `PROVIDER/MODEL` for a model
   * of another provider in the catalogue, such as `openai/gpt-4o`. Default: the public name, where the catalogue has a model of that name.
   */
  readonly models?:
    | readonly string[]
    | Readonly<Record<string, string | { readonly name: string; readonly baseModel?: string | undefined }>>
    | 'discover';
  /** True: the provider's model list is requested periodically, so that model lists have those that match the patterns of `models`. */
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
  /** Instructions for every chat. `place` relative to the client's instructions. Default: `before`. */
  readonly systemPrompt?: string | { readonly text: string; readonly place?: 'before' | 'after' | 'instead' };
  /** `http://user:password@host:port`: connections are tunnelled through it, with CONNECT. Its own certificate is one that Node trusts. */
  readonly proxy?: string;
  /** Timeouts in milliseconds. Default: those of the gateway's `timeouts` and `routing`. */
  readonly timeouts?: {
    readonly connect?: number;
    readonly idle?: number;
    readonly firstToken?: number;
    readonly attempt?: number;
  };
  /** PEM texts of certificates and their key, a server name, or `verify: false` to accept every certificate of the provider. */
  readonly tls?: {
    readonly ca?: string | readonly string[];
    readonly cert?: string;
    readonly key?: string;
    readonly servername?: string;
    readonly verify?: boolean;
  };
  /** Further members of bodies by which this provider itself chooses models: see `routingFields` of the kind. */
  readonly routingFields?: readonly string[];
  /** Addresses that a provider may read or write for clients: `s3://bucket/shared/` with all below, `gs://bucket/a.pdf`. Default: those of the web. */
  readonly mayRead?: readonly string[];
  readonly mayWrite?: readonly string[];
  /** Omit a member that the provider rejects in a second attempt and in later calls. Default: true. */
  readonly learn?: boolean;
  /** Traits by public or provider's name of the model (`*` allowed), which override those of the kind. */
  readonly traits?: Readonly<Record<string, ModelTraits>>;
}

/**
 * An identity at an OAuth 2.0 authorization server, whose access tokens authorize the requests of a channel (client credentials grant,
 * RFC 6749, section 4.4): for providers behind a company's own gateway.
 *
 * @example
 * openaiCompatible({
 *   name: 'inside', baseUrl: 'https://models.corp.example/v1', models: ['*'],
 *   identity: {
 *     kind: 'oauth2', tokenUrl: 'https://login.corp.example/oauth2/token', scope: 'models.use',
 *     clientId: env('MODELS_CLIENT_ID'), clientSecret: env('MODELS_CLIENT_SECRET'),
 *   },
 * })
 */
export interface OAuth2Identity {
  readonly kind: 'oauth2';
  /** The token endpoint of the authorization server. */
  readonly tokenUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** Scopes, separated by spaces. */
  readonly scope?: string | undefined;
  /** Audience of the token, where the authorization server requires one. */
  readonly audience?: string | undefined;
  /** Place of the client secret: in an `authorization` header (`basic`) or in the form (`post`). Default: `basic`, which every server supports. */
  readonly clientAuth?: 'basic' | 'post' | undefined;
}

/**
 * Options of a channel in a config: those of all kinds, those of its own kind, and the authorization of requests without a key. `Own` are the
 * options of the kind.
 *
 * @example
 * const options: ChannelConfig = { key: env('OPENAI_API_KEY'), priority: 1 };
 */
export type ChannelConfig<Own extends object = object> = ChannelOptions &
  Omit<Own, 'identity' | 'credentials'> & {
    /** Authorization of requests in place of a key, or in addition to it. A kind can have further identities. */
    readonly identity?: OAuth2Identity | OptionOf<Own, 'identity'>;
    /**
     * `client`: requests carry the credential that each client has brought for the provider, in place of a key of the channel. Its key of
     * this gateway comes in an `x-sluice-key` header. No other channel gets the credential. A kind may know other values.
     */
    readonly credentials?: 'client' | OptionOf<Own, 'credentials'>;
  };

/** The type of one of the options of a kind; undefined where it has none of that name. */
type OptionOf<Own, Name extends string> = Own extends { readonly [N in Name]?: infer Value }
  ? Value | undefined
  : undefined;

/**
 * Tools that a channel kind's `setup` receives besides its options.
 *
 * @example
 * setup(options, { http, keys }) {
 *   return { speaks: { chat: ['chat-completions'] }, open: (call, request) => http.send(call, requestFor(request, keys)) };
 * }
 */
export interface ChannelTools {
  readonly log: Log;
  /** The keys, in the order of `call.target.key.index`; empty if there are none. */
  readonly keys: readonly string[];
  /** Requests to this channel's provider, with the operator's headers, proxy and times. */
  readonly http: HttpClient;
  /** WebSockets to this channel's provider, for `connect`. */
  readonly sockets: SocketClient;
  /** Streams a file from a URL that the provider gave. */
  readonly download: Download;
  /** Runs when the gateway closes or this configuration is replaced. */
  onClose(job: () => void | Promise<void>): void;
}

/**
 * Parts of one instance of a channel kind.
 *
 * @example
 * const parts: ChannelParts = { speaks: { chat: ['chat-completions'] }, open: (call, request) => http.send(call, addressed(request)) };
 */
export interface ChannelParts {
  /** For each operation the formats spoken, best first. An operation that is absent is answered 503. */
  readonly speaks: { readonly [O in Operation]?: readonly string[] };
  /**
   * Codecs of wire formats that only this kind speaks, by operation. A codec's `format` stands in {@link speaks}. `defineCodec` of
   * `sluice/channel-kit` makes one.
   */
  readonly codecs?: Codecs;
  /**
   * Objects that the provider stores for its account, by the format of their API: `{ 'chat-completions': ['files', 'batches'] }`. The names are
   * those of the paths. Requests for these objects call `open` with the operation `state`. Default: none.
   */
  readonly keeps?: Readonly<Record<string, readonly string[]>>;
  /** Price of requests in a batch, as a share of the price of single requests: 0.8 for a fifth less. */
  readonly batchShare?: number;
  /**
   * Path of the member in which a batch of the chat-completions API names its model, where its lines name none: `model`, or
   * `request_params.model`. Absent: the lines name it.
   */
  readonly batchModel?: string;
  /** The provider's names in the list of known models, where they depend on the options of the channel. Default: those of the kind. */
  readonly catalogue?: readonly string[];
  /** Returns what a call cost in dollars, as the provider states it in the usage of a reply; undefined where it states nothing. */
  statedCost?(usage: JsonObject): number | undefined;
  /** True where the provider's model list has prices, so that the list is requested whatever models the channel serves. */
  readonly listsPrices?: boolean;
  /** The regions of the provider, each with each of its keys, in the order of `ChannelKey.index`. Absent: one region with all keys. */
  readonly regions?: readonly KeyRegion[];
  /** Returns the traits of a model, by the provider's name. */
  traits?(upstreamModel: string): ModelTraits;
  /**
   * Traits of models that reason according to the list of known models alone, where {@link traits} say `reasoning: 'none'`: how reasoning is
   * requested. Default: an effort, in chat completions and Responses.
   */
  readonly thinking?: ModelTraits;
  /** Requests the provider's own model names, with prices where it has them. Rejects when the provider fails. Absent: the provider has no list. */
  listModels?(): Promise<readonly (string | PricedModel)[]>;
  /**
   * Sends the request. Resolves when status and headers are there, whatever the status; rejects with GatewayError when there is no answer.
   * Applies backpressure by `call.gate`, and releases the connection when the call ends, as `tools.http` does. `call.target.key.index`
   * is the place of the key to use in `tools.keys`.
   */
  readonly open: (call: Call, request: UpstreamRequest) => Promise<Upstream>;
  /**
   * Opens a WebSocket to the provider and sends the messages of `call.input`, as `tools.sockets` does. Resolves when it is open, with the messages
   * that come as `message` events; rejects with GatewayError when it is refused. Absent where the provider has no sessions.
   */
  readonly connect?: (call: Call, request: UpstreamRequest) => Promise<Observable<GatewayEvent>>;
  /**
   * Watches one session for what the provider charges besides the answers that `answers` watches. Absent where it charges for these alone.
   */
  watch?(answers: SessionWatch): SessionWatch;
}

/**
 * A sign-in by the device authorization grant of OAuth 2.0 (RFC 8628), whose token is the key of a channel.
 *
 * @example
 * login: { deviceUrl: 'https://login.acme.example/device', tokenUrl: 'https://login.acme.example/token', clientId: 'sluice' }
 */
export interface DeviceLogin {
  /** Device authorization endpoint, which returns the code for the person. */
  readonly deviceUrl: string;
  /** Token endpoint, which returns the token once the person has entered the code. */
  readonly tokenUrl: string;
  readonly clientId: string;
  /** Scopes, separated by spaces. */
  readonly scope?: string;
  /** True where companies have the sign-in at hosts of their own: `sluice login NAME --host HOST`. */
  readonly hasOwnHosts?: boolean;
}

/**
 * Declaration of a channel kind. `defineChannel` carries its types; only `name` and `setup` are required.
 *
 * @example
 * defineChannel({ name: 'mine', models: ['mine-*'], options: z.object({ region: z.string().default('eu') }), setup });
 */
export interface ChannelSpec<Schema extends z.ZodObject> {
  /** The file's name. */
  readonly name: string;
  /** Models served when the config names none: names and patterns, or `discover` for those that the provider lists. */
  readonly models?: readonly string[] | 'discover';
  /** The provider's names in the list of known models: whose prices and limits its models have, and which names stand behind patterns. */
  readonly catalogue?: readonly string[];
  /** Prices of its models, before those of the list: rows as in the config's `prices`, by the provider's name or pattern. */
  readonly prices?: Readonly<Record<string, PriceRow>>;
  /** Default of the option `discover`. Default false. */
  readonly discover?: boolean;
  /** False when the kind needs no key. Default true. */
  readonly needsKey?: boolean;
  /** Options beyond those that every kind takes. */
  readonly options?: Schema;
  /**
   * Members at the top of a request's body by which this provider itself chooses models, or other things with a cost. Keys that may use only
   * certain models, and keys with a budget in dollars, must not send them.
   */
  readonly routingFields?: readonly string[];
  /** Sign-in with which `sluice login NAME` gets a key of this provider. */
  readonly login?: DeviceLogin;
  readonly setup: (options: ChannelOptions & z.output<Schema>, tools: ChannelTools) => ChannelParts;
}

/**
 * A channel in the config's list.
 *
 * @example
 * const channels: ChannelEntry[] = [demo(), openai({ key: env('OPENAI_API_KEY', '') })];
 */
export interface ChannelEntry {
  readonly kind: 'channel';
  readonly spec: ChannelSpec<z.ZodObject>;
  readonly options: ChannelOptions & Readonly<Record<string, unknown>>;
}

/**
 * Default export of a channel file: call it with options in `gateway.config.ts`.
 *
 * @example
 * channels: [openai({ key: env('OPENAI_API_KEY') })]
 */
export interface ChannelKind<Schema extends z.ZodObject = z.ZodObject> {
  (options?: ChannelConfig<z.input<Schema>>): ChannelEntry;
  readonly spec: ChannelSpec<Schema>;
}

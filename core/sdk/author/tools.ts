/** Public types of the tools that a plugin's `setup` receives: log, prices, calls of its own, endpoints and routes. */
import type { IncomingMessage } from 'node:http';
import type { Observable } from 'rxjs';
import type { AttemptEvent, GatewayEvent } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Units, Usage } from '../../model/usage.ts';
import type { Codec } from '../codec.ts';
import type { GatewayError } from '../errors.ts';
import type { Operation } from '../format.ts';
import type { Call, Target } from './call.ts';
import type { ApiKeys } from './api-keys.ts';
import type { Catalog, Health } from './catalog.ts';
import type { Rates } from './rates.ts';
import type { GatewayNotices } from './notices.ts';
import type { ClientAddress } from './routes.ts';
import type { WatchPlugins } from './plugin-time.ts';
import type { Workers } from './workers.ts';
import type { PluginMetrics } from './metrics.ts';
import type { Operations, ProcessLoad } from './operations.ts';
import type { Services } from './services.ts';
import type { FetchClientUrl } from './client-url.ts';
import type { AdminRouteHandler, RouteHandler } from './routes.ts';
import type { Sealer } from '../sealer.ts';
import type { Stores } from './stores.ts';

/**
 * Writes structured log lines: fields first, then a sentence. Known secrets are masked.
 *
 * @example
 * log.info({ id: call.id, hits }, 'answered from the cache');
 */
export interface Log {
  debug(fields: object, sentence: string): void;
  info(fields: object, sentence: string): void;
  warn(fields: object, sentence: string): void;
  error(fields: object, sentence: string): void;
}

/**
 * Prices of models, in micro-dollars.
 *
 * @example
 * const cost = prices.cost(call.model, usage)?.microDollars ?? 0;
 */
export interface Prices {
  /** Returns the cost of a call, at the most expensive channel that serves the model. Undefined when the model has no price. */
  cost(model: string, usage: Usage): { readonly microDollars: number } | undefined;
  /** Returns the maximum cost of a call with so many tokens, whichever channel serves it. Undefined when it is unknown. */
  most(model: string, input: number, output: number, units?: Units): number | undefined;
}

/**
 * Call that a plugin makes without a client. The plugin must end it.
 *
 * @example
 * const direct = tools.calls('chat-completions', body, target);
 * try {
 *   return await gathered(direct.call, await direct.send());
 * } finally {
 *   direct.end();
 * }
 */
export interface DirectCall {
  readonly call: Call;
  /** Sends the call; the response comes as decoded events. Rejects as `next` does. Call it once. */
  send(): Promise<Observable<GatewayEvent>>;
  /** Ends the call, up to the provider's socket. */
  end(): void;
}

/**
 * A request that a plugin makes on behalf of a call.
 *
 * @example
 * const embed: SubcallRequest = { operation: 'embed', format: 'embeddings', body: { model: 'text-embedding-3-small', input: 'hello' } };
 */
export interface SubcallRequest {
  readonly operation: Operation;
  /** A format that has the operation: `chat-completions`, `embeddings`, `moderations`, `rerank` … */
  readonly format: string;
  /** The request in that format, with its `model`. */
  readonly body: JsonObject;
  /**
   * Budget to charge: that of the key of the parent call, or none. With `operator` the call is recorded with its cost, but without a key.
   * Default `caller`.
   */
  readonly chargeTo?: 'caller' | 'operator';
  /**
   * True: the call continues when its parent has ended, for a plugin that still needs the response. The plugin must end the call with its own
   * timeout, and must limit the number of such calls. The gateway waits for them when it stops. Default: false.
   */
  readonly outlivesParent?: boolean;
}

/**
 * A tool that a plugin runs for a caller.
 *
 * @example
 * const tool: ToolRun = { name: 'weather', microDollars: 500 };
 */
export interface ToolRun {
  /** Stands as the model in the log, in records and in limits. */
  readonly name: string;
  /** Price of a run that did not fail, in micro-dollars. Default 0. */
  readonly microDollars?: number;
}

/**
 * A route that answers callers with a key from what the gateway keeps: it has no model and reaches no channel.
 *
 * @example
 * tools.endpoint({
 *   method: 'GET',
 *   path: '/v1/greetings',
 *   format: 'chat-completions',
 *   handle: async (call) => of({ type: 'result', value: { hello: call.get(caller)?.name ?? '' } }),
 * });
 */
export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** path-to-regexp 8 pattern: `/v1/things/:id`. */
  readonly path: string;
  /** The format in which it answers and refuses. */
  readonly format: string;
  /** True when this request wants a stream: the handler then answers with `frames` events of server-sent events. */
  streams?(query: URLSearchParams): boolean;
  /**
   * Answers with one `result` event, whose value is the reply's body, or with `frames`; or with an `answer` event, whose status and content
   * type are those of the reply, and `bytes` as they come. A JSON body of the request is `call.body`
   * (an empty object where none was sent); `params` are the path's.
   */
  readonly handle: (
    call: Call,
    params: Readonly<Record<string, string>>,
  ) => Promise<Observable<GatewayEvent>>;
}

/**
 * A call that is independent of its client. The plugin that detached it ends it.
 *
 * @example
 * const own = tools.detach(call);
 * const reply = await own.send((view) => next(view.with({ decoded: true })));
 */
export interface DetachedCall {
  /** The same call with its own gate. Continues when the client has disconnected, or reads slowly. */
  readonly call: Call;
  /** Sends the call through the rest of the pipeline. Rejects as `next` does. Once. */
  send(next: (call: Call) => Promise<Observable<GatewayEvent>>): Promise<Observable<GatewayEvent>>;
  /** Ends the call and lets go of everything, up to the provider's socket. Once, also after a response that was read to its end. */
  end(): void;
}

/**
 * Tools that `setup` receives besides its options.
 *
 * @example
 * setup({ lifetime }, { log, stores }) {
 *   const answers = stores.namespace<string>('my-answers');
 */
export interface PluginTools {
  /** Writes lines that carry the plugin's name; known secrets are masked. */
  readonly log: Log;
  readonly stores: Stores;
  readonly catalog: Catalog;
  /** Looks API keys up, for plugins that identify callers. */
  readonly apiKeys: ApiKeys;
  /** Counts calls for rate limits, for all gateways that share a store. */
  readonly rates: Rates;
  /** Load of this process. */
  readonly overload: ProcessLoad;
  readonly health: Health;
  readonly prices: Prices;
  /** Sends requests to services that the operator has named. */
  readonly http: Services;
  /** State of the gateway: database, channels, workers, budgets. For checks in the background. */
  readonly operations: Operations;
  /** Declares metrics of the plugin, for `GET /metrics`. */
  readonly metrics: PluginMetrics;
  /** Sends messages to the workers of this gateway, for figures of all of them. */
  readonly workers: Workers;
  /** Sends requests to URLs that clients gave: to public addresses alone. */
  readonly fetchClientUrl: FetchClientUrl;
  /**
   * Declares for which calls the plugin calls the MCP servers of the request in the provider's place, in `setup`. Budgets reserve nothing then
   * for what the provider would read of them, because each request that the plugin sends has a reservation of its own.
   */
  callsMcpServers(isCalled: (call: Call) => boolean): void;
  /**
   * Opens the sealer of the gateway's database, for state that clients keep and send back. Rejects where the database fails, or where the
   * secret of the operator (`SLUICE_SECRET`) is too short.
   *
   * @example
   * const sealer = await tools.openSealer();
   * const position = sealer.open('my-plugin cursor', call.get(caller)?.id ?? '', text)?.position;
   */
  openSealer(): Promise<Sealer>;
  /** Returns the codec for chats of a format; undefined where the format has none. For `CallEdits.codec`. */
  chatCodec(format: string): Codec | undefined;
  /**
   * Returns true where the provider of the target gives one answer for each request, so that a chat with several answers (`n`) takes several
   * requests.
   */
  isSingleChoice(call: Call, target: Target): boolean;
  /**
   * Reports that a target failed in an attempt that the plugin goes on with, in the translate stage: circuit breakers and metrics count the
   * failure. Returns the event that names the failed attempt in the response.
   *
   * @example
   * return startWithEvents([tools.reportFailure(target, error)], await next(call));
   */
  reportFailure(target: Target, error: GatewayError): AttemptEvent;
  /** Reports that a target refuses a member of requests, which the plugin leaves out from now on: metrics count it. */
  reportRefusal(target: Target): void;
  /**
   * Makes a chat call to one target, in the given format. Only plugins of the stage `translate` run, so there are no keys, limits and records. Works
   * after the gateway has been built, not during `setup`. Throws GatewayError when the body is not a request of the format.
   */
  calls(format: string, body: JsonObject, target: Target): DirectCall;
  /**
   * Makes a call of any operation on behalf of another one: a judge, a moderation, an embedding. It is routed, retried, recorded with
   * its own id, reserved and charged like calls of clients. Plugins of the stages `observe`, `admit` and `translate` run, but not of `identify`
   * and `shape`, so that guards and caches do not process their own calls. Rate limits and the list of models of the caller's key do not apply,
   * because the operator chose the model. The call has the tags and the end user of its parent. It ends with its parent at the latest, unless
   * `outlivesParent` is set. Works after the gateway has been built, not during `setup`. Throws GatewayError when the body is not a request of the format.
   */
  subcall(parent: Call, request: SubcallRequest): DirectCall;
  /**
   * Detaches a call from its client, for a plugin that needs the response even if the client disconnects. From then on the cost is charged and
   * recorded with the detached call, and not with the response to the client. The gateway waits for detached calls when it stops.
   */
  detach(call: Call): DetachedCall;
  /**
   * Charges a response of the plugin itself: `share` (0 to 1) of the cost of `usage` at the price of `call.model`, in money and in tokens. The
   * usage record has the channel `plugin:NAME`, and tokens per minute count the charged tokens. Without this, a response that no channel gave
   * costs nothing, and its record has the usage in the response.
   */
  chargeAnswer(call: Call, usage: Usage | undefined, share: number): void;
  /**
   * Measures the time of the request phases of all plugins. Call it in `setup`. Costs every call about a microsecond for each plugin, and nothing
   * if no plugin uses it. The callback must not wait.
   */
  watchPlugins(watch: WatchPlugins): void;
  /**
   * Runs a tool as a separate call with the operation `tool`: recorded with its own id and counted by the rate limits of the caller's key. Its
   * price is reserved before the tool runs and charged after it. Plugins of the stages `observe` and `admit` run. The call ends with its parent
   * at the latest, and is charged then too, because the tool may have run. Rejects with GatewayError when a plugin rejects it, and as `run`
   * does. Works after the gateway has been built.
   */
  runTool<T>(parent: Call, tool: ToolRun, run: (call: Call) => Promise<T>): Promise<T>;
  /** Adds a route outside of the pipeline, which requires no API key. Paths of formats are reserved. */
  route(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, handler: RouteHandler): void;
  /**
   * Adds a route for administrators. It requires a session of the admin API, and for methods other than GET also the session's `x-csrf-token`
   * and the gateway's own origin, like the routes of the plugin `admin`. Returns 404 if that plugin is disabled. The audit log has method and path
   * of each request other than GET, unless `records` is true because the handler itself records its changes.
   */
  adminRoute(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    handler: AdminRouteHandler,
    options?: { readonly records?: boolean },
  ): void;
  /** Returns the address of the client of a request to a route, as `call.wire.ip` has it for calls. */
  clientAddress(request: Pick<IncomingMessage, 'headers' | 'socket'>): ClientAddress;
  /** Adds a route inside the pipeline: its caller is identified and admitted; the stages behind that are about models. */
  endpoint(endpoint: Endpoint): void;
  /** Runs the callback for each notice of this name. */
  onNotice<Name extends keyof GatewayNotices>(name: Name, job: (notice: GatewayNotices[Name]) => void): void;
  /**
   * Runs the callback when channels serve other models than before, also when an administrator switches a channel off or on. Forget what you
   * remember of `catalog` then.
   */
  onModelsChanged(job: () => void): void;
  /**
   * Runs when the gateway takes no more calls and lets those that run finish: end what would hold a connection open for long, such as a
   * stream of notifications.
   */
  onDrain(job: () => void): void;
  /** Runs when the gateway closes or this configuration is replaced. */
  onClose(job: () => void | Promise<void>): void;
}

/** Types of the tools that plugins receive in `setup`, with those that are not part of the public API. */
import type { ApiKeys } from '../state/api-keys/index.ts';
import type { DirectCalls, ProviderCalls, Subcalls, TaskCalls, ToolRuns } from '../sdk/direct-call.ts';
import type { Context } from 'koa';
import type { PluginMetrics } from '../sdk/author/metrics.ts';
import type { AdminRequest, RouteContext, RouteHandler } from '../sdk/author/routes.ts';
import type { PluginTools } from '../sdk/author/tools.ts';
import type { Services } from '../sdk/author/services.ts';
import type { FetchClientUrl } from '../sdk/author/client-url.ts';
import type { WatchPlugins } from '../sdk/author/plugin-time.ts';
import type { Workers } from '../sdk/author/workers.ts';
import type { Call, Target } from '../sdk/call.ts';
import type { Codec } from '../sdk/codec.ts';
import type { GatewayError } from '../sdk/errors.ts';
import type { AttemptEvent } from '../model/event.ts';
import type { WholeEndpoint } from '../sdk/endpoint.ts';
import type { Download } from '../sdk/http.ts';
import type { Ledger, Bookkeeper } from '../money/ledger/index.ts';
import type { UsageLog } from '../money/usage-log/index.ts';
import type { Credentials } from '../state/users/credentials.ts';
import type { Users } from '../state/users/index.ts';
import type { Operations } from '../sdk/author/operations.ts';
import type { RuntimeConfig } from './runtime-config/index.ts';
import type { Upkeep } from '../state/upkeep.ts';
import type { Rates } from '../money/rates/index.ts';
import type { Health } from '../sdk/health.ts';
import type { Processes } from '../state/links/processes.ts';
import type { Settings } from '../settings/index.ts';
import { Notices } from '../sdk/notices.ts';
import type { Reads } from '../sdk/author/plugin.ts';
import type { FetchMedia } from '../upstream/guarded/media.ts';
import type { Format } from '../sdk/format.ts';
import type { Log } from '../log.ts';
import type { Sealer } from '../sdk/sealer.ts';
import type { Stores } from '../state/stores.ts';
import type { Catalog } from '../routing/catalog.ts';
import type { Prices } from '../money/prices/index.ts';
import type { Detached, DetachedCalls } from '../call/detached.ts';
import type { Usage } from '../model/usage.ts';
import type { WholeLoad } from '../front/overload.ts';

/** A route of a plugin for whoever runs the gateway. */
export interface AdminRoute {
  readonly plugin: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** True when the handler itself records its changes in the audit log. */
  readonly records: boolean;
}

/** Checks that a request comes from whoever runs the gateway, and that they mean it. Throws the refusal. */
export type AdminCheck = (ctx: RouteContext, route: AdminRoute) => Promise<AdminRequest>;

/** Tools that `setup` of a plugin receives: those of `PluginTools` in full, and others that may change in any release. */
export interface InternalTools {
  /** Writes lines that carry the plugin's name; known secrets are masked. */
  readonly log: Log;
  readonly stores: Stores;
  readonly apiKeys: ApiKeys;
  /** People who sign in. */
  readonly users: Users;
  /** Invitations, passwords and second factors of users. */
  readonly credentials: Credentials;
  readonly catalog: Catalog;
  /** Calls of the gateway's own, to a channel of its choice. Works once the gateway has been built, not during `setup`. */
  readonly calls: DirectCalls;
  /** Calls that a plugin makes on behalf of others. As `calls`, not during `setup`. */
  readonly subcall: Subcalls;
  /** Runs of tools by plugins. As `calls`, not during `setup`. */
  readonly runTool: ToolRuns;
  /** Questions to providers about tasks that they work on. As `calls`, not during `setup`. */
  readonly taskCalls: TaskCalls;
  /** Calls to a channel for objects that its provider stores. */
  readonly providerCalls: ProviderCalls;
  /** Asks services that the operator has named. */
  readonly http: Services;
  /** Declares what the plugin counts. */
  readonly metrics: PluginMetrics;
  /** Asks the workers of this gateway under topics of the plugin's own. */
  readonly workers: Workers;
  /** Sends requests to URLs that clients gave. */
  readonly fetchClientUrl: FetchClientUrl;
  /** Opens the sealer of the database. */
  readonly openSealer: () => Promise<Sealer>;
  /** Returns the codec for chats of a format. */
  readonly chatCodec: (format: string) => Codec | undefined;
  /** True where a provider gives one answer for each request: see `PluginTools.isSingleChoice`. */
  readonly isSingleChoice: (call: Call, target: Target) => boolean;
  /** Reports a failure that a plugin has recovered from: see `PluginTools.reportFailure`. */
  readonly reportFailure: (target: Target, error: GatewayError) => AttemptEvent;
  /** Reports a refused member: see `PluginTools.reportRefusal`. */
  readonly reportRefusal: (target: Target) => void;
  /** Declares for which calls a plugin calls the MCP servers of the request. */
  readonly callsMcpServers: (isCalled: (call: Call) => boolean) => void;
  /** True for a call whose MCP servers a plugin calls. */
  readonly areMcpServersCalled: (call: Call) => boolean;
  /** Has the request phases of all plugins timed. */
  watchPlugins(watch: WatchPlugins): void;
  /** Streams a file from a URL that a provider gave. */
  readonly download: Download;
  readonly prices: Prices;
  readonly ledger: Ledger;
  readonly bookkeeper: Bookkeeper;
  readonly usageLog: UsageLog;
  /** Run-time configuration; absent where a gateway is only tried. */
  readonly runtimeConfig?: RuntimeConfig;
  /** State of the data with retention rules. */
  readonly upkeep: Upkeep;
  readonly rates: Rates;
  /** State of the gateway: see `PluginTools.operations`. */
  readonly operations: Operations;
  /** Health of channels. */
  readonly health: Health;
  /** Load of this process. */
  readonly overload: WholeLoad;
  /** The processes that serve together, of which this is one. */
  readonly processes: Processes;
  /** Calls that go on without their client. */
  readonly detached: DetachedCalls;
  /** Detaches a call from its client: see `PluginTools.detach`. */
  readonly detach: (call: Call) => Detached;
  /** Charges a response of the plugin itself: see `PluginTools.chargeAnswer`. */
  readonly chargeAnswer: (call: Call, usage: Usage | undefined, share: number) => void;
  /** The settings in force; secrets in them are for their owners alone. */
  readonly settings: Settings;
  readonly notices: Notices;
  /** Adds a route outside of the pipeline, which requires no API key. Paths of formats are reserved. */
  readonly route: (
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    handler: RouteHandler,
  ) => void;
  /** Adds a route of the plugin's own inside the pipeline: its caller is identified and admitted; the stages behind that are about models. */
  readonly endpoint: (endpoint: WholeEndpoint) => void;
  /** Returns the address of the client of a request to a route: see `PluginTools.clientAddress`. */
  readonly clientAddress: PluginTools['clientAddress'];
  /** Adds a route that {@link administer} guards. */
  readonly adminRoute: PluginTools['adminRoute'];
  /** Returns the routes of plugins that {@link administer} guards. */
  readonly adminRoutes: () => readonly AdminRoute[];
  /** Sets how a request of whoever runs the gateway is checked. `check` throws what a request that may not pass is answered. */
  readonly administer: (check: AdminCheck) => void;
  /** Adds a check that identifies requests of operators, who may see more than clients. */
  readonly operator: (isOperator: (ctx: Context) => Promise<boolean>) => void;
  /** The most that any running plugin reads of replies. */
  readonly reads: () => Reads;
  /** Fetches images and files from URLs that clients gave: from public addresses alone, and within the limits of the settings. */
  readonly fetchMedia: FetchMedia;
  /** Returns the format with this name; undefined for an unknown name. */
  readonly format: (name: string) => Format | undefined;
  /** Runs the callback for each notice of a name: see `PluginTools.onNotice`. */
  readonly onNotice: PluginTools['onNotice'];
  /** Runs the callback when channels serve other models than before, also when an administrator switches a channel off or on. */
  readonly onModelsChanged: (job: () => void) => void;
  /** Runs when the gateway takes no more calls. */
  readonly onDrain: (job: () => void) => void;
  /** Runs when the gateway closes or this configuration is replaced. */
  readonly onClose: (job: () => void | Promise<void>) => void;
}

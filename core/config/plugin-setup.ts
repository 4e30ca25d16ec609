/** Sets up the plugins of a gateway. */
import { basename } from 'node:path';
import type { Call } from '../sdk/call.ts';
import { sentences, type LoadedConfig } from './config.ts';
import { hideSecretsIn } from '../settings/secret.ts';
import { strictOptions } from './strict-options.ts';
import type { Next, WholeEndpoint } from '../sdk/define.ts';
import { createCallTools } from './call-tools.ts';
import type { AdminCheck, AdminRoute, InternalTools } from './internal-tools.ts';
import { setUpPlugin } from './whole-definitions.ts';
import { administered } from './administered.ts';
import { choosePlugins } from './definitions.ts';
import type { Format } from '../sdk/format.ts';
import { mostRead } from '../sdk/reads.ts';
import { createGuardedFetch } from '../upstream/guarded/fetch.ts';
import { createFetchMedia } from '../upstream/guarded/media.ts';
import { createFetchClientUrl } from '../upstream/guarded/client-url.ts';
import { createGuardedStream } from '../upstream/guarded/stream.ts';
import { openServices } from '../upstream/services.ts';
import { PluginCounters } from '../sdk/counters.ts';
import { workersOf } from '../state/links/peers.ts';
import { Notices } from '../sdk/notices.ts';
import { orderPlugins, type Running } from '../call/pipeline.ts';
import { createDirectCalls } from '../call/direct-call.ts';
import { createSubcalls } from '../call/subcall.ts';
import { createToolRuns } from '../call/tool-run.ts';
import { createProviderCalls } from '../call/provider-call.ts';
import { createTaskCalls } from '../call/task-call.ts';
import { accountOf } from '../money/account/index.ts';
import type { GatewayServices } from './gateway-services.ts';
import type { WatchPlugins } from '../sdk/author/plugin-time.ts';
import type { PluginRoute, IsOperator } from '../front/gateway.ts';
import type { Prices } from '../money/prices/index.ts';

/** Parts that every step of the building needs. */
export interface Build {
  readonly config: LoadedConfig;
  readonly services: GatewayServices;
  readonly notices: Notices;
  readonly problems: string[];
  readonly warnings: string[];
  readonly formats: readonly Format[];
  readonly format: (name: string) => Format | undefined;
  readonly onClose: (job: () => void | Promise<void>) => void;
}

/** Returns the plugins of a gateway in their order. */
async function orderedPlugins({ config, problems }: Build) {
  const file = basename(config.file);
  const { chosen, unlisted } = await choosePlugins(config, problems);
  const reads = mostRead(chosen.map(({ entry }) => entry));
  const off = new Map(
    config.plugins
      .filter(({ entry }) => !entry.enabled)
      .map(({ at, entry }) => [entry.spec.name, `${file} (${at})`]),
  );
  const { order, problems: orderProblems } = orderPlugins(
    chosen.map(({ entry, where }) => ({ ...entry.spec, entry, where })),
    { off, unlisted },
  );
  problems.push(...orderProblems.map((problem) => `${file}: ${problem}`));
  return { reads, order };
}

/** Stands for handlers until they are composed. */
const notBuilt: Next = () => Promise.reject(new Error('The gateway is not built yet.'));

/** Tools that are made when a plugin is set up. */
interface LateTools {
  readonly reads: unknown;
  readonly metrics: unknown;
}

/** Tools that each plugin has for itself. */
interface OwnTools extends LateTools {
  readonly chargeAnswer: unknown;
  readonly adminRoute: unknown;
  readonly route: unknown;
  readonly workers: unknown;
}

/** Tools that all plugins have in common. */
type SharedTools = Omit<InternalTools, keyof OwnTools>;

/** Sets plugins up, and keeps what they register. */
export class PluginSetup {
  readonly running: Running[] = [];
  readonly routes: PluginRoute[] = [];
  readonly endpoints: WholeEndpoint[] = [];
  readonly #adminRoutes: AdminRoute[] = [];
  readonly operators: IsOperator[] = [];
  readonly watchers: WatchPlugins[] = [];
  readonly #serverCallers: ((call: Call) => boolean)[] = [];
  /** The handlers by which plugins make calls, once they are composed. */
  readonly handlers = { translation: notBuilt, subcalls: notBuilt, toolRuns: notBuilt };
  #admin: AdminCheck | undefined;
  readonly #build: Build;
  readonly #catalog: InternalTools['catalog'];
  readonly #prices: Prices;

  constructor(build: Build, catalog: InternalTools['catalog'], prices: Prices) {
    this.#build = build;
    this.#catalog = catalog;
    this.#prices = prices;
  }

  /** Sets all plugins up, unless there are problems already; then only their options are checked. */
  async setUp(): Promise<void> {
    const { problems } = this.#build;
    const { reads, order } = await orderedPlugins(this.#build);
    const shared = this.#shared();
    const counters = new PluginCounters();
    for (const { entry, where, name, stage, after } of order) {
      const schema = strictOptions(entry.spec.options);
      hideSecretsIn(schema, entry.options);
      const parsed = schema.safeParse(entry.options);
      if (!parsed.success) {
        problems.push(...sentences(parsed.error, where));
        continue;
      }
      // A source of secrets was opened before, and sees no call.
      if (problems.length > 0 || entry.spec.secrets !== undefined) continue;
      try {
        const tools = { ...this.#toolsFor(name, shared), reads: () => reads, metrics: counters.of(name) };
        const handler = await setUpPlugin(entry.spec, parsed.data, tools);
        if (typeof handler === 'function') this.running.push({ name, stage, after: after ?? [], handler });
        else problems.push(`${where}: setup returned no handler. Return an async function (call, next).`);
      } catch (error) {
        problems.push(`${where}: setup failed: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }

  /** Returns the tools that all plugins have in common. */
  #shared(): SharedTools {
    const {
      config: { settings },
      services,
      notices,
      format,
      formats,
      onClose,
    } = this.#build;
    const fetchMedia = createFetchMedia(settings.fetch, createGuardedFetch(settings.fetch));
    const fetchClientUrl = createFetchClientUrl(settings.fetch);
    const http = openServices();
    onClose(() => http.close());
    const download = createGuardedStream(settings.fetch, settings.timeouts.idle);
    const callTools = createCallTools(format, { ...services, notices, settings, onClose });
    return {
      ...services,
      ...callTools,
      catalog: this.#catalog,
      calls: createDirectCalls(format, (call) => this.handlers.translation(call)),
      subcall: createSubcalls(formats, (call) => this.handlers.subcalls(call), services.detached),
      runTool: createToolRuns((call) => this.handlers.toolRuns(call)),
      taskCalls: createTaskCalls(format, (call) => this.handlers.translation(call)),
      providerCalls: createProviderCalls(format),
      download,
      prices: this.#prices,
      settings,
      notices,
      detach: (call) => services.detached.detach(call),
      adminRoutes: () => this.#adminRoutes,
      administer: (check) => {
        this.#admin = check;
      },
      endpoint: (endpoint) => this.endpoints.push(endpoint),
      operator: (isOperator) => this.operators.push(isOperator),
      watchPlugins: (watch) => this.watchers.push(watch),
      fetchMedia,
      http,
      fetchClientUrl,
      callsMcpServers: (isCalled) => this.#serverCallers.push(isCalled),
      areMcpServersCalled: (call) => this.#serverCallers.some((isCalled) => isCalled(call)),
      format,
      onDrain: (job) => void notices.on('draining', job),
      onClose,
    };
  }

  /** Returns the tools of one plugin. */
  #toolsFor(name: string, shared: SharedTools): Omit<InternalTools, keyof LateTools> {
    return {
      ...shared,
      log: shared.log.child({ plugin: name }),
      chargeAnswer: (call, usage, share) => accountOf(call).chargeAnswer(name, call.model, usage, share),
      adminRoute: (method, path, answer, { records = false } = {}) => {
        const route = { plugin: name, method, path, records };
        this.#adminRoutes.push(route);
        this.routes.push({
          plugin: name,
          method,
          path,
          handler: administered(() => this.#admin, route, answer),
        });
      },
      route: (method, path, answer) => this.routes.push({ plugin: name, method, path, handler: answer }),
      workers: workersOf(shared.processes.peers, name),
    };
  }
}

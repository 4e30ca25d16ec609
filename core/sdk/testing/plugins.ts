/** `testPlugins`: sets plugins up without a server, sends calls through them, and returns what the channel and the client received. */
import type { z } from 'zod';
import { createEndErrorReporter } from '../../call/end-errors.ts';
import { orderPlugins, type Running } from '../../call/pipeline.ts';
import { timed } from '../../call/plugin-times.ts';
import { readConfig } from '../../config/config.ts';
import type { GatewayConfig } from '../config.ts';
import { closeGatewayServices, openGatewayServices } from '../../config/gateway-services.ts';
import { createLog } from '../../log.ts';
import { EndedCalls } from '../../money/account/ended-calls.ts';
import { accountOf } from '../../money/account/index.ts';
import { createPrices } from '../../money/prices/index.ts';
import { createCatalog } from '../../routing/catalog.ts';
import { createDirectCalls } from '../../call/direct-call.ts';
import { createSubcalls } from '../../call/subcall.ts';
import { createToolRuns } from '../../call/tool-run.ts';
import { createProviderCalls } from '../../call/provider-call.ts';
import { createTaskCalls } from '../../call/task-call.ts';
import { createApiKeys } from '../../state/api-keys/open.ts';
import { openStores } from '../../state/stores.ts';
import { createFetchClientUrl } from '../../upstream/guarded/client-url.ts';
import { openServices } from '../../upstream/services.ts';
import type { WatchPlugins } from '../author/plugin-time.ts';
import type { Next, PluginEntry } from '../define.ts';
import { createCallTools } from '../../config/call-tools.ts';
import type { InternalTools } from '../../config/internal-tools.ts';
import { setUpPlugin } from '../../config/whole-definitions.ts';
import { PluginCounters } from '../counters.ts';
import { workersOf } from '../../state/links/peers.ts';
import { Notices } from '../notices.ts';
import { mostRead } from '../reads.ts';
import type { CallOptions } from './call.ts';
import { allFormats } from './formats.ts';
import { composedAround, scripted, underTest, type ScriptedChannel } from './pipeline.ts';
import { runCall, type Outcome, type RunOptions } from './run-call.ts';

/**
 * Plugins that were set up for a test, with a scripted channel behind them.
 *
 * @example
 * const tested = await testPlugins(redact({ words: ['moonshine'] }));
 * const { text } = await tested.run('Where does it come from?', { reply: 'From moonshine.' });
 * await tested.close();
 */
export interface TestedPlugins {
  /** Sends a call through the plugins. A text is the user's only message. */
  run(call?: string | CallOptions, options?: RunOptions): Promise<Outcome>;
  /** The lines that were logged so far. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** Tools that the plugins received. */
  readonly tools: InternalTools;
  /** Runs the callbacks that the plugins gave to `tools.onModelsChanged`. */
  changeModels(): void;
  /** Closes the plugins and the services of the test. */
  close(): Promise<void>;
}

/**
 * Options of {@link testPlugins}.
 *
 * @example
 * await testPlugins(router(), { channels: { cheap: ['small-*'], dear: ['large-*'] } });
 */
export interface TestOptions {
  /** Channels by id: the models that each serves, or a {@link ScriptedChannel}. Default: one, `test`, with all models. */
  readonly channels?: Readonly<Record<string, readonly string[] | ScriptedChannel>>;
  /** Settings of the config, such as `prices`. */
  readonly settings?: Omit<GatewayConfig, 'plugins' | 'channels'>;
  /** Tools in place of the gateway's own, including those that only plugins of this repository receive. */
  readonly tools?: Partial<InternalTools>;
}

type Entry = PluginEntry | ((options?: never) => PluginEntry);

/**
 * Sets plugins up as a gateway would, in their order, with stores in memory and a scripted channel behind them. Throws the errors of `setup`,
 * and those of invalid options.
 *
 * @example
 * const tested = await testPlugins([promptLimit({ tokens: 100 }), redact({ words: ['moonshine'] })]);
 */
export async function testPlugins(
  plugins: Entry | readonly Entry[],
  { channels = { test: ['*'] }, settings: given = {}, tools: replaced = {} }: TestOptions = {},
): Promise<TestedPlugins> {
  const formats = await allFormats();
  const { settings } = readConfig({ checks: true, ...given }, 'gateway.config.ts');
  const lines: Record<string, unknown>[] = [];
  const log = createLog('debug', {
    write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>),
  });
  const stores = openStores('sqlite::memory:');
  const gatewayServices = openGatewayServices(log, stores, createApiKeys(stores), settings);
  const services = openServices();
  const closers: (() => void | Promise<void>)[] = [];
  const notices = new Notices(log);
  const catalog = createCatalog(Object.entries(channels).map(scripted), 0);
  const { listed, order } = ordered(plugins);
  const onClose: InternalTools['onClose'] = (job) => void closers.push(job);
  const counters = new PluginCounters();
  const watchers: WatchPlugins[] = [];
  const formatNamed = (name: string) => formats.find((one) => one.name === name);
  let translation: Next = notInTests;
  let subcalls: Next = notInTests;
  let toolRuns: Next = notInTests;
  const tools: InternalTools = {
    ...gatewayServices,
    log,
    catalog,
    calls: createDirectCalls(formatNamed, (call) => translation(call)),
    subcall: createSubcalls(
      formats,
      (call) => subcalls(call),
      gatewayServices.detached,
      (own, parent) => {
        const test = parent.get(underTest);
        if (test !== undefined) own.set(underTest, test);
      },
    ),
    runTool: createToolRuns((call) => toolRuns(call)),
    taskCalls: createTaskCalls(formatNamed, (call) => translation(call)),
    providerCalls: createProviderCalls(formatNamed),
    http: services,
    metrics: counters.of('test'),
    workers: workersOf(gatewayServices.processes.peers, 'test'),
    fetchClientUrl: createFetchClientUrl(settings.fetch),
    ...createCallTools(formatNamed, { ...gatewayServices, notices, settings, onClose }),
    ...inert,
    prices: createPrices(settings.prices, {}, catalog),
    settings,
    notices,
    detach: (call) => gatewayServices.detached.detach(call),
    watchPlugins: (watch) => watchers.push(watch),
    reads: () => mostRead(listed),
    format: formatNamed,
    onClose,
    ...replaced,
  };
  const running = await setUpAll(order, tools, counters, replaced);
  const ended = new EndedCalls();
  const report = createEndErrorReporter(tools.log, tools.notices);
  const { bookkeeper, prices } = tools;
  const composed = composedAround(timed(running, watchers), catalog, { bookkeeper, prices, ended, report });
  translation = composed.translate;
  subcalls = composed.subcalls;
  toolRuns = composed.toolRuns;
  return {
    lines,
    tools,
    run: (call = {}, options = {}) => runCall(call, options, { composed, catalog, ended }),
    changeModels: () => notices.emit('models-changed'),
    async close() {
      ended.flush();
      for (const job of closers.splice(0).toReversed()) await job(); // oxlint-disable-line no-await-in-loop
      await services.close();
      await closeGatewayServices(gatewayServices);
      await stores.close();
    },
  };
}

function notInTests(): never {
  throw new Error('There is none of this in a test: give it in tools, or start a gateway.');
}

/** Tools that do nothing in a test, or that a test must provide. */
const inert = {
  callsMcpServers: () => {},
  areMcpServersCalled: () => false,
  download: notInTests,
  fetchMedia: notInTests,
  chargeAnswer: notInTests,
  adminRoute: () => {},
  adminRoutes: () => [],
  administer: () => {},
  route: () => {},
  endpoint: () => {},
  operator: () => {},
  onDrain: () => {},
} satisfies Partial<InternalTools>;

/** Orders plugins. Throws for problems that prevent a start, except for missing plugins. */
function ordered(plugins: Entry | readonly Entry[]) {
  const listed = (Array.isArray(plugins) ? (plugins as readonly Entry[]) : [plugins as Entry]).map((one) =>
    typeof one === 'function' ? one() : one,
  );
  const { order, problems } = orderPlugins(listed.map((entry) => ({ ...entry.spec, entry })));
  const unmet = problems.filter((problem) => !problem.includes('does not exist'));
  if (unmet.length > 0) throw new Error(unmet.join('\n'));
  return { listed, order };
}

/** Sets the plugins up, each with tools of its own. */
async function setUpAll(
  order: ReturnType<typeof ordered>['order'],
  tools: InternalTools,
  counters: PluginCounters,
  replaced: Partial<InternalTools>,
): Promise<Running[]> {
  const running: Running[] = [];
  for (const { entry, name, stage, after = [] } of order) {
    const options = (entry.spec.options as z.ZodType | undefined)?.parse(entry.options);
    const own: InternalTools = {
      ...tools,
      metrics: counters.of(name),
      chargeAnswer: (call, usage, share) => accountOf(call).chargeAnswer(name, call.model, usage, share),
      ...replaced,
    };
    // oxlint-disable-next-line no-await-in-loop -- in their order, as a gateway does
    const handler = await setUpPlugin(entry.spec, options, own);
    running.push({ name, stage, after, handler });
  }
  return running;
}

import { ConfigError, type LoadedConfig } from './config/config.ts';
import { isProduction } from './settings/environment.ts';
import type { Next } from './sdk/define.ts';
import type { InternalTools } from './config/internal-tools.ts';
import { loadFormats } from './config/definitions.ts';
import { readBodyStep } from './front/body.ts';
import { Notices } from './sdk/notices.ts';
import { createEndErrorReporter } from './call/end-errors.ts';
import { compose, type Running } from './call/pipeline.ts';
import { timed } from './call/plugin-times.ts';
import { createAttempts } from './routing/attempts.ts';
import { sendToChannel } from './routing/send-to-channel.ts';
import { createCatalog } from './routing/catalog.ts';
import { doToolWork } from './call/tool-run.ts';
import { EndedCalls } from './money/account/ended-calls.ts';
import { accounted } from './money/account/followed.ts';
import { accountOf } from './money/account/index.ts';
import { createPrices, type Prices } from './money/prices/index.ts';
import type { GatewayServices } from './config/gateway-services.ts';
import type { Gateway } from './front/gateway.ts';
import { openChannels } from './config/open-channels.ts';
import { PluginSetup, type Build } from './config/plugin-setup.ts';
import type { Log } from './log.ts';
import type { Settings } from './settings/index.ts';

/** Builds a gateway. Throws ConfigError with every problem of plugins and channels at once. */
export async function createGateway(config: LoadedConfig, services: GatewayServices): Promise<Gateway> {
  const { settings } = config;
  const { log } = services;
  const notices = new Notices(log);
  const ended = new EndedCalls();
  const closers: (() => void | Promise<void>)[] = [];
  const close = (): Promise<void> => closeAll(closers, { notices, ended, log });
  const problems: string[] = [];
  const warnings: string[] = [];
  const formats = await loadFormats(problems);
  const build: Build = {
    config,
    services,
    notices,
    problems,
    warnings,
    formats,
    format: (name) => formats.find((one) => one.name === name),
    onClose: (job) => void closers.push(job),
  };
  build.onClose(services.health.follow((change) => notices.emit('health-changed', change)));
  const { channels, discoveries } = await openChannels(build);
  const catalog = createCatalog(channels, Math.floor(Date.now() / 1000));
  const prices = pricesFor(settings.prices, catalog, log);
  const plugins = new PluginSetup(build, catalog, prices);
  await plugins.setUp();
  if (problems.length > 0) {
    await close();
    throw new ConfigError([...new Set(problems)]);
  }
  const { running, routes, endpoints, operators } = plugins;
  const composed = composeGateway(build, plugins, { catalog, prices, ended });
  return {
    settings,
    formats,
    catalog,
    prices,
    plugins: running,
    routes,
    endpoints,
    operators,
    notices,
    log,
    warnings,
    begin() {
      for (const one of discoveries)
        one.begin(() => {
          catalog.refresh();
          notices.emit('models-changed');
        });
    },
    ...composed,
    close,
  };
}

/** Closes what the building has opened, the latest first. */
async function closeAll(
  closers: (() => void | Promise<void>)[],
  { notices, ended, log }: { readonly notices: Notices; readonly ended: EndedCalls; readonly log: Log },
): Promise<void> {
  notices.emit('closing');
  for (const job of closers.splice(0).toReversed()) {
    try {
      // Each finds all calls settled that have ended by then.
      ended.flush();
      await job();
    } catch (error) {
      log.error({ error }, 'something did not close cleanly');
    }
  }
  ended.flush();
}

/** Prices of the config and of channels. What they lack, and where they differ from what providers state, goes to the log. */
function pricesFor(table: Settings['prices'], catalog: InternalTools['catalog'], log: Log): Prices {
  return createPrices(
    table,
    {
      unknown: (model) => log.warn({ model }, 'a model has no price: its calls are counted in tokens alone'),
      difference: ({ model, channel, stated, ours }) =>
        log.warn(
          { model, channel, statedMicroDollars: stated, ownMicroDollars: ours },
          'a provider states a cost that is more than 5 % from the price here: the stated cost is charged',
        ),
    },
    catalog,
  );
}

/** Composes the plugins into the handlers of calls, of which plugins get those by which they make calls. */
function composeGateway(
  { config, services: gatewayServices, notices }: Build,
  plugins: PluginSetup,
  { catalog, prices, ended }: Composed,
): Pick<Gateway, 'handle' | 'around' | 'identified'> {
  const checked = config.settings.checks ?? !isProduction();
  const steps = timed(plugins.running, plugins.watchers);
  const translate = steps.filter(({ stage }) => stage === 'translate');
  const body: Running = {
    name: 'the reading of the body',
    stage: 'identify',
    after: [],
    handler: readBodyStep,
  };
  const identifying = [
    ...steps.filter(({ stage }) => stage === 'observe' || stage === 'identify'),
    body,
    ...steps.filter(({ stage }) => stage === 'admit'),
  ];
  const before = [...identifying, ...steps.filter(({ stage }) => stage === 'shape')];
  plugins.handlers.translation = compose(translate, sendToChannel, checked);
  const attempts = createAttempts({
    catalog,
    notices,
    health: gatewayServices.health,
    load: gatewayServices.load,
    settings: config.settings.routing,
    translate: plugins.handlers.translation,
  });
  const services = {
    bookkeeper: gatewayServices.bookkeeper,
    prices,
    ended,
    report: createEndErrorReporter(gatewayServices.log, notices),
  };
  const withAccount = (chosen: readonly Running[], terminal: Next): Next =>
    accounted(services, compose(chosen, terminal, checked));
  const send: Next = (call) => accountOf(call).send(call, attempts);
  const onBehalf = steps.filter(({ stage }) => stage === 'observe' || stage === 'admit');
  plugins.handlers.subcalls = withAccount(onBehalf, send);
  plugins.handlers.toolRuns = withAccount(onBehalf, (call) => accountOf(call).send(call, doToolWork));
  return {
    handle: withAccount(before, send),
    around: (terminal) => withAccount(before, terminal),
    identified: (terminal) => withAccount(identifying, terminal),
  };
}

/** Parts of a gateway that are made before its plugins are composed. */
interface Composed {
  readonly catalog: InternalTools['catalog'];
  readonly prices: Prices;
  readonly ended: EndedCalls;
}

import { basename } from 'node:path';
import type { Call, Channel } from './sdk/call.ts';
import { ConfigError, sentences, type LoadedConfig } from './config/config.ts';
import { isProduction } from './settings/environment.ts';
import { hideSecretsIn } from './settings/secret.ts';
import { strictOptions } from './config/strict-options.ts';
import type { Next, WholeEndpoint } from './sdk/define.ts';
import { createCallTools } from './config/call-tools.ts';
import type { AdminCheck, AdminRoute, InternalTools } from './config/internal-tools.ts';
import { setUpPlugin } from './config/whole-definitions.ts';
import { administered } from './config/administered.ts';
import { checkOwnChannelKinds, choosePlugins, loadFormats } from './config/definitions.ts';
import type { Format } from './sdk/format.ts';
import { mostRead } from './sdk/reads.ts';
import { readBodyStep } from './front/body.ts';
import { createGuardedFetch } from './upstream/guarded/fetch.ts';
import { createFetchMedia } from './upstream/guarded/media.ts';
import { createFetchClientUrl } from './upstream/guarded/client-url.ts';
import { createGuardedStream } from './upstream/guarded/stream.ts';
import { openServices } from './upstream/services.ts';
import { makeChannel, type Making } from './config/configured-channel.ts';
import { PluginCounters } from './sdk/counters.ts';
import { workersOf } from './state/links/peers.ts';
import { Notices } from './sdk/notices.ts';
import { createEndErrorReporter } from './call/end-errors.ts';
import { compose, orderPlugins, type Running } from './call/pipeline.ts';
import { timed } from './call/plugin-times.ts';
import { createAttempts } from './routing/attempts.ts';
import { sendToChannel } from './routing/send-to-channel.ts';
import { createCatalog } from './routing/catalog.ts';
import { createDirectCalls } from './call/direct-call.ts';
import { createSubcalls } from './call/subcall.ts';
import { createToolRuns, doToolWork } from './call/tool-run.ts';
import { ModelDiscovery, type SaidModels } from './routing/model-discovery.ts';
import { createProviderCalls } from './call/provider-call.ts';
import { createTaskCalls } from './call/task-call.ts';
import { EndedCalls } from './money/account/ended-calls.ts';
import { accounted } from './money/account/followed.ts';
import { accountOf } from './money/account/index.ts';
import { createPrices } from './money/prices/index.ts';
import type { Surroundings } from './config/surroundings.ts';
import type { WatchPlugins } from './sdk/author/plugin-time.ts';
import type { Gateway, PluginRoute, IsOperator } from './front/gateway.ts';

/** Builds a gateway. Throws ConfigError with every problem of plugins and channels at once. */
export async function createGateway(config: LoadedConfig, surroundings: Surroundings): Promise<Gateway> {
  const { settings } = config;
  const { log } = surroundings;
  const file = basename(config.file);
  const notices = new Notices(log);
  const closers: (() => void | Promise<void>)[] = [];
  const onClose = (job: () => void | Promise<void>): void => {
    closers.push(job);
  };
  onClose(surroundings.health.follow((change) => notices.emit('health-changed', change)));

  const problems: string[] = [];
  const warnings: string[] = [];
  const formats = await loadFormats(problems);
  const format = (name: string): Format | undefined => formats.find((one) => one.name === name);

  await checkOwnChannelKinds(config.root, problems);
  const channels: Channel[] = [];
  const discoveries: ModelDiscovery[] = [];
  const discovery: Making['discovery'] = (place, ask, ownLog) => {
    const made = new ModelDiscovery({
      ask,
      place,
      kept: surroundings.stores.namespace<SaidModels>('model-lists'),
      log: ownLog,
    });
    discoveries.push(made);
    onClose(() => made.close());
    return made;
  };
  for (const { at, where: place, entry } of config.channels) {
    const where = place ?? `${file}, ${at} "${entry.options.id ?? entry.spec.name}"`;
    const channel = makeChannel(entry, {
      settings,
      where,
      problems,
      warnings,
      log,
      format,
      discovery,
      onClose,
    });
    if (channel === undefined) continue;
    if (channels.some(({ id }) => id === channel.id)) {
      problems.push(
        `${place ?? `${file}, ${at}`}: the id "${channel.id}" is taken by another channel. Give one of them another id.`,
      );
    }
    channels.push(channel);
  }
  if (channels.length === 0)
    warnings.push(
      `${file}: no channel is configured, so that every model is answered 503. Set a provider's key, or add demo().`,
    );
  await Promise.all(discoveries.map((one) => one.load()));
  const catalog = createCatalog(channels, Math.floor(Date.now() / 1000));
  const prices = createPrices(
    settings.prices,
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

  const fetchMedia = createFetchMedia(settings.fetch, createGuardedFetch(settings.fetch));
  const fetchClientUrl = createFetchClientUrl(settings.fetch);
  const http = openServices();
  onClose(() => http.close());
  const download = createGuardedStream(settings.fetch, settings.timeouts.idle);
  const notBuilt: Next = () => Promise.reject(new Error('The gateway is not built yet.'));
  let translation = notBuilt;
  let subcalls = notBuilt;
  let toolRuns = notBuilt;
  const routes: PluginRoute[] = [];
  const endpoints: WholeEndpoint[] = [];
  let admin: AdminCheck | undefined;
  const adminRoutes: AdminRoute[] = [];
  const operators: IsOperator[] = [];
  const watchers: WatchPlugins[] = [];
  const serverCallers: ((call: Call) => boolean)[] = [];
  const counters = new PluginCounters();
  const callTools = createCallTools(format, { ...surroundings, notices, settings, onClose });
  const running: Running[] = [];
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
      const tools: InternalTools = {
        ...surroundings,
        log: log.child({ plugin: name }),
        catalog,
        calls: createDirectCalls(format, (call) => translation(call)),
        subcall: createSubcalls(formats, (call) => subcalls(call), surroundings.detached),
        runTool: createToolRuns((call) => toolRuns(call)),
        taskCalls: createTaskCalls(format, (call) => translation(call)),
        providerCalls: createProviderCalls(format),
        download,
        prices,
        settings,
        notices,
        detach: (call) => surroundings.detached.detach(call),
        chargeAnswer: (call, usage, share) => accountOf(call).chargeAnswer(name, call.model, usage, share),
        adminRoute: (method, path, answer, { records = false } = {}) => {
          const route = { plugin: name, method, path, records };
          adminRoutes.push(route);
          routes.push({ plugin: name, method, path, handler: administered(() => admin, route, answer) });
        },
        adminRoutes: () => adminRoutes,
        administer: (check) => {
          admin = check;
        },
        route: (method, path, answer) => routes.push({ plugin: name, method, path, handler: answer }),
        endpoint: (endpoint) => endpoints.push(endpoint),
        operator: (isOperator) => operators.push(isOperator),
        watchPlugins: (watch) => watchers.push(watch),
        reads: () => reads,
        fetchMedia,
        http,
        metrics: counters.of(name),
        workers: workersOf(surroundings.processes.peers, name),
        fetchClientUrl,
        ...callTools,
        callsMcpServers: (isCalled) => serverCallers.push(isCalled),
        areMcpServersCalled: (call) => serverCallers.some((isCalled) => isCalled(call)),
        format,
        onDrain: (job) => void notices.on('draining', job),
        onClose,
      };
      const handler = await setUpPlugin(entry.spec, parsed.data, tools);
      if (typeof handler === 'function') running.push({ name, stage, after: after ?? [], handler });
      else problems.push(`${where}: setup returned no handler. Return an async function (call, next).`);
    } catch (error) {
      problems.push(`${where}: setup failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  const ended = new EndedCalls();
  const close = async (): Promise<void> => {
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
  };
  if (problems.length > 0) {
    await close();
    throw new ConfigError([...new Set(problems)]);
  }

  const checked = settings.checks ?? !isProduction();
  const steps = timed(running, watchers);
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
  translation = compose(translate, sendToChannel, checked);
  const attempts = createAttempts({
    catalog,
    notices,
    health: surroundings.health,
    load: surroundings.load,
    settings: settings.routing,
    translate: translation,
  });
  const services = {
    bookkeeper: surroundings.bookkeeper,
    prices,
    ended,
    report: createEndErrorReporter(log, notices),
  };
  const withAccount = (plugins: readonly Running[], terminal: Next): Next =>
    accounted(services, compose(plugins, terminal, checked));
  const send: Next = (call) => accountOf(call).send(call, attempts);
  const onBehalf = steps.filter(({ stage }) => stage === 'observe' || stage === 'admit');
  subcalls = withAccount(onBehalf, send);
  toolRuns = withAccount(onBehalf, (call) => accountOf(call).send(call, doToolWork));
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
    handle: withAccount(before, send),
    around: (terminal) => withAccount(before, terminal),
    identified: (terminal) => withAccount(identifying, terminal),
    close,
  };
}

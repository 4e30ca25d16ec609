/** Serves calls in a worker process. */
import cluster from 'node:cluster';
import { createHash } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ConfigError, configFile, type LoadedConfig } from '../config/config.ts';
import { loadServedConfig } from '../config/load-config.ts';
import type { KnownSecret } from '../config/secrets/known.ts';
import { version } from '../config/installation/home.ts';
import { createLog, hideSecret, maskSecrets } from '../log.ts';
import { PrimaryLink } from '../processes/link.ts';
import { collectSeldom, giveBackMemory } from '../performance/memory.ts';
import { trialTime, type Facts, type StartOrder } from '../processes/messages.ts';
import { digestOfFiles, versionOf } from '../processes/version.ts';
import { databaseUrl } from '../config/database-of.ts';
import { startServer, type RunningServer } from '../server.ts';
import { firstLogLevel } from '../settings/environment.ts';
import { openAdminPassword } from '../state/admin-password.ts';
import { examine } from './check.ts';
import { describeGateway } from './describe.ts';
import { explain } from './explain.ts';

/*
 * A worker process runs one gateway, which the primary starts and ends. When the primary exits, node:cluster ends the worker at once.
 */

/** Milliseconds after `timeouts.drain` in which a worker writes the remaining records before it exits. */
const grace = 4_000;

// The primary handles signals that are sent to the whole process group.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});

let log = createLog(firstLogLevel());
// Before the operator's files are loaded, because Node itself prints the failing line of source, which may hold keys.
endOnBugs();

let running: { readonly server: RunningServer; readonly drain: number } | undefined;

const link = new PrimaryLink({
  start: (order) => void start(order),
  retire: () => void end('retire'),
  letGo: () => running?.server.letGo(),
  announce: () => running?.server.announce(),
  stop: () => void end('close'),
});

async function start(order: StartOrder): Promise<void> {
  let secrets: LoadedConfig['secrets'];
  try {
    const before = filesOf(configFile(order.config));
    const config = await loadServedConfig(order.config, { known: order.secrets, log });
    ({ secrets } = config);
    const workers = countOf(config);
    const problems = problemsOf(config, order);
    if (problems.length > 0) throw new ConfigError(problems);
    log = createLog(config.settings.log.level);
    const server = await startServer(
      withFreePort(config, order),
      log,
      link.processes(order.worker, workers),
      {
        isReload: order.isReload,
        leftOut: order.leftOut,
        onSecretsRead: () => link.send({ type: 'secrets', known: config.secrets?.known() ?? [] }),
      },
    );
    running = { server, drain: config.settings.timeouts.drain };
    const facts = await factsOf(config, workers, server, order);
    // Modules are loaded one after the other, so that they are one configuration only if no file changed meanwhile.
    const files = filesOf(config.file);
    const read = `${files} ${server.runtimeRevision}`;
    link.send({ type: 'ready', facts: files === before ? { ...facts, files: read } : facts });
    setTimeout(() => link.send({ type: 'tried' }), trialTime);
    giveBackMemory(server);
    collectSeldom();
  } catch (error) {
    // A source of secrets may have a session at its secret manager, which it closes. The primary does not wait long for that.
    await Promise.race([secrets?.close(), pause(grace)]);
    const known = [...(order.secrets ?? []), ...(secrets?.known() ?? [])];
    link.send({ type: 'failed', problems: await whyNot(order, known, error) }, () => process.exit(1));
  }
}

async function end(how: 'retire' | 'close'): Promise<void> {
  if (running === undefined) process.exit(0);
  const { server, drain } = running;
  // The process exits even when closing hangs.
  if (how === 'close') setTimeout(() => process.exit(0), drain + grace).unref();
  const ended = server[how]();
  // The listener is closed, and messages arrive in order. After this message the primary passes no connection to this process.
  link.send({ type: 'retired' });
  await ended;
  cluster.worker?.disconnect();
  // A process without work exits on its own after it has written its log. The timer covers a process that does not.
  setTimeout(() => process.exit(0), 500).unref();
}

function filesOf(file: string): string {
  return digestOfFiles(file, dirname(file));
}

/** Returns the config with the free port that the first worker found, which all workers use, also after reloads. */
function withFreePort(config: LoadedConfig, { freePort }: StartOrder): LoadedConfig {
  const { settings } = config;
  if (settings.listen.port !== 0) return config;
  return { ...config, settings: { ...settings, listen: { ...settings.listen, port: freePort } } };
}

function countOf({ settings }: LoadedConfig): number {
  return settings.workers === 'auto' ? availableParallelism() : settings.workers;
}

/** Returns the problems of a reload: settings that only a restart can change. */
function problemsOf(config: LoadedConfig, { before }: StartOrder): string[] {
  const problems: string[] = [];
  if (before !== undefined && before.database !== digestOf(config))
    problems.push(
      'A reload cannot change the database or the data folder: restart the gateway, or undo the change.',
    );
  const { host, port } = config.settings.listen;
  if (before !== undefined && before.port === port && before.host !== host)
    problems.push(
      'A reload cannot change listen.host while listen.port stays: restart the gateway, or change both.',
    );
  return problems;
}

/** Returns a hash of the database address and the data folder. A hash, because the address may contain a password. */
function digestOf(config: LoadedConfig): string {
  return createHash('sha256')
    .update(`${databaseUrl(config)}\0${config.settings.data}`)
    .digest('hex');
}

async function factsOf(
  config: LoadedConfig,
  workers: number,
  server: RunningServer,
  { worker, before }: StartOrder,
): Promise<Facts> {
  const { settings, file, root } = config;
  const password = await firstPassword(server);
  const isFirst = before === undefined && worker === 1;
  const showsOnce = password !== undefined || server.firstKey !== undefined;
  return {
    url: server.url,
    foundPort: Number(new URL(server.url).port),
    host: settings.listen.host,
    port: settings.listen.port,
    workers,
    // Two processes do not share a database in memory.
    spareWorker: settings.spareWorker && databaseUrl(config) !== 'sqlite::memory:',
    version: versionOf(file, root),
    database: digestOf(config),
    runtimeRevision: server.runtimeRevision,
    leftOut: server.leftOut,
    file,
    root,
    logLevel: settings.log.level,
    drainDelay: settings.timeouts.drainDelay,
    drain: settings.timeouts.drain,
    reload: settings.timeouts.reload,
    ...(isFirst || showsOnce ? { banner: `${bannerOf(server, password)}\n` } : {}),
  };
}

/** Returns all problems that prevent a start. The error alone names only those of the first step that failed. */
async function whyNot(
  { config }: StartOrder,
  known: readonly KnownSecret[],
  error: unknown,
): Promise<readonly string[]> {
  if (!(error instanceof ConfigError)) return [explain(error)];
  const { problems } = await examine(config, known).catch((failure: unknown) => ({
    problems: [explain(failure)],
  }));
  return [...new Set([...error.problems, ...problems].map(maskSecrets))];
}

/** Returns the admin password when this is the first start with an admin API. */
async function firstPassword({ gateway, stores }: RunningServer): Promise<string | undefined> {
  if (!gateway.routes.some(({ path }) => path === '/api/admin/login')) return undefined;
  const password = await openAdminPassword(stores).ensure();
  if (password !== undefined) hideSecret(password);
  return password;
}

function bannerOf({ url, firstKey, gateway }: RunningServer, password: string | undefined): string {
  const [, port] = /\/\/(?:0\.0\.0\.0|\[::\]):(\d+)/.exec(url) ?? [];
  const address =
    port === undefined
      ? url.replace('127.0.0.1', 'localhost')
      : `http://localhost:${port} (on every address of this machine)`;
  const key = firstKey === undefined ? [] : [`First API key (shown only once):\n  ${firstKey}`];
  const admin =
    password === undefined
      ? []
      : [`Password of the dashboard at /dashboard (shown only once):\n  ${password}`];
  return [`Sluice ${version} listens on ${address}`, ...admin, ...key, describeGateway(gateway)].join('\n\n');
}

/** Logs an uncaught error and exits, because the state of the process is unknown. The primary starts another process. */
function endOnBugs(): void {
  const fail = (what: string) => (error: unknown) => {
    log.fatal({ error }, what);
    process.exit(1);
  };
  process.on('uncaughtException', fail('uncaught exception'));
  process.on('unhandledRejection', fail('unhandled rejection'));
  process.on('warning', (error) => log.warn({ error }, 'process warning'));
}

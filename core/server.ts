/** Starts the server of one process: opens the database and services, builds the gateway, and listens. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { ConfigError, type LoadedConfig } from './config/config.ts';
import { databaseOf } from './config/database-of.ts';
import { RuntimeConfig } from './config/runtime-config/index.ts';
import { SecretsFollower } from './config/secrets/follow.ts';
import { buildWithRuntime } from './config/runtime-config/load.ts';
import { createGateway } from './gateway.ts';
import { problemsOfConfig } from './try-gateway.ts';
import { type Gateway } from './front/gateway.ts';
import { createApp } from './front/app.ts';
import { createLog, type Log } from './log.ts';
import { countedReport } from './log/counted-report.ts';
import { createServer } from './upstream/node-http.ts';
import { Connections } from './front/connections.ts';
import { Ending } from './front/ending.ts';
import { alone, type Processes } from './state/links/processes.ts';
import type { ApiKeys } from './state/api-keys/index.ts';
import { createApiKeys } from './state/api-keys/open.ts';
import { checkSharedStore } from './state/links/shared-link.ts';
import { openRuntimeConfigStore } from './state/runtime-config/store.ts';
import { openStores, type Stores } from './state/stores.ts';
import {
  closeGatewayServices,
  openGatewayServices,
  type ProcessLines,
  type GatewayServices,
} from './config/gateway-services.ts';

/** A gateway that listens. */
export interface RunningServer {
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  readonly gateway: Gateway;
  readonly apiKeys: ApiKeys;
  readonly stores: Stores;
  /** Given when this start made the first API key: the value is shown this once. */
  readonly firstKey: string | undefined;
  /** Revision of the run-time configuration that is in force. */
  readonly runtimeRevision: number;
  /** Run-time entries that do not fit, and that it serves without, as `kind:name`. */
  readonly leftOut: readonly string[];
  /** True while no call runs. */
  readonly isIdle: boolean;
  /** Calls that have ended since the start. */
  readonly ended: number;
  /** Tells load balancers that it is about to stop: `/readyz` answers 503, connections close after their call. Everything is still served. */
  announce(): void;
  /** Takes no more calls, lets open ones finish until the drain time has passed, then closes everything. */
  close(): Promise<void>;
  /**
   * For a process that another one has replaced: takes no more connections, and serves those there are until they end or the reload time
   * has passed. Then it closes everything.
   */
  retire(): Promise<void>;
  /** After `retire`: closes connections over which no call runs. */
  letGo(): void;
}

/** Options of a start. */
interface StartOptions {
  /** Another configuration serves meanwhile. */
  readonly isReload?: boolean;
  /** Run-time entries that it serves without. */
  readonly leftOut?: readonly string[] | undefined;
  readonly onSecretsRead?: () => void;
}

/**
 * Opens the database, builds the gateway and listens. With `isReload` another configuration serves meanwhile, and goes on where this one
 * fails; `leftOut` are the run-time entries that it serves without. Throws ConfigError for a wrong config, Error when the port is taken.
 */
export async function startServer(
  config: LoadedConfig,
  log: Log = createLog(config.settings.log.level),
  processes: Processes & ProcessLines = alone(),
  { isReload = false, leftOut = [], onSecretsRead }: StartOptions = {},
): Promise<RunningServer> {
  const { settings } = config;
  const { stores, apiKeys } = await openState(config, log);
  const services = openGatewayServices(log, stores, apiKeys, settings, processes);
  let gateway: Gateway | undefined;
  let runtimeConfig: RuntimeConfig | undefined;
  let secretsFollower: SecretsFollower | undefined;
  const close = async (): Promise<void> => {
    try {
      runtimeConfig?.close();
      secretsFollower?.stop();
      await gateway?.close();
      await closeGatewayServices(services);
      await stores.close();
    } finally {
      // A manager of secrets keeps the token of a process that does not revoke it.
      await config.secrets?.close();
    }
  };
  try {
    const store = await openRuntimeConfigStore(stores);
    const { upkeep } = services;
    const own = { store, file: config, processes, upkeep, log, tryConfig: problemsOfConfig };
    const made = new RuntimeConfig(own);
    runtimeConfig = made;
    const built = await buildWithRuntime(
      config,
      store,
      (merged) => createGateway(merged, { ...services, runtimeConfig: made }),
      isReload ? new Set(leftOut) : 'all',
    );
    ({ gateway } = built);
    made.setRunning(built.running);
    const firstKey = await makeFirstKey(apiKeys, settings.bootstrapKey);
    apiKeys.startRefreshing();
    const app = createApp(gateway, services);
    const server = serverOf(app, settings);
    const connections = new Connections(server, processes.waited);
    await listen(server, settings.listen.port, settings.listen.host, log);
    gateway.begin();
    made.follow();
    secretsFollower = followSecrets(config, services, onSecretsRead);
    services.overload.begin();
    const { drain, reload } = settings.timeouts;
    const ending = new Ending({ app, connections, drain, reload, detached: services.detached, close });
    return {
      url: urlOf(server),
      gateway,
      apiKeys,
      stores,
      firstKey,
      runtimeRevision: built.running.revision,
      leftOut: built.leftOut,
      get isIdle() {
        return services.overload.running === 0;
      },
      get ended() {
        return services.overload.ended;
      },
      announce: () => app.announce(),
      close: () => ending.stop(),
      retire: () => ending.retire(),
      letGo: () => ending.letGo(),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Opens the database and loads what every call needs of it. Rejects, with everything closed, when it cannot be used. */
async function openState(
  config: LoadedConfig,
  log: Log,
): Promise<{ readonly stores: Stores; readonly apiKeys: ApiKeys }> {
  const { settings } = config;
  mkdirSync(resolve(config.root, settings.data), { recursive: true });
  const report = (error: Error): void => log.error({ error }, 'the database failed');
  const stores = openStores(databaseOf(config), report);
  const apiKeys = createApiKeys(stores, report, { keys: settings.limits.keys });
  try {
    await Promise.all([stores.ready(), checkShared(config)]);
    await apiKeys.load();
  } catch (error) {
    try {
      await stores.close();
    } finally {
      await config.secrets?.close();
    }
    throw error;
  }
  if (stores.database.kind === 'postgres' && stores.database.pooling === 'transaction')
    log.info({}, 'the database is behind a pooler: each transaction sets its own timeouts');
  return { stores, apiKeys };
}

function urlOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo;
  const host = family === 'IPv6' ? `[${address}]` : address;
  return `http://${host}:${port}`;
}

function serverOf(app: ReturnType<typeof createApp>, settings: LoadedConfig['settings']): Server {
  const server = createServer(
    {
      // Requests beyond the limit are refused by the app, in the format of their client.
      maxHeaderSize: 2 * settings.limits.header,
      headersTimeout: settings.timeouts.headers,
      requestTimeout: settings.timeouts.body,
      connectionsCheckingInterval: Math.min(1000, settings.timeouts.headers),
      keepAliveTimeout: 75_000,
      noDelay: true,
      shouldUpgradeCallback: app.wantsSocket,
    },
    app.listener,
  );
  server.on('checkContinue', app.continueListener);
  server.on('upgrade', app.upgrade);
  server.on('clientError', app.clientError);
  return server;
}

/** Puts in force what was read until now, and reads it again from time to time. A gateway without references needs no follower. */
function followSecrets(
  { secrets, settings }: LoadedConfig,
  { processes, upkeep, log }: GatewayServices,
  onRead: (() => void) | undefined,
): SecretsFollower | undefined {
  if (secrets === undefined) return undefined;
  secrets.built();
  if (secrets.standing().references === 0) return undefined;
  onRead?.();
  return new SecretsFollower({ secrets, refresh: settings.secrets.refresh, processes, upkeep, log, onRead });
}

/** Throws ConfigError when the shared store will never take this gateway. One that is gone for now is waited for while calls are served. */
export async function checkShared({ file, settings }: LoadedConfig): Promise<void> {
  try {
    await checkSharedStore(settings.shared);
  } catch (error) {
    throw new ConfigError([`${basename(file)}: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

/** The value of the key that was made because there was none; undefined when there are some, or the operator chose one. */
async function makeFirstKey(apiKeys: ApiKeys, chosen: string | undefined): Promise<string | undefined> {
  if (chosen === undefined)
    return (await apiKeys.isEmpty()) ? (await apiKeys.create({ name: 'first' })).value : undefined;
  if ((await apiKeys.lookUp(chosen, false)) === undefined)
    await apiKeys.create({ name: 'bootstrap', value: chosen }).catch(async (error: unknown) => {
      // Another gateway that starts at the same time may have made it.
      await apiKeys.load();
      if ((await apiKeys.lookUp(chosen, false)) === undefined) throw error;
    });
  return undefined;
}

/**
 * Connections that may wait to be accepted; the system's own limit (`net.core.somaxconn`) counts where it is lower. With Node's 511, clients
 * that all come at once are not heard, and knock again after 1, 3 and 7 seconds.
 */
const backlog = 4096;

function listen(server: Server, port: number, host: string, log: Log): Promise<void> {
  return new Promise((done, failed) => {
    const refuse = (error: NodeJS.ErrnoException): void => {
      if (error.code === 'EADDRINUSE') {
        failed(
          new Error(`Port ${port} on ${host} is taken. Set listen.port or SLUICE_PORT to another one.`, {
            cause: error,
          }),
        );
      } else failed(error);
    };
    server.once('error', refuse);
    server.listen({ port, host, backlog }, () => {
      server.off('error', refuse);
      // A connection that cannot be accepted, for want of file descriptors for example, would end the process.
      server.on(
        'error',
        countedReport((count, error: Error) =>
          log.error({ error, count }, 'connections could not be accepted'),
        ),
      );
      done();
    });
  });
}

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import type { LoadedConfig } from './config.ts';
import { createGateway, type Gateway } from './gateway.ts';
import { createApp } from './http/app.ts';
import { createLog, type Log } from './log.ts';
import { createApiKeys, type ApiKeys } from './state/api-keys.ts';
import { openStores, type Stores } from './state/stores.ts';
import { closeSurroundings, openSurroundings } from './surroundings.ts';

/** A gateway that listens. */
export interface RunningServer {
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  readonly gateway: Gateway;
  readonly apiKeys: ApiKeys;
  readonly stores: Stores;
  /** Given when this start made the first API key: the value is shown this once. */
  readonly firstKey: string | undefined;
  /** Takes no more calls, lets open ones finish until the drain time has passed, then closes everything. */
  close(): Promise<void>;
}

/** The database's URL: the config's, or `sluice.db` in the data folder. Relative paths begin at the config's folder. */
export function databaseUrl(config: LoadedConfig): string {
  const { database, data } = config.settings;
  if (database === undefined) return `sqlite:${resolve(config.root, data, 'sluice.db')}`;
  const path = database.startsWith('sqlite:') ? database.slice('sqlite:'.length) : undefined;
  if (path === undefined || path === ':memory:' || isAbsolute(path)) return database;
  return `sqlite:${resolve(config.root, path)}`;
}

/** Opens the database, builds the gateway and listens. Throws ConfigError for a wrong config, Error when the port is taken. */
export async function startServer(
  config: LoadedConfig,
  log: Log = createLog(config.settings.log.level),
): Promise<RunningServer> {
  const { settings } = config;
  mkdirSync(resolve(config.root, settings.data), { recursive: true });
  const report = (error: Error): void => log.error({ error }, 'the database failed');
  const stores = openStores(databaseUrl(config), report);
  const apiKeys = createApiKeys(stores, report);
  try {
    await stores.ready();
    await apiKeys.load();
  } catch (error) {
    await stores.close();
    throw error;
  }
  const surroundings = openSurroundings(log, stores, apiKeys, settings);
  let gateway: Gateway;
  try {
    gateway = await createGateway(config, surroundings);
  } catch (error) {
    await closeSurroundings(surroundings);
    await stores.close();
    throw error;
  }
  let firstKey: string | undefined;
  const { bootstrapKey } = settings;
  if (bootstrapKey !== undefined) {
    if (apiKeys.find(bootstrapKey) === undefined)
      await apiKeys.create({ name: 'bootstrap', value: bootstrapKey }).catch(async (error: unknown) => {
        // Another gateway that starts at the same time may have made it.
        await apiKeys.load();
        if (apiKeys.find(bootstrapKey) === undefined) throw error;
      });
  } else if ((await apiKeys.list()).length === 0) {
    firstKey = (await apiKeys.create({ name: 'first' })).value;
  }
  apiKeys.startRefreshing();

  const app = createApp(gateway, stores, surroundings.rates);
  const server = createServer(
    {
      maxHeaderSize: settings.limits.header,
      headersTimeout: settings.timeouts.headers,
      requestTimeout: settings.timeouts.body,
      connectionsCheckingInterval: Math.min(5000, settings.timeouts.headers),
      keepAliveTimeout: 75_000,
      noDelay: true,
      shouldUpgradeCallback: app.wantsSocket,
    },
    app.listener,
  );
  server.on('upgrade', app.upgrade);
  server.on('clientError', app.clientError);
  await listen(server, settings.listen.port, settings.listen.host);
  const { address, port, family } = server.address() as AddressInfo;
  const host = family === 'IPv6' ? `[${address}]` : address;

  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    app.drain();
    const closed = new Promise<void>((done) => server.close(() => done()));
    server.closeIdleConnections();
    // Connections that were busy then become idle one by one.
    const sweeping = setInterval(() => server.closeIdleConnections(), 50);
    const timer = setTimeout(() => {
      app.endAll();
      setTimeout(() => server.closeAllConnections(), 250).unref();
    }, settings.timeouts.drain);
    await closed;
    clearTimeout(timer);
    clearInterval(sweeping);
    await gateway.close();
    await closeSurroundings(surroundings);
    await stores.close();
  };
  return {
    url: `http://${host}:${port}`,
    gateway,
    apiKeys,
    stores,
    firstKey,
    close: () => (closing ??= close()),
  };
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((done, failed) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') {
        failed(
          new Error(`Port ${port} on ${host} is taken. Set listen.port or SLUICE_PORT to another one.`, {
            cause: error,
          }),
        );
      } else failed(error);
    });
    server.listen(port, host, done);
  });
}

/** Builds the gateway of a config without serving anything. */
import { ConfigError, type LoadedConfig } from './config/config.ts';
import { databaseUrl } from './config/database-of.ts';
import { closeGatewayServices, openGatewayServices } from './config/gateway-services.ts';
import type { Gateway } from './front/gateway.ts';
import { createGateway } from './gateway.ts';
import { createLog } from './log.ts';
import type { VectorStore } from './sdk/author/vectors.ts';
import { isPostgres } from './settings/database.ts';
import { createApiKeys } from './state/api-keys/open.ts';
import { openStores } from './state/stores.ts';

/** Looks at the gateway that a config makes. It listens nowhere, asks nobody and writes nothing. */
export async function tryGateway<Found>(
  config: LoadedConfig,
  look: (gateway: Gateway) => Found | Promise<Found>,
): Promise<Found> {
  const isVectorStore = isPostgres(databaseUrl(config));
  const stores = {
    ...openStores('sqlite::memory:'),
    vectors: async () => (isVectorStore ? noVectors : undefined),
  };
  try {
    const services = openGatewayServices(
      createLog('silent'),
      stores,
      createApiKeys(stores),
      // What other gateways share is not touched.
      { ...config.settings, shared: { ...config.settings.shared, url: 'memory:' } },
    );
    try {
      const gateway = await createGateway(config, services);
      try {
        return await look(gateway);
      } finally {
        await gateway.close();
      }
    } finally {
      await closeGatewayServices(services);
    }
  } finally {
    await stores.close();
  }
}

/** Returns what is wrong with a config, its plugins and its channels, by building the gateway that it makes. */
export async function problemsOfConfig(config: LoadedConfig): Promise<readonly string[]> {
  try {
    await tryGateway(config, () => {});
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** Stands for the collections of vectors of a database that is not asked. */
const noVectors: VectorStore = {
  add: async () => {},
  nearest: async () => undefined,
  delete: async () => {},
  clear: async () => {},
};

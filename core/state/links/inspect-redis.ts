/** Collects facts about the shared Redis for `sluice doctor`: version, memory, eviction policy and clock. */
import { nodeName, readSharedAddress } from '../../settings/shared-address.ts';
import type { SharedStoreSettings } from '../../settings/shared.ts';
import { discard, SharedServers, type StoreClient } from './shared-connection.ts';
import { checkSharedStore } from './shared-link.ts';
import { SharedStoreMistake } from './shared-mistakes.ts';
import { within } from './within.ts';

/** Facts about the server of a shared store. Times are in milliseconds. */
export interface RedisFacts {
  /** Absent where the user may not run INFO. */
  readonly info?: {
    readonly version: string;
    /** `maxmemory-policy`: eviction policy when the memory is full. */
    readonly policy: string;
    /** Memory limit in bytes; 0: none. */
    readonly maxMemory: number;
    readonly usedMemory: number;
  };
  /** The server's clock, this machine's clock right after the response, and the round-trip time. */
  readonly clock: { readonly at: number; readonly localAt: number; readonly roundTrip: number };
}

/** Prefix of the keys of rate limits: in a cluster one node has them all. */
const ratesPrefix = 'sluice:{rates}:';

/** Timeout of a command, in milliseconds. */
const timeoutMs = 3_000;

/**
 * Inspects the server with the rate limits: connects as a gateway does, with all settings, and writes a key that expires after a second.
 * Rejects with an Error for the operator, without the password. `now` reads the clock of this machine.
 */
export async function inspectRedis(store: SharedStoreSettings, now: () => number): Promise<RedisFacts> {
  let client: StoreClient | undefined;
  try {
    await checkSharedStore(store);
    ({ client } = await new SharedServers(store).connectTo(ratesPrefix, () => {}));
    const info = await infoOf(client);
    const before = now();
    const [seconds = '0', micros = '0'] = await within(timeoutMs, client.sendCommand<string[]>(['TIME']));
    const localAt = now();
    return {
      ...(info === undefined ? {} : { info }),
      clock: {
        at: Number(seconds) * 1_000 + Number(micros) / 1_000,
        localAt,
        roundTrip: localAt - before,
      },
    };
  } catch (error) {
    if (error instanceof SharedStoreMistake) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`The Redis at ${hostsOf(store)} cannot be used: ${why.replace(/\.$/, '')}.`, {
      cause: error,
    });
  } finally {
    if (client !== undefined) discard(client);
  }
}

/** Runs INFO; undefined where the user has no permission for it: a gateway needs none. */
async function infoOf(client: StoreClient): Promise<RedisFacts['info']> {
  let text: string;
  try {
    text = String(await within(timeoutMs, client.sendCommand(['INFO'])));
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('NOPERM')) return undefined;
    throw error;
  }
  return {
    version: fieldOf(text, 'redis_version'),
    policy: fieldOf(text, 'maxmemory_policy'),
    maxMemory: Number(fieldOf(text, 'maxmemory')),
    usedMemory: Number(fieldOf(text, 'used_memory')),
  };
}

function hostsOf({ url }: SharedStoreSettings): string {
  const nodes = readSharedAddress(url).address?.nodes ?? [];
  return nodes.map(nodeName).join(', ');
}

function fieldOf(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
}

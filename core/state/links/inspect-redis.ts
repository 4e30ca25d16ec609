/** What a look at a Redis finds. Times are in milliseconds. */
export interface RedisFacts {
  readonly version: string;
  /** `maxmemory-policy`: which keys go when the memory is full. */
  readonly policy: string;
  /** Bytes that it may take; 0: no limit of its own. */
  readonly maxMemory: number;
  readonly usedMemory: number;
  readonly clock: { readonly at: number; readonly roundTrip: number };
}

/** Longest wait for a connection, and for an answer. */
const patience = 3_000;

/** Looks at the Redis that a URL names, and changes nothing. Rejects with an Error for the operator, without the password. */
export async function inspectRedis(url: string): Promise<RedisFacts> {
  const { createClient } = await import('@redis/client');
  const client = createClient({
    url,
    RESP: 2,
    commandOptions: { timeout: patience },
    socket: { connectTimeout: patience, reconnectStrategy: false },
  });
  client.on('error', () => {});
  try {
    await client.connect();
    const info = String(await client.sendCommand(['INFO']));
    const before = Date.now();
    const [seconds = '0', micros = '0'] = (await client.sendCommand(['TIME'])) as unknown as string[];
    const roundTrip = Date.now() - before;
    return {
      version: fieldOf(info, 'redis_version'),
      policy: fieldOf(info, 'maxmemory_policy'),
      maxMemory: Number(fieldOf(info, 'maxmemory')),
      usedMemory: Number(fieldOf(info, 'used_memory')),
      clock: { at: Number(seconds) * 1_000 + Number(micros) / 1_000, roundTrip },
    };
  } catch (error) {
    const { host } = new URL(url);
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`The Redis at ${host} cannot be used: ${why}`, { cause: error });
  } finally {
    client.destroy();
  }
}

function fieldOf(info: string, name: string): string {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? '';
}

/** Opens connections to the server of the shared store that has a key: one server, the master of Sentinels, or a node of a cluster. */
import { hideSecret } from '../../log.ts';
import {
  nodeName,
  readNode,
  readSharedAddress,
  type SharedAddress,
  type SharedNode,
} from '../../settings/shared-address.ts';
import type { SharedStoreSettings } from '../../settings/shared.ts';
import { SharedStoreMistake } from './shared-mistakes.ts';
import { within } from './within.ts';

/** Longest time for one server to be connected to, in milliseconds. */
export const connectTime = 1_000;
/** When the socket itself gives up: it goes by time, and must not do so because the process stood still. */
const socketTime = 30_000;

type Redis = typeof import('@redis/client');
/** A connection to one server. */
export type StoreClient = ReturnType<typeof createNodeClient>;

/** A shared store as its settings describe it. Nothing is connected to before {@link connectTo}. */
export class SharedServers {
  readonly #address: SharedAddress | undefined;
  readonly #problem: string;
  readonly #settings: SharedStoreSettings;
  /** The Sentinel or node that answered last is asked first. */
  #first = 0;

  constructor(settings: SharedStoreSettings) {
    this.#settings = settings;
    const { address, problem = '' } = readSharedAddress(settings.url);
    this.#address = address;
    this.#problem = problem;
    for (const one of [address?.password, settings.password, settings.sentinelPassword])
      if (one !== undefined) hideSecret(one);
  }

  get kind(): SharedAddress['kind'] {
    return this.#address?.kind ?? 'single';
  }

  /**
   * Connects to the server that has the key. `onError` is called when the connection ends, at most once it was made. Rejects with
   * {@link SharedStoreMistake} where the settings are at fault.
   */
  async connectTo(key: string, onError: (client: StoreClient, error: Error) => void): Promise<Connected> {
    const address = this.#address;
    if (address === undefined) throw new SharedStoreMistake(`"shared.url" ${this.#problem}.`);
    const node = await this.#find(address, key);
    return { client: await this.#open(node, 'server', onError), node };
  }

  /** Asks a Sentinel whether this server is still the master; true for other kinds, and where none answers. */
  async isCurrent(node: SharedNode): Promise<boolean> {
    const address = this.#address;
    if (address?.kind !== 'sentinel') return true;
    try {
      const now = await this.#find(address, '');
      return now.host === node.host && now.port === node.port;
    } catch {
      return true;
    }
  }

  #find(address: SharedAddress, key: string): Promise<SharedNode> {
    const [node] = address.nodes;
    if (address.kind === 'single' && node !== undefined) return Promise.resolve(node);
    if (address.kind === 'sentinel')
      return this.#queryInOrder(address, 'sentinel', (client) => masterOf(client, address));
    return this.#queryInOrder(address, 'server', (client, seed) => ownerOf(client, key, seed));
  }

  /** Runs the query at one Sentinel or node after the other, until one succeeds. */
  async #queryInOrder(
    { nodes }: SharedAddress,
    role: 'sentinel' | 'server',
    question: (client: StoreClient, node: SharedNode) => Promise<SharedNode>,
  ): Promise<SharedNode> {
    let failure: unknown;
    for (let tried = 0; tried < nodes.length; tried += 1) {
      const index = (this.#first + tried) % nodes.length;
      const node = nodes[index];
      if (node === undefined) break;
      let client: StoreClient | undefined;
      // oxlint-disable no-await-in-loop -- the next one is asked only when this one fails
      try {
        client = await this.#open(node, role, () => {});
        const found = await within(connectTime, question(client, node));
        this.#first = index;
        return this.#mapped(found);
      } catch (cause) {
        const error =
          SharedStoreMistake.in(cause, { server: nodeName(node), role, kind: this.kind }) ?? cause;
        // A wrong password is of more use to the operator than another server that is gone.
        if (!(failure instanceof SharedStoreMistake)) failure = error;
      } finally {
        if (client !== undefined) discard(client);
      }
      // oxlint-enable no-await-in-loop
    }
    throw failure;
  }

  #mapped(node: SharedNode): SharedNode {
    return readNode(this.#settings.nodeAddressMap?.[nodeName(node)] ?? '', 0) ?? node;
  }

  async #open(
    node: SharedNode,
    role: 'sentinel' | 'server',
    onError: (client: StoreClient, error: Error) => void,
  ): Promise<StoreClient> {
    const settings = this.#settings;
    const address = this.#address;
    const credentials =
      role === 'sentinel'
        ? { username: settings.sentinelUsername, password: settings.sentinelPassword }
        : {
            username: settings.username ?? address?.username,
            password: settings.password ?? address?.password,
          };
    const client = createNodeClient(await loadRedis(), {
      node,
      credentials,
      database: role === 'sentinel' ? 0 : (address?.database ?? 0),
      tls: address?.tls === true ? (settings.tls ?? {}) : undefined,
    });
    // Without a listener what befalls an idle connection would end the process.
    client.on('error', (error: Error) => onError(client, error));
    try {
      const connected = client.connect();
      // One that is made after it was given up would stay open.
      connected.then(
        () => (client.isOpen ? undefined : discard(client)),
        () => {},
      );
      await within(connectTime, connected);
      return client;
    } catch (error) {
      discard(client);
      throw SharedStoreMistake.in(error, { server: nodeName(node), role, kind: this.kind }) ?? error;
    }
  }
}

/** A connection, and the server that it leads to. */
export interface Connected {
  readonly client: StoreClient;
  readonly node: SharedNode;
}

async function masterOf(client: StoreClient, { master }: SharedAddress): Promise<SharedNode> {
  const found = await client.sendCommand<[string, string] | null>([
    'SENTINEL',
    'GET-MASTER-ADDR-BY-NAME',
    master,
  ]);
  if (found === null)
    throw new SharedStoreMistake(
      `The Sentinels know no master "${master}": correct the name in "shared.url".`,
    );
  return { host: found[0], port: Number(found[1]) };
}

type Slots = readonly (readonly [
  from: number,
  to: number,
  owner: readonly [host: string | null, port: number],
])[];

/** The node of a cluster that has this key. The node that is asked may know no name for itself. */
async function ownerOf(client: StoreClient, key: string, seed: SharedNode): Promise<SharedNode> {
  const [slot, slots] = await Promise.all([
    client.sendCommand<number>(['CLUSTER', 'KEYSLOT', key]),
    client.sendCommand<Slots>(['CLUSTER', 'SLOTS']),
  ]);
  const owner = slots.find(([from, to]) => from <= slot && slot <= to)?.[2];
  if (owner === undefined) throw new Error('No node of the cluster has the keys of the shared store.');
  const [host, port] = owner;
  return { host: host === null || host === '' || host === '?' ? seed.host : host, port };
}

/** Loads the driver, where there is a shared store at all: it takes a tenth of the time of a start. */
export function loadRedis(): Promise<Redis> {
  return import('@redis/client');
}

/** A client that is never connected. Others are its duplicates. */
let template: ReturnType<typeof createTemplate> | undefined;

/** The older form of the protocol: every server and every compatible one speaks it. */
function createTemplate({ createClient }: Redis) {
  return createClient({ RESP: 2, disableOfflineQueue: true });
}

/**
 * Creates a client of one node. The driver builds a class with all its commands whenever the options differ from those before, as they do
 * with each other node: that takes 30 ms of CPU, and a duplicate 0.03 ms (measured in November 2026).
 */
function createNodeClient(
  redis: Redis,
  {
    node: { host, port },
    credentials: { username, password },
    database,
    tls,
  }: {
    readonly node: SharedNode;
    readonly credentials: { readonly username?: string | undefined; readonly password?: string | undefined };
    readonly database: number;
    readonly tls: SharedStoreSettings['tls'];
  },
) {
  const usual = { host, port, connectTimeout: socketTime, reconnectStrategy: false, noDelay: true } as const;
  template ??= createTemplate(redis);
  return template.duplicate({
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    database,
    socket: tls === undefined ? usual : { ...usual, ...secureOptions(tls, host) },
  });
}

function secureOptions(
  { ca, cert, key, servername, verify = true }: NonNullable<SharedStoreSettings['tls']>,
  host: string,
) {
  const isName = !/^[\d.]+$|:/.test(host);
  const name = servername ?? (isName ? host : undefined);
  return {
    tls: true as const,
    ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(name === undefined ? {} : { servername: name }),
    rejectUnauthorized: verify,
  };
}

/** Ends a connection, whatever state it is in. */
export function discard(client: StoreClient): void {
  try {
    client.destroy();
  } catch {
    // It had ended by itself.
  }
}

/**
 * Connection to the shared Redis store: runs scripts with a short timeout, reconnects in the background, and follows Sentinel and Cluster.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { nodeName, type SharedNode } from '../../settings/shared-address.ts';
import type { SharedStoreSettings } from '../../settings/shared.ts';
import { connectTime, discard, loadRedis, SharedServers, type StoreClient } from './shared-connection.ts';
import { SharedStoreMistake } from './shared-mistakes.ts';
import { within } from './within.ts';

/** Timeout of one command, in milliseconds. A store that takes longer counts as unavailable, so that no call waits for it. */
const commandTime = 400;
/** Pause between two attempts to connect, in milliseconds. */
const pause = 500;
/** Pause in milliseconds before a command is retried that a cluster cannot run while it moves the keys to another node. */
const movingPause = 25;
/** Interval in milliseconds at which the Sentinels are asked for the master, because a master that is cut off from them still answers the gateway. */
const masterCheck = 5_000;

/** A Lua script, which the store runs atomically, and its SHA-1, by which the store caches it. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** Returns the script of a text. */
export function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/** Called with the reason when the shared store becomes unavailable, and without one when it is available again. */
export type ReportShared = (error?: Error) => void;

/** Options of one connection. */
export interface SharedLinkOptions {
  readonly store: SharedStoreSettings;
  /**
   * Prefix of all keys of this connection. It has a hash tag (`sluice:{rates}:`), so that a cluster keeps all of these keys on one node, where
   * one script may use them.
   */
  readonly prefix: string;
  /** Loaded by each new connection, so that each script is cached before its first use. */
  readonly scripts: readonly Script[];
  readonly report: ReportShared;
  /** Runs whenever the store becomes available, including the first time. */
  readonly onUp: () => void;
}

/**
 * The connection. A store that does not answer within {@link commandTime} counts as unavailable, and the connection is made anew in the
 * background. Meanwhile every command is rejected at once; none is queued. Where the store has several servers, each new connection leads to
 * the one that has the keys then.
 */
export class SharedLink {
  readonly #options: SharedLinkOptions;
  readonly #servers: SharedServers;
  #client: StoreClient | undefined;
  #down: boolean | undefined;
  #retry: NodeJS.Timeout | undefined;
  #checking: NodeJS.Timeout | undefined;
  #closed = false;
  /** Settles with the first attempt to connect, and with the first one after the keys have moved: calls wait for it. */
  #opening: Promise<void> | undefined;

  constructor(options: SharedLinkOptions) {
    this.#options = options;
    this.#servers = new SharedServers(options.store);
    // The timeout does not include the loading of the driver.
    this.#open(loadRedis());
  }

  get isUp(): boolean {
    return this.#client !== undefined;
  }

  /** Runs a script. Rejects within {@link commandTime} when the store does not answer, which then counts as unavailable. */
  async run<T>({ text, sha }: Script, keys: readonly string[], values: readonly string[]): Promise<T> {
    const rest = [String(keys.length), ...keys, ...values];
    try {
      return await this.command<T>(['EVALSHA', sha, ...rest]);
    } catch (error) {
      if (!startsWith(error, 'NOSCRIPT')) throw error;
      return this.command<T>(['EVAL', text, ...rest]);
    }
  }

  async command<T>(words: readonly string[]): Promise<T> {
    const end = performance.now() + commandTime;
    for (;;) {
      // oxlint-disable no-await-in-loop -- again only while a cluster moves the keys
      if (this.#opening !== undefined) await this.#opening;
      const client = this.#client;
      if (client === undefined) throw new Error('The shared store does not answer.');
      try {
        return await within<T>(commandTime, client.sendCommand<T>(words));
      } catch (error) {
        if (startsWith(error, 'NOSCRIPT')) throw error;
        const isOver = performance.now() >= end;
        if (!isOver && startsWith(error, 'MOVED ')) this.#moved(client);
        else if (!isOver && (startsWith(error, 'ASK ') || startsWith(error, 'TRYAGAIN')))
          await sleep(movingPause);
        else {
          this.#lost(client, error);
          throw error;
        }
      }
      // oxlint-enable no-await-in-loop
    }
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    clearTimeout(this.#checking);
    if (this.#client !== undefined) discard(this.#client);
    this.#client = undefined;
  }

  #open(loaded: Promise<unknown> = Promise.resolve()): void {
    const opening = loaded
      .then(() => within(commandTime, this.#connect()))
      .catch(() => {})
      .finally(() => {
        if (this.#opening === opening) this.#opening = undefined;
      });
    this.#opening = opening;
  }

  async #connect(): Promise<void> {
    let made: StoreClient | undefined;
    try {
      const { prefix, scripts } = this.#options;
      const { client, node } = await this.#servers.connectTo(prefix, (one, error) => this.#lost(one, error));
      made = client;
      await prepare(client, prefix, scripts);
      if (this.#closed) throw new Error('The gateway closes.');
      if (this.#servers.kind === 'sentinel') this.#checkLater(client, node);
    } catch (error) {
      if (made !== undefined) discard(made);
      this.#gone(error);
      return;
    }
    this.#client = made;
    if (this.#down === true) this.#options.report();
    this.#down = false;
    this.#options.onUp();
  }

  /** Asks the Sentinels for the master at an interval, as long as this connection is used. */
  #checkLater(client: StoreClient, node: SharedNode): void {
    clearTimeout(this.#checking);
    this.#checking = setTimeout(async () => {
      if (this.#client !== client) return;
      if (!(await this.#servers.isCurrent(node))) this.#moved(client);
      else if (this.#client === client) this.#checkLater(client, node);
    }, masterCheck).unref();
  }

  /** Connects at once to the server that has the keys after a move. */
  #moved(client: StoreClient): void {
    if (this.#client !== client || this.#closed) return;
    this.#client = undefined;
    discard(client);
    this.#open();
  }

  #lost(client: StoreClient, error: unknown): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    discard(client);
    this.#gone(error);
  }

  #gone(error: unknown): void {
    if (this.#closed) return;
    clearTimeout(this.#checking);
    if (this.#down !== true) {
      this.#down = true;
      this.#options.report(
        error instanceof Error ? error : new Error('The shared store failed.', { cause: error }),
      );
    }
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.#connect(), pause);
    this.#retry.unref();
  }
}

/** Checks a new connection and loads the scripts. Rejects for a store that cannot be written (a replica, a full disk). */
async function prepare(client: StoreClient, prefix: string, scripts: readonly Script[]): Promise<void> {
  const probe = client.sendCommand(['EVAL', probeScript, '1', `${prefix}probe`]);
  const known = scripts.map(({ text }) => client.sendCommand(['SCRIPT', 'LOAD', text]));
  await within(commandTime, Promise.all([probe, ...known]));
}

const probeScript = `redis.call('TIME') return redis.call('SET', KEYS[1], '1', 'PX', '1000')`;

/** Prefixes of all connections of a gateway. */
const prefixes = ['sluice:{rates}:', 'sluice:{health}:'];

/**
 * Checks the shared store of these settings. Rejects with {@link SharedStoreMistake} for errors that need other settings: wrong password,
 * missing permission, wrong kind. Resolves when the store works, and when it is only unavailable now.
 */
export async function checkSharedStore(store: SharedStoreSettings): Promise<void> {
  if (/^memory:/i.test(store.url)) return;
  const servers = new SharedServers(store);
  const check = async (prefix: string): Promise<void> => {
    let client: StoreClient | undefined;
    try {
      const connected = await servers.connectTo(prefix, () => {});
      ({ client } = connected);
      const server = nodeName(connected.node);
      await prepare(client, prefix, []).catch((error: unknown) => {
        throw SharedStoreMistake.in(error, { server, role: 'server', kind: servers.kind }) ?? error;
      });
    } finally {
      if (client !== undefined) discard(client);
    }
  };
  try {
    await within(2 * connectTime, Promise.all(prefixes.map(check)));
  } catch (error) {
    if (error instanceof SharedStoreMistake) throw error;
  }
}

function startsWith(error: unknown, word: string): boolean {
  return error instanceof Error && error.message.startsWith(word);
}

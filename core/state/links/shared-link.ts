import { createHash } from 'node:crypto';
import { hideSecret } from '../../log.ts';

/** Longest time for one command, in milliseconds. What takes longer is taken for gone, so that no call waits for it. */
const commandTime = 400;
/** Longest time for a connection to be made and tried. */
const connectTime = 1_000;
/** When the socket itself gives up: it goes by time, and must not do so because the process stood still. */
const socketTime = 30_000;
/** Pause between two tries while the store is gone. */
const pause = 500;

/** Time between two looks whether an answer has come. */
const look = 50;

type Redis = typeof import('@redis/client');
type Client = ReturnType<typeof connecting>;

/** A script that runs in the shared store as one step, and the name under which the store keeps it. */
export interface Script {
  readonly text: string;
  readonly sha: string;
}

/** A script of this text. */
export function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') };
}

/** Told when the shared store goes, with the reason, and without one when it is back. */
export type ReportShared = (error?: Error) => void;

/** What one user of the shared store needs of its connection. */
export interface SharedLinkOptions {
  readonly url: string;
  /** Before every name that this user has in the store: it may write there. */
  readonly prefix: string;
  /** A new connection brings them along, so that each is known from its first use. */
  readonly scripts: readonly Script[];
  readonly report: ReportShared;
  /** Runs whenever the store can be reached again, and the first time. */
  readonly onUp: () => void;
}

/**
 * The connection to the shared store: either it answers within {@link commandTime}, or it counts as gone and is made anew in the background.
 * While it is gone every command is refused at once; none is kept for later.
 */
export class SharedLink {
  readonly #options: SharedLinkOptions;
  #client: Client | undefined;
  #down: boolean | undefined;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;
  /** Settles with the first try: the calls of a gateway that has just started wait for it. */
  #opening: Promise<void> | undefined;

  constructor(options: SharedLinkOptions) {
    this.#options = options;
    hidePassword(options.url);
    this.#opening = loadRedis()
      .then(() => within(commandTime, this.#connect()))
      .catch(() => {})
      .finally(() => {
        this.#opening = undefined;
      });
  }

  get isUp(): boolean {
    return this.#client !== undefined;
  }

  /** Runs a script. Rejects within {@link commandTime} when the store does not answer, and counts it as gone from then on. */
  async run<T>({ text, sha }: Script, keys: readonly string[], values: readonly string[]): Promise<T> {
    const rest = [String(keys.length), ...keys, ...values];
    try {
      return await this.command<T>(['EVALSHA', sha, ...rest]);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return this.command<T>(['EVAL', text, ...rest]);
    }
  }

  async command<T>(words: readonly string[]): Promise<T> {
    if (this.#opening !== undefined) await this.#opening;
    const client = this.#client;
    if (client === undefined) throw new Error('The shared store does not answer.');
    try {
      return await within<T>(commandTime, client.sendCommand<T>(words));
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) this.#lost(client, error);
      throw error;
    }
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    if (this.#client !== undefined) discard(this.#client);
    this.#client = undefined;
  }

  async #connect(): Promise<void> {
    let made: Client | undefined;
    try {
      const client = (made = connecting(await loadRedis(), this.#options.url));
      // Without a listener what befalls an idle connection would end the process.
      client.on('error', (error: Error) => this.#lost(client, error));
      const connected = client.connect();
      // One that is made after it was given up would stay open.
      connected.then(
        () => (client.isOpen ? undefined : discard(client)),
        () => {},
      );
      await within(connectTime, connected);
      // A store that can be read but not written (a replica, a full disk) is of no use.
      const probe = client.sendCommand(['SET', `${this.#options.prefix}probe`, '1', 'PX', '1000']);
      const known = this.#options.scripts.map(({ text }) => client.sendCommand(['SCRIPT', 'LOAD', text]));
      await within(commandTime, Promise.all([probe, ...known]));
      if (this.#closed) throw new Error('The gateway closes.');
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

  #lost(client: Client, error: unknown): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    discard(client);
    this.#gone(error);
  }

  #gone(error: unknown): void {
    if (this.#closed) return;
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

/** Loaded where there is a shared store at all: it takes a tenth of the time of a start. */
function loadRedis(): Promise<Redis> {
  return import('@redis/client');
}

function connecting({ createClient }: Redis, url: string) {
  return createClient({
    url,
    // The older form of the protocol: every server and every compatible one speaks it.
    RESP: 2,
    disableOfflineQueue: true,
    socket: { connectTimeout: socketTime, reconnectStrategy: false, noDelay: true },
  });
}

function discard(client: Client): void {
  try {
    client.destroy();
  } catch {
    // It had ended by itself.
  }
}

/** Rejects when the promise takes longer; what becomes of it then concerns nobody. */
function within<T>(time: number, promise: Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    // Looks, not time: a gateway that stood still itself, and has not read what came meanwhile, must not take the store for gone.
    let looks = 0;
    const timer = setInterval(() => {
      looks += 1;
      if (looks * look < time) return;
      clearInterval(timer);
      reject(new Error(`The shared store did not answer within ${time} ms.`));
    }, look);
    promise.then(
      (value) => {
        clearInterval(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearInterval(timer);
        reject(error instanceof Error ? error : new Error('The shared store failed.', { cause: error }));
      },
    );
  });
}

function hidePassword(url: string): void {
  if (!URL.canParse(url)) return;
  const { password } = new URL(url);
  if (password !== '') hideSecret(decodeURIComponent(password));
}

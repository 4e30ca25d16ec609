/** Requests the models and prices of a provider in the background, and stores the list for restarts and other processes. */
import type { Keyv } from 'keyv';
import type { Log } from '../log.ts';
import type { KnownPrice, PricedModel } from '../sdk/channel.ts';
import { rowSchema, type PriceRow } from '../settings/prices.ts';

/** Last list of a provider, and its time in milliseconds since 1970. */
export interface DiscoveredModels {
  readonly at: number;
  readonly names: readonly string[];
  /** Prices by model name, where the provider lists them. */
  readonly prices?: Readonly<Record<string, PriceRow>>;
}

/** Options of a discovery. Times are in milliseconds. */
export interface DiscoveryOptions {
  /** Returns the provider's model names, some with prices. Rejects when the provider does not list them. */
  readonly listModels: () => Promise<readonly (string | PricedModel)[]>;
  /** Stores the list under `cacheKey`, for restarts and other processes. */
  readonly kept: Pick<Keyv<DiscoveredModels>, 'get' | 'set'>;
  readonly cacheKey: string;
  readonly log: Log;
  /** Maximum age of a list. Default: an hour. */
  readonly every?: number;
  /** First delay of retries, which doubles up to `every`. Default: 5 seconds. */
  readonly retry?: number;
}

/** Maximum number of names. No known provider has as many models. */
const mostNames = 5_000;

/** Milliseconds for which a list is stored after its last refresh. */
const keptFor = 30 * 86_400_000;

/** Models that one provider lists. Calls never wait for the list. The last list stays until there is a new one. */
export class ModelDiscovery {
  readonly #options: DiscoveryOptions;
  readonly #every: number;
  #discovered: DiscoveredModels | undefined;
  #names: ReadonlySet<string> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #closed = false;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
    this.#every = options.every ?? 3_600_000;
  }

  /** Names of the models; undefined until the first list. The same set until the names change. */
  get names(): ReadonlySet<string> | undefined {
    return this.#names;
  }

  /** Prices in the last list. The same object until there is another list. */
  get prices(): object | undefined {
    return this.#discovered?.prices;
  }

  /** Returns the price of a model in the last list. */
  priceOf(name: string): KnownPrice | undefined {
    const { prices, at = 0 } = this.#discovered ?? {};
    const row = prices !== undefined && Object.hasOwn(prices, name) ? prices[name] : undefined;
    return row && { name, source: `provider's list of ${new Date(at).toISOString().slice(0, 10)}`, row };
  }

  /** Loads the stored list. */
  async load(): Promise<void> {
    try {
      this.#take(await this.#options.kept.get(this.#options.cacheKey));
    } catch (error) {
      this.#options.log.warn({ error }, 'the stored model list of a provider could not be read');
    }
  }

  /** Starts the refreshes. Calls `changed` when the names have changed. */
  begin(changed: () => void): void {
    const again = (wait: number): void => {
      if (this.#closed) return;
      this.#timer = setTimeout(() => {
        void this.#refresh(changed).then(again);
      }, wait).unref();
    };
    again(Math.max(0, this.#every - this.#age()));
  }

  /** Stops the refreshes. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #age(): number {
    return this.#discovered === undefined ? Infinity : Math.max(0, Date.now() - this.#discovered.at);
  }

  /** Refreshes the list. Resolves with the delay until the next refresh. */
  async #refresh(changed: () => void): Promise<number> {
    const { listModels, kept, cacheKey, log, retry = 5_000 } = this.#options;
    const before = this.#names;
    try {
      // Another process may have refreshed the list meanwhile.
      await this.load();
      if (this.#age() >= this.#every) {
        const listed = await listModels();
        const names = sound(listed);
        if (this.#closed) return 0;
        if (names.length > mostNames)
          log.warn({ models: names.length, kept: mostNames }, 'a provider lists more models than are stored');
        const prices = pricesIn(listed);
        const discovered: DiscoveredModels = {
          at: Date.now(),
          names: names.slice(0, mostNames),
          ...(prices === undefined ? {} : { prices }),
        };
        this.#take(discovered);
        await kept.set(cacheKey, discovered, keptFor);
      }
      if (this.#failures > 0) log.info({}, 'a provider returns its model list again');
      this.#failures = 0;
    } catch (error) {
      if (this.#closed) return 0;
      this.#failures += 1;
      log[this.#failures === 1 ? 'warn' : 'debug']({ error }, 'a provider does not return its model list');
    }
    if (this.#names !== before && !this.#closed) changed();
    if (this.#failures > 0) return Math.min(this.#every, retry * 2 ** Math.min(this.#failures - 1, 20));
    // With jitter, because processes that were started together must not all request the list at once.
    return this.#every * (1 + Math.random() / 10) - Math.min(this.#age(), this.#every);
  }

  /** Replaces the set of names only when the names have changed. */
  #take(discovered: DiscoveredModels | undefined): void {
    if (discovered === undefined || !Array.isArray(discovered.names) || typeof discovered.at !== 'number')
      return;
    if (this.#discovered !== undefined && discovered.at < this.#discovered.at) return;
    this.#discovered = discovered;
    const names = new Set(discovered.names);
    if (this.#names?.size !== names.size || !names.isSubsetOf(this.#names)) this.#names = names;
  }
}

/** Returns the valid names without duplicates. */
function sound(listed: readonly unknown[]): readonly string[] {
  const names = listed.flatMap((one) => (isListed(one) ? (one.isVariant === true ? [] : [one.name]) : [one]));
  return [...new Set(names.filter(isSound))];
}

function isListed(one: unknown): one is PricedModel {
  return typeof one === 'object' && one !== null && 'name' in one;
}

/** Returns the valid prices by model; undefined if there are none. */
function pricesIn(listed: readonly unknown[]): DiscoveredModels['prices'] {
  const prices: [string, PriceRow][] = [];
  for (const one of listed) {
    if (!isListed(one) || one.price === undefined || !isSound(one.name) || prices.length >= mostNames)
      continue;
    const row = rowSchema.safeParse(one.price);
    if (row.success) prices.push([one.name, row.data]);
  }
  return prices.length === 0 ? undefined : Object.fromEntries(prices);
}

function isSound(name: unknown): name is string {
  return typeof name === 'string' && name.length <= 256 && /^[^\s\p{C}*]+( +[^\s\p{C}*]+)*$/u.test(name);
}

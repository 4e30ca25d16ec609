/** Channels that administrators have switched off, in all processes. */
import { entriesOf, type InternalTools } from 'sluice/internal';
import type { Catalog } from './core-types.ts';

const namespace = 'channel-switches';

/** Interval for reading the switches of other processes, in milliseconds. */
const followEvery = 1_000;

type SwitchTools = Pick<InternalTools, 'stores' | 'log' | 'notices'> & { readonly catalog: Catalog };

/** Which channels are switched off: kept in the database, so that all gateways on it follow within about a second. */
export class ChannelSwitches {
  readonly #stores: SwitchTools['stores'];
  readonly #kept;
  readonly #catalog: Catalog;
  readonly #log: SwitchTools['log'];
  readonly #notices: SwitchTools['notices'];
  #off: ReadonlySet<string> = new Set();
  #revision: number | undefined;
  /** Number of started reads, and the one whose result is used. */
  #begun = 0;
  #inForce = 0;
  #timer: NodeJS.Timeout | undefined;
  #failing = false;

  constructor({ stores, catalog, log, notices }: SwitchTools) {
    this.#stores = stores;
    this.#kept = stores.namespace<true>(namespace);
    this.#catalog = catalog;
    this.#log = log;
    this.#notices = notices;
  }

  /** Reads the switches, and goes on following them until `stop`. */
  async follow(): Promise<void> {
    await this.#read();
    this.#timer = setInterval(() => void this.#look(), followEvery).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async set(channel: string, on: boolean): Promise<void> {
    if (on) await this.#kept.delete(channel);
    else await this.#kept.set(channel, true);
    await this.#read();
  }

  async #look(): Promise<void> {
    try {
      if ((await this.#stores.revision(namespace)) !== this.#revision) await this.#read();
      this.#failing = false;
    } catch (error) {
      // Once per failure of the database. What was known stays in force.
      if (!this.#failing) this.#log.error({ error }, 'the switches of channels could not be read');
      this.#failing = true;
    }
  }

  async #read(): Promise<void> {
    const reading = (this.#begun += 1);
    const revision = await this.#stores.revision(namespace);
    const off = new Set<string>();
    for await (const [channel] of entriesOf(this.#kept)) off.add(channel);
    // A read that started later has newer data.
    if (reading < this.#inForce) return;
    this.#inForce = reading;
    this.#catalog.switchOff(off);
    this.#revision = revision;
    const hasChanged = off.symmetricDifference(this.#off).size > 0;
    this.#off = off;
    if (hasChanged) this.#notices.emit('models-changed');
  }
}

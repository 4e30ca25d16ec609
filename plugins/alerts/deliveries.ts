/** Sends messages to destinations, within a time, and counts what came of them. */
import type { PluginTools } from 'sluice';
import { maskSecrets } from 'sluice';
import type { Message } from './alert.ts';
import type { AlertsOptions } from './options.ts';
import type { OpenDestination } from './destinations/destination.ts';
import { openDestination } from './destinations/index.ts';

/** Deliveries to all destinations. */
export class Deliveries {
  readonly #destinations: ReadonlyMap<string, OpenDestination>;
  readonly #timeout: number;
  readonly #log: PluginTools['log'];
  readonly #sent;

  private constructor(
    destinations: ReadonlyMap<string, OpenDestination>,
    timeout: number,
    { log, metrics }: Pick<PluginTools, 'log' | 'metrics'>,
  ) {
    this.#destinations = destinations;
    this.#timeout = timeout;
    this.#log = log;
    this.#sent = metrics.counter(
      'deliveries',
      'Tries to deliver a message, by destination and result: ok or failed.',
      ['destination', 'result'],
    );
  }

  /** Opens the destinations. Rejects with a sentence where a package is missing. */
  static async open(options: AlertsOptions, tools: PluginTools): Promise<Deliveries> {
    const opened = await Promise.all(
      Object.entries(options.destinations).map(
        async ([name, one]) => [name, await openDestination(one, { ...options, http: tools.http })] as const,
      ),
    );
    return new Deliveries(new Map(opened), options.timeout, tools);
  }

  get names(): readonly string[] {
    return [...this.#destinations.keys()];
  }

  /** Returns true for a destination that wants one message for each alert. */
  takesOne(name: string): boolean {
    return this.#destinations.get(name)?.takesOne ?? false;
  }

  /** Sends a message. Resolves with what went wrong, undefined when nothing did. Never rejects, and takes no longer than the timeout. */
  async send(message: Message): Promise<string | undefined> {
    const { destination } = message;
    const deadline = AbortSignal.timeout(this.#timeout);
    let error: string | undefined;
    try {
      const open = this.#destinations.get(destination);
      if (open === undefined) throw new Error('The destination was removed from the configuration.');
      await within(open.send(message, { timeout: this.#timeout, signal: deadline }), deadline);
    } catch (cause) {
      error = maskSecrets(cause instanceof Error ? cause.message : String(cause)).slice(0, 300);
      this.#log.warn({ destination, tries: message.tries, error }, 'an alert was not delivered');
    }
    this.#sent.add({ destination, result: error === undefined ? 'ok' : 'failed' });
    return error;
  }

  /** Closes connections that are kept open. */
  close(): void {
    for (const one of this.#destinations.values()) one.close?.();
  }
}

/** Rejects when the signal aborts, also where the work does not look at it. */
function within(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = (): void => reject(new Error('It took too long.'));
    signal.addEventListener('abort', late, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', late));
  });
}

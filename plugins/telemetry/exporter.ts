/** Exports batches of one signal over OTLP, and counts those that are dropped. */
import type { ExportResult } from '@opentelemetry/core';
import type { ISerializer } from '@opentelemetry/otlp-transformer';
import type { Losses, Signal } from './losses.ts';
import type { Packages } from './packages.ts';
import type { Transport } from './transport.ts';

/** Options of the exporter of one signal. */
export interface ExporterOptions<Batch, Response> {
  readonly signal: Signal;
  readonly serializer: ISerializer<Batch, Response>;
  readonly transport: Transport;
  readonly losses: Losses;
  readonly packages: Packages;
  /** Number of things in a batch. */
  readonly count: (batch: Batch) => number;
  /** Number of things that the receiver refused, by its response. */
  readonly rejected: (response: Response) => number;
  /** Runs when the batch is gone, exported or not. */
  readonly released?: (batch: Batch) => void;
  /** Maximum number of batches that are being sent at the same time; undefined where the queue bounds them. */
  readonly maxPending?: number;
}

/** Exports batches of one signal as OTLP. A batch that fails is counted and dropped, and nothing is thrown into the SDK. */
export class OtlpExporter<Batch, Response> {
  readonly #options: ExporterOptions<Batch, Response>;
  readonly #pending = new Set<Promise<void>>();

  constructor(options: ExporterOptions<Batch, Response>) {
    this.#options = options;
  }

  export(batch: Batch, done: (result: ExportResult) => void): void {
    const { packages, signal, losses, count, maxPending = Infinity } = this.#options;
    const { core } = packages;
    if (this.#pending.size >= maxPending) {
      losses.add(signal, 'queue_full', count(batch));
      done({ code: core.ExportResultCode.SUCCESS });
      return;
    }
    const pending = this.#send(batch).then(() => {
      this.#pending.delete(pending);
      // A failure is counted already. The SDK would only give it to a handler that nobody has set.
      done({ code: core.ExportResultCode.SUCCESS });
    });
    this.#pending.add(pending);
  }

  /** Resolves when the receiver has taken every batch, or the batch is lost. */
  async forceFlush(): Promise<void> {
    await Promise.all(this.#pending);
  }

  shutdown(): Promise<void> {
    return this.forceFlush();
  }

  async #send(batch: Batch): Promise<void> {
    const { signal, serializer, transport, losses, count, rejected, released } = this.#options;
    try {
      const data = serializer.serializeRequest(batch);
      if (data === undefined) throw new Error('the batch could not be encoded');
      const response = await transport.send(data);
      losses.add(signal, 'rejected', this.#rejectedIn(response, rejected));
    } catch (error) {
      losses.add(
        signal,
        'export_failed',
        count(batch),
        error instanceof Error ? error.message : String(error),
      );
    } finally {
      released?.(batch);
    }
  }

  /** Ignores an unreadable response, because its status shows that everything was accepted. */
  #rejectedIn(response: Uint8Array, rejected: (response: Response) => number): number {
    if (response.length === 0) return 0;
    try {
      return rejected(this.#options.serializer.deserializeResponse(response));
    } catch {
      return 0;
    }
  }
}

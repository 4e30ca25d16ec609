/** Limits the spans and log records that wait for export, in number and in bytes. */
import type { Context } from '@opentelemetry/api';
import type { LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord } from '@opentelemetry/sdk-logs';
import type { ReadableSpan, Span, SpanProcessor } from '@opentelemetry/sdk-trace';
import type { Losses, Signal } from './losses.ts';

/** Number of bytes that a span or a log record takes without its texts, about. */
const fixedBytes = 2_048;

/**
 * Bounds what waits for the receiver, in number and in bytes, from the end of a call until its export has ended. The processors of the SDK
 * bound the number alone, and forget what they have handed to an exporter.
 */
export class Room {
  readonly #maxRecords: number;
  readonly #maxBytes: number;
  readonly #signal: Signal;
  readonly #losses: Losses;
  #records = 0;
  #bytes = 0;

  constructor(signal: Signal, { records, bytes }: { records: number; bytes: number }, losses: Losses) {
    this.#signal = signal;
    this.#maxRecords = records;
    this.#maxBytes = bytes;
    this.#losses = losses;
  }

  /** Reserves room for one record. Returns false and counts the record as dropped where the queue is full. */
  take(record: Attributed): boolean {
    const bytes = sizeOf(record);
    if (this.#records >= this.#maxRecords || this.#bytes + bytes > this.#maxBytes) {
      this.#losses.add(this.#signal, 'queue_full', 1);
      return false;
    }
    this.#records += 1;
    this.#bytes += bytes;
    return true;
  }

  /** Releases the room of a batch. */
  readonly release = (batch: readonly Attributed[]): void => {
    this.#records -= batch.length;
    for (const record of batch) this.#bytes -= sizeOf(record);
  };
}

type Attributed = Pick<ReadableSpan | ReadableLogRecord, 'attributes'>;

/** Texts count twice their characters, as they may be kept in UTF-16. Attributes do not change once a span has ended. */
function sizeOf({ attributes }: Attributed): number {
  let bytes = fixedBytes;
  for (const name in attributes) {
    const value = attributes[name];
    if (typeof value === 'string') bytes += value.length * 2;
    else if (Array.isArray(value))
      for (const one of value) bytes += typeof one === 'string' ? one.length * 2 + 16 : 16;
  }
  return bytes;
}

/** Passes spans to a processor as long as there is room. */
export class BoundedSpans implements SpanProcessor {
  readonly #room: Room;
  readonly #next: SpanProcessor;

  constructor(room: Room, next: SpanProcessor) {
    this.#room = room;
    this.#next = next;
  }

  onStart(span: Span, parent: Context): void {
    this.#next.onStart(span, parent);
  }

  onEnd(span: ReadableSpan): void {
    if (this.#room.take(span)) this.#next.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#next.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#next.shutdown();
  }
}

/** Passes log records to a processor as long as there is room. */
export class BoundedLogs implements LogRecordProcessor {
  readonly #room: Room;
  readonly #next: LogRecordProcessor;

  constructor(room: Room, next: LogRecordProcessor) {
    this.#room = room;
    this.#next = next;
  }

  onEmit(record: ReadWriteLogRecord, context?: Context): void {
    if (this.#room.take(record)) this.#next.onEmit(record, context);
  }

  forceFlush(): Promise<void> {
    return this.#next.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#next.shutdown();
  }
}

/** Schema of the telemetry options: the OTLP receiver, signals, sampling, content of spans, and the limits of queues. */
import { z } from 'zod';
import { secret, secretUrl } from 'sluice';
import { isPattern } from './redact.ts';

/** A value of a resource attribute. */
const attribute = z.union([z.string(), z.number(), z.boolean()]);

/** Options of the plugin `telemetry`. */
export const options = z.strictObject({
  /** Base URL of an OTLP/HTTP receiver. `/v1/traces`, `/v1/metrics` and `/v1/logs` are appended. */
  endpoint: secretUrl(
    z
      .url({ protocol: /^https?$/ })
      .refine((url) => new URL(url).username === '', 'must have no user and password: send them in headers')
      .refine((url) => new URL(url).search === '', 'must have no query: it is a base URL'),
  ).default('http://localhost:4318'),
  /** Headers of every export, such as `authorization`. Their values are masked everywhere. */
  headers: z.record(z.string().min(1), secret(z.string())).default({}),
  /** Encoding of exports. */
  protocol: z.enum(['http/protobuf', 'http/json']).default('http/protobuf'),
  /** Compression of exports. */
  compression: z.enum(['none', 'gzip']).default('none'),
  /** Signals that are exported. */
  signals: z
    .strictObject({
      traces: z.boolean().default(true).describe('exports spans of calls'),
      metrics: z.boolean().default(true).describe('exports metrics of calls'),
      logs: z.boolean().default(true).describe('exports log lines'),
    })
    .prefault({}),
  /** Share of the traces beginning at the gateway that are recorded. A call with a `traceparent` follows the decision of its caller. */
  sampling: z.number().min(0).max(1).default(1),
  /**
   * Content of requests and responses in spans. `off`: only settings and figures. `metadata`: also the client, error messages, and the
   * numbers of messages and tools. `full`: also the texts; it turns pass-through off, because every response has to be decoded.
   */
  content: z.enum(['off', 'metadata', 'full']).default('off'),
  /**
   * Patterns (`/text/flags`) whose matches are removed from texts and error messages. Text that looks like a credential is always removed.
   */
  redact: z
    .array(z.string().refine(isPattern, 'must be a pattern such as "/\\d{16}/" or "/name@example/i"'))
    .default([]),
  /** Maximum bytes of each attribute with texts. */
  maxBytes: z
    .int()
    .min(256)
    .max(1024 * 1024)
    .default(16 * 1024),
  /** Maximum size of the queue of spans, and of the queue of log records. Further entries are dropped and counted. */
  queue: z
    .strictObject({
      records: z
        .int()
        .min(1)
        .max(1_000_000)
        .default(4_096)
        .describe('maximum number of records in each queue'),
      bytes: z
        .int()
        .min(64 * 1024)
        .max(1024 * 1024 * 1024)
        .default(32 * 1024 * 1024)
        .describe('maximum bytes of each queue'),
    })
    .prefault({}),
  /** The resource attribute `service.name`. */
  serviceName: z.string().min(1).default('sluice'),
  /** Further resource attributes, such as `deployment.environment.name`. */
  resource: z.record(z.string().min(1), attribute).default({}),
  /** Ids of the channels whose providers get `traceparent` and `tracestate`. `*` means all. */
  forward: z.array(z.string().min(1)).default([]),
  /** Creates a span for each plugin that a call passes. */
  pluginSpans: z.boolean().default(false),
  /** Interval between exports of metrics, in milliseconds. */
  metricsInterval: z.int().min(1_000).max(3_600_000).default(60_000),
  /** Temporality of counters and histograms: totals since the start, or deltas since the last export. */
  temporality: z.enum(['cumulative', 'delta']).default('cumulative'),
  /** Timeout of an export with all its retries, in milliseconds. */
  timeout: z.int().min(100).max(60_000).default(10_000),
});

/** Checked options. */
export type TelemetryOptions = z.output<typeof options>;

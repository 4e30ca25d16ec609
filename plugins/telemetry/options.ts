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
  /** How exports are encoded. */
  protocol: z.enum(['http/protobuf', 'http/json']).default('http/protobuf'),
  /** How exports are compressed. */
  compression: z.enum(['none', 'gzip']).default('none'),
  /** Signals that are exported. */
  signals: z
    .strictObject({
      traces: z.boolean().default(true).describe('spans of calls'),
      metrics: z.boolean().default(true).describe('figures of calls'),
      logs: z.boolean().default(true).describe('lines of the log'),
    })
    .prefault({}),
  /** Share of the traces that begin here and are recorded. A call with a `traceparent` follows the decision of its caller. */
  sampling: z.number().min(0).max(1).default(1),
  /**
   * Content of requests and responses in spans: `off`, settings and figures alone; `metadata`, also the client, error messages, and the
   * numbers of messages and tools; `full`, also the texts. `full` turns pass-through off, because every response has to be decoded.
   */
  content: z.enum(['off', 'metadata', 'full']).default('off'),
  /** Patterns, `/text/flags`, that are removed from texts and error messages, before what looks like a credential is. */
  redact: z
    .array(z.string().refine(isPattern, 'must be a pattern such as "/\\d{16}/" or "/name@example/i"'))
    .default([]),
  /** Maximum number of bytes of each attribute that has texts. */
  maxBytes: z
    .int()
    .min(256)
    .max(1024 * 1024)
    .default(16 * 1024),
  /** Maximum size of the queue of spans, and of that of log records. What has no room is dropped and counted. */
  queue: z
    .strictObject({
      records: z.int().min(1).max(1_000_000).default(4_096).describe('most records of each queue'),
      bytes: z
        .int()
        .min(64 * 1024)
        .max(1024 * 1024 * 1024)
        .default(32 * 1024 * 1024)
        .describe('most bytes of each queue'),
    })
    .prefault({}),
  /** The resource attribute `service.name`. */
  serviceName: z.string().min(1).default('sluice'),
  /** Further resource attributes, such as `deployment.environment.name`. */
  resource: z.record(z.string().min(1), attribute).default({}),
  /** Ids of the channels whose providers get `traceparent` and `tracestate`. `*` means all. */
  forward: z.array(z.string().min(1)).default([]),
  /** Makes a span for each plugin that a call meets. */
  pluginSpans: z.boolean().default(false),
  /** Milliseconds between two exports of metrics. */
  metricsInterval: z.int().min(1_000).max(3_600_000).default(60_000),
  /** Whether counters and histograms are sent as totals since the start, or as what was added since the last export. */
  temporality: z.enum(['cumulative', 'delta']).default('cumulative'),
  /** Milliseconds that an export may take, with all its retries. */
  timeout: z.int().min(100).max(60_000).default(10_000),
});

/** Checked options. */
export type TelemetryOptions = z.output<typeof options>;

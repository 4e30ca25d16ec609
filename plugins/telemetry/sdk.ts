/** Sets up the SDK of OpenTelemetry: providers, processors and exporters of the enabled signals, and their shutdown. */
import { randomUUID } from 'node:crypto';
import type { PluginTools } from 'sluice';
import { OtlpExporter } from './exporter.ts';
import { Losses, type Signal } from './losses.ts';
import type { TelemetryOptions } from './options.ts';
import type { Packages } from './packages.ts';
import { BoundedLogs, BoundedSpans, Room } from './queue.ts';
import { scopeName } from './ended-span.ts';
import { longestSend, Transport } from './transport.ts';

/** Maximum number of spans or log records in one export: fewer where they have texts, because an export is encoded in one go. */
const batchSize = { off: 512, metadata: 512, full: 64 } as const;

/**
 * Maximum number of exports of metrics at the same time: one that waits for the receiver, and the last one when the gateway closes. The SDK starts
 * the next one when an interval has passed, whether the last one has ended or not.
 */
const maxMetricExports = 2;

/** Maximum number of points in one export of metrics. */
const maxPoints = 1_000;

/** Maximum time in milliseconds that a span or log record waits for a batch. */
const batchDelay = 1_000;

/** Milliseconds for exporting everything when the gateway closes. A closing worker is killed after five seconds. */
const closeTimeout = 4_000;

/** OpenTelemetry SDK of one process. Each worker exports separately, as an instance of the service. */
export type Sdk = ReturnType<typeof startSdk>;

/** Parts that all signals need. */
interface Parts {
  readonly options: TelemetryOptions;
  readonly packages: Packages;
  readonly losses: Losses;
  readonly resource: ReturnType<typeof resourceOf>;
  readonly isJson: boolean;
  readonly transportOf: (signal: Signal) => Transport;
}

/** Starts the providers of the signals that are on. */
export function startSdk(options: TelemetryOptions, packages: Packages, tools: PluginTools) {
  const losses = new Losses(
    tools.log,
    tools.metrics.counter(
      'dropped',
      'Spans, log records and exports of metrics that were not exported. reason: queue_full, export_failed or rejected.',
      ['signal', 'reason'],
    ),
  );
  const isJson = options.protocol === 'http/json';
  const transports: Transport[] = [];
  const transportOf = (signal: Signal): Transport => {
    const transport = new Transport({
      http: tools.http,
      url: `${options.endpoint.replace(/\/+$/, '')}/v1/${signal}`,
      headers: options.headers,
      contentType: isJson ? 'application/json' : 'application/x-protobuf',
      compression: options.compression,
      timeout: options.timeout,
    });
    transports.push(transport);
    return transport;
  };
  const resource = resourceOf(options, packages);
  const parts: Parts = { options, packages, losses, resource, isJson, transportOf };
  const { signals } = options;
  const spans = signals.traces && openSpans(parts);
  const logging = signals.logs && openLogs(parts);
  const metering = signals.metrics && openMetrics(parts);

  const close = async (): Promise<void> => {
    for (const transport of transports) transport.close(closeTimeout);
    const closing = [spans, logging, metering].flatMap((one) => (one === false ? [] : [one.shutdown()]));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, closeTimeout + 200);
    });
    await Promise.race([Promise.allSettled(closing), late]);
    clearTimeout(timer);
    losses.close();
  };

  return {
    resource,
    losses,
    spans: spans === false ? undefined : spans,
    logger: logging === false ? undefined : logging.getLogger(scopeName),
    meter: metering === false ? undefined : metering.getMeter(scopeName),
    close,
  };
}

function resourceOf(options: TelemetryOptions, { resources }: Packages) {
  return resources.defaultResource().merge(
    resources.resourceFromAttributes({
      'service.instance.id': randomUUID(),
      'process.pid': process.pid,
      ...options.resource,
      'service.name': options.serviceName,
    }),
  );
}

function batchingOf(options: TelemetryOptions) {
  return {
    maxQueueSize: options.queue.records,
    maxExportBatchSize: Math.min(batchSize[options.content], options.queue.records),
    scheduledDelayMillis: batchDelay,
    // The transport has its own timeout for each export.
    exportTimeoutMillis: longestSend(options.timeout),
  };
}

function openSpans({ options, packages, losses, isJson, transportOf }: Parts) {
  const { trace, transformer } = packages;
  const batching = batchingOf(options);
  const spanRoom = new Room('traces', options.queue, losses);
  return new BoundedSpans(
    spanRoom,
    new trace.BatchSpanProcessor({
      ...batching,
      exporter: new OtlpExporter({
        signal: 'traces',
        serializer: isJson ? transformer.JsonTraceSerializer : transformer.ProtobufTraceSerializer,
        transport: transportOf('traces'),
        losses,
        packages,
        count: (batch) => batch.length,
        rejected: ({ partialSuccess }) => Number(partialSuccess?.rejectedSpans ?? 0),
        released: spanRoom.release,
      }),
    }),
  );
}

function openLogs({ options, packages, losses, resource, isJson, transportOf }: Parts) {
  const { logs, transformer } = packages;
  const batching = batchingOf(options);
  const logRoom = new Room('logs', options.queue, losses);
  return new logs.LoggerProvider({
    resource,
    processors: [
      new BoundedLogs(
        logRoom,
        new logs.BatchLogRecordProcessor({
          ...batching,
          exporter: new OtlpExporter({
            signal: 'logs',
            serializer: isJson ? transformer.JsonLogsSerializer : transformer.ProtobufLogsSerializer,
            transport: transportOf('logs'),
            losses,
            packages,
            count: (records) => records.length,
            rejected: ({ partialSuccess }) => Number(partialSuccess?.rejectedLogRecords ?? 0),
            released: logRoom.release,
          }),
        }),
      ),
    ],
  });
}

function openMetrics({ options, packages, losses, resource, isJson, transportOf }: Parts) {
  const { metrics, transformer } = packages;
  const temporality =
    metrics.AggregationTemporality[options.temporality === 'delta' ? 'DELTA' : 'CUMULATIVE'];
  return new metrics.MeterProvider({
    resource,
    readers: [
      new metrics.PeriodicExportingMetricReader({
        exportIntervalMillis: options.metricsInterval,
        maxExportBatchSize: maxPoints,
        exporter: Object.assign(
          new OtlpExporter({
            signal: 'metrics',
            serializer: isJson ? transformer.JsonMetricsSerializer : transformer.ProtobufMetricsSerializer,
            transport: transportOf('metrics'),
            losses,
            packages,
            count: () => 1,
            rejected: ({ partialSuccess }) => Number(partialSuccess?.rejectedDataPoints ?? 0),
            maxPending: maxMetricExports,
          }),
          { selectAggregationTemporality: () => temporality },
        ),
      }),
    ],
  });
}

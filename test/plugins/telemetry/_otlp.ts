import { createRequire } from 'node:module';

/*
 * Reads what an OTLP/HTTP exporter sends, by the generated code of OpenTelemetry's own protocol files in protobuf, and as JSON.
 */

/** A value of an attribute, without its OTLP wrapping. */
export type Value = string | number | boolean | readonly Value[];
type Attributes = Readonly<Record<string, Value>>;

/** One span as a receiver sees it. Times are in milliseconds since 1970. */
export interface SeenSpan {
  readonly name: string;
  /** `SERVER`, `CLIENT` or `INTERNAL`. */
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly start: number;
  readonly end: number;
  readonly attributes: Attributes;
  /** `UNSET`, `OK` or `ERROR`. */
  readonly status: string;
  readonly message: string;
  readonly resource: Attributes;
}

/** One point of a metric. */
export interface SeenPoint {
  readonly metric: string;
  readonly unit: string;
  readonly type: 'sum' | 'histogram';
  /** 1: delta; 2: cumulative. */
  readonly temporality: number;
  readonly attributes: Attributes;
  /** The value of a sum, the sum of a histogram. */
  readonly value: number;
  readonly count: number;
  readonly resource: Attributes;
}

/** One log record. */
export interface SeenRecord {
  readonly body: Value | undefined;
  readonly severity: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly attributes: Attributes;
  readonly resource: Attributes;
}

/** Data that a receiver has received. */
export type Seen =
  | { readonly signal: 'traces'; readonly spans: readonly SeenSpan[] }
  | { readonly signal: 'metrics'; readonly points: readonly SeenPoint[] }
  | { readonly signal: 'logs'; readonly records: readonly SeenRecord[] };

interface Any {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: string | number;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values?: readonly Any[] };
}
type Pairs = readonly { readonly key: string; readonly value?: Any }[] | undefined;
type Loose = Readonly<Record<string, never>>;
type List = readonly Loose[] | undefined;

interface Message {
  decode(bytes: Uint8Array): unknown;
  toObject(message: unknown, options: object): Loose;
}

const services = (
  createRequire(import.meta.url)('@opentelemetry/otlp-proto-exporter-base/build/src/generated/root.js') as {
    readonly opentelemetry: {
      readonly proto: { readonly collector: Record<string, { v1: Record<string, Message> }> };
    };
  }
).opentelemetry.proto.collector;

const requests = {
  traces: services['trace']?.v1['ExportTraceServiceRequest'],
  metrics: services['metrics']?.v1['ExportMetricsServiceRequest'],
  logs: services['logs']?.v1['ExportLogsServiceRequest'],
} as const;

/** Decodes the body of one export. */
export function seenIn(signal: Seen['signal'], contentType: string, body: Buffer): Seen {
  const root = contentType.includes('json') ? (JSON.parse(body.toString()) as Loose) : decoded(signal, body);
  switch (signal) {
    case 'traces':
      return { signal, spans: spansIn(root) };
    case 'metrics':
      return { signal, points: pointsIn(root) };
    case 'logs':
      return { signal, records: recordsIn(root) };
  }
}

function decoded(signal: Seen['signal'], body: Buffer): Loose {
  const type = requests[signal];
  if (type === undefined) throw new Error(`There is no protocol for ${signal}.`);
  // Bytes as base64 and numbers of 64 bits as texts, as JSON would have them.
  return type.toObject(type.decode(body), { longs: String, enums: String, bytes: String, defaults: false });
}

/** Ids are hexadecimal in JSON, and base64 in what was decoded from protobuf. */
function hex(id: string | undefined): string {
  if (id === undefined || id === '') return '';
  return /^[0-9a-f]{16,32}$/.test(id) ? id : Buffer.from(id, 'base64').toString('hex');
}

function millis(nanos: string | number | undefined): number {
  return Number(BigInt(nanos ?? 0) / 1000n) / 1000;
}

function valueOf(value: Any | undefined): Value {
  if (value?.arrayValue !== undefined) return (value.arrayValue.values ?? []).map(valueOf);
  if (value?.intValue !== undefined) return Number(value.intValue);
  return value?.stringValue ?? value?.boolValue ?? value?.doubleValue ?? '';
}

function attributesOf(pairs: Pairs): Attributes {
  return Object.fromEntries((pairs ?? []).map(({ key, value }) => [key, valueOf(value)]));
}

function resourceOf(group: Loose): Attributes {
  return attributesOf((group['resource'] as { attributes?: Pairs } | undefined)?.attributes);
}

const kinds = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'];
const statuses = ['UNSET', 'OK', 'ERROR'];

function named(names: readonly string[], prefix: string, value: string | number | undefined): string {
  return typeof value === 'string' ? value.replace(prefix, '') : (names[value ?? 0] ?? '');
}

function spansIn(root: Loose): SeenSpan[] {
  return ((root['resourceSpans'] as List) ?? []).flatMap((group) =>
    ((group['scopeSpans'] as List) ?? []).flatMap((scoped) =>
      ((scoped['spans'] as List) ?? []).map((span: Record<string, unknown>) => {
        const status = span['status'] as { code?: string | number; message?: string } | undefined;
        return {
          name: span['name'] as string,
          kind: named(kinds, 'SPAN_KIND_', span['kind'] as string | number),
          traceId: hex(span['traceId'] as string),
          spanId: hex(span['spanId'] as string),
          parentSpanId: hex(span['parentSpanId'] as string | undefined),
          traceState: (span['traceState'] as string | undefined) ?? '',
          start: millis(span['startTimeUnixNano'] as string),
          end: millis(span['endTimeUnixNano'] as string),
          attributes: attributesOf(span['attributes'] as Pairs),
          status: named(statuses, 'STATUS_CODE_', status?.code),
          message: status?.message ?? '',
          resource: resourceOf(group),
        };
      }),
    ),
  );
}

interface Points {
  readonly aggregationTemporality?: number | string;
  readonly dataPoints?: readonly {
    readonly attributes?: Pairs;
    readonly asDouble?: number;
    readonly asInt?: string | number;
    readonly sum?: number;
    readonly count?: string | number;
  }[];
}

function pointsIn(root: Loose): SeenPoint[] {
  return ((root['resourceMetrics'] as List) ?? []).flatMap((group) =>
    ((group['scopeMetrics'] as List) ?? []).flatMap((scoped) =>
      ((scoped['metrics'] as List) ?? []).flatMap((metric: Record<string, unknown>) => {
        const type = metric['histogram'] === undefined ? 'sum' : 'histogram';
        const { dataPoints = [], aggregationTemporality } = (metric[type] ?? {}) as Points;
        return dataPoints.map((point) => ({
          metric: metric['name'] as string,
          unit: (metric['unit'] as string | undefined) ?? '',
          type: type as SeenPoint['type'],
          temporality:
            String(aggregationTemporality).endsWith('DELTA') || aggregationTemporality === 1 ? 1 : 2,
          attributes: attributesOf(point.attributes),
          value: point.sum ?? point.asDouble ?? Number(point.asInt ?? 0),
          count: Number(point.count ?? 0),
          resource: resourceOf(group),
        }));
      }),
    ),
  );
}

function recordsIn(root: Loose): SeenRecord[] {
  return ((root['resourceLogs'] as List) ?? []).flatMap((group) =>
    ((group['scopeLogs'] as List) ?? []).flatMap((scoped) =>
      ((scoped['logRecords'] as List) ?? []).map((record: Record<string, unknown>) => ({
        body: record['body'] === undefined ? undefined : valueOf(record['body'] as Any),
        severity: (record['severityText'] as string | undefined) ?? '',
        traceId: hex(record['traceId'] as string | undefined),
        spanId: hex(record['spanId'] as string | undefined),
        attributes: attributesOf(record['attributes'] as Pairs),
        resource: resourceOf(group),
      })),
    ),
  );
}

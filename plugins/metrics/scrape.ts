/** Joins the metrics of all workers into one page. */
import { AggregatorRegistry, Gauge, type Metric, type Registry } from 'prom-client';
import { z } from 'zod';
import type { WorkerAnswer, WorkerAnswers } from 'sluice';

const kind = z.object({ name: z.string(), help: z.string(), type: z.string() });
const sample = z.object({
  labels: z.record(z.string(), z.union([z.string(), z.number()])).default({}),
  value: z.number(),
  /** Name of the sample where it is not the metric's own: `…_bucket`, `…_sum`. */
  metricName: z.string().optional(),
});
type Sample = z.output<typeof sample>;

const aggregator = z.enum(['sum', 'average', 'min', 'max', 'first', 'omit']).default('sum');
const metric = kind.extend({ aggregator, values: z.array(z.unknown()) });

/** Metrics of one process besides its totals: kinds of its counters and histograms, and its gauges in full. */
const processMetrics = z.object({ counted: z.array(kind), gauges: z.array(metric) });

/** The series of one total. */
const series = z.tuple([z.string(), z.string(), sample.shape.labels]);

/** Returns the measurements of this process, for {@link textOf}. Counters and histograms only grow, because they are totals. */
export async function measured(registries: readonly Registry[]): Promise<WorkerAnswer> {
  const counted: z.output<typeof kind>[] = [];
  const gauges: z.output<typeof metric>[] = [];
  const totals: Totals = {};
  const all = await Promise.all(registries.map((registry) => registry.getMetricsAsJSON()));
  for (const found of z.array(metric).parse(all.flat())) {
    const { name, help, type, values } = found;
    if (type === 'gauge') {
      gauges.push({ ...found, values: samplesOf(values) });
      continue;
    }
    counted.push({ name, help, type });
    addTotals(totals, name, values);
  }
  return { value: { counted, gauges }, totals };
}

/** Returns the totals alone, for the end of a process: its gauges end with it, and are not measured. */
export async function totalsOf(registries: readonly Registry[]): Promise<Totals> {
  const all = registries.flatMap((registry) => registry.getMetricsAsArray() as unknown as readonly Metric[]);
  const found = await Promise.all(all.filter((one) => !(one instanceof Gauge)).map((one) => one.get()));
  const totals: Totals = {};
  for (const { name, values } of found) addTotals(totals, name, values);
  return totals;
}

type Totals = Record<string, number>;

function addTotals(totals: Totals, name: string, values: readonly unknown[]): void {
  for (const { labels, value, metricName = name } of samplesOf(values)) {
    const key = JSON.stringify([name, metricName, labels] satisfies z.input<typeof series>);
    totals[key] = (totals[key] ?? 0) + value;
  }
}

/** Returns the metrics of all processes together, in the text format of Prometheus. */
export function textOf({ answers, silent, totals }: WorkerAnswers): Promise<string> {
  const all = answers.flatMap(({ value }) => {
    const { data } = processMetrics.safeParse(value);
    return data === undefined ? [] : [data];
  });
  const samples = new Map<string, Sample[]>();
  for (const { counted } of all) for (const { name } of counted) samples.set(name, []);
  for (const [key, value] of Object.entries(totals)) {
    const [name, metricName, labels] = seriesOf(key) ?? [];
    if (name !== undefined && labels !== undefined) samples.get(name)?.push({ metricName, labels, value });
  }
  const counters = new Map(all.flatMap(({ counted }) => counted.map((one) => [one.name, one] as const)));
  return AggregatorRegistry.aggregate([
    [...counters.values()].map((one) => ({
      ...one,
      aggregator: 'sum',
      values: (samples.get(one.name) ?? []).map((each) => plain(one.name, each)),
    })),
    ...all.map(({ gauges }) =>
      // Takes the minimum, because the start time of the gateway is that of its oldest process.
      gauges.map((gauge) => ({
        ...gauge,
        aggregator: gauge.aggregator === 'omit' ? 'min' : gauge.aggregator,
      })),
    ),
    [
      {
        name: 'sluice_workers',
        help: 'Worker processes that serve, or finish running calls. silent: did not respond in time, and are not part of any gauge.',
        type: 'gauge',
        aggregator: 'sum',
        values: [
          { labels: { state: 'answered' }, value: all.length },
          { labels: { state: 'silent' }, value: answers.length + silent.length - all.length },
        ],
      },
    ],
  ]).metrics();
}

/** Returns the series that a total stands for; undefined for a total that another version of this code has named. */
function seriesOf(key: string): z.output<typeof series> | undefined {
  try {
    return series.parse(JSON.parse(key));
  } catch {
    return undefined;
  }
}

/** Returns the values that are numbers, because a metric that was not measured yet has none. */
function samplesOf(values: readonly unknown[]): Sample[] {
  return values.flatMap((value) => {
    const { data } = sample.safeParse(value);
    return data === undefined ? [] : [data];
  });
}

function plain(name: string, { labels, value, metricName }: Sample): Sample {
  return metricName === name ? { labels, value } : { labels, value, metricName };
}

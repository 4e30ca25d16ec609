import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { processMetrics } from '../../plugins/metrics/process.ts';
import { Series, type SeriesTools } from '../../plugins/metrics/series.ts';
import { sourcesOf } from './_comments.ts';
import { generatedBy, pageOf, sentence } from './_page.ts';

const plugins = join(import.meta.dirname, '../../plugins');
/** A database that is a server has series of its own. */
const figures = { connections: [{ server: 'primary' }] };
const tools = {
  catalog: { channels: [] },
  operations: { figures: () => figures },
  overload: {},
} as unknown as SeriesTools;

test('the reference has every metric', async () => {
  const page = pageOf(
    '# Metrics',
    generatedBy(
      'test/reference/metrics.test.ts',
      'the plugin [metrics](../../plugins/metrics) and the counters of other plugins',
    ),
    "`GET /metrics` answers in Prometheus' text format, with the sums of all workers of a gateway. Callers from private addresses may read it, or those that send the `token` of the [plugin](plugins.md#metrics). [Send traces, metrics and logs](../guides/telemetry.md) has the metrics that OpenTelemetry receives.",
    '## Of calls, channels and stores',
    linesOf(new Series(tools).registry, /^sluice_/),
    '## Of other plugins',
    pluginCounters().join('\n'),
    '## Of processes',
    'Besides these, each process has the default metrics of [prom-client](https://github.com/siimon/prom-client): `process_*` and `nodejs_*`.',
    [
      linesOf(
        processMetrics(() => 0),
        /^sluice_/,
      ),
      '- `sluice_workers` (gauge; `state`): Processes that serve. silent: they did not answer in time, and are left out of all gauges.',
    ].join('\n'),
  );
  await expect(page).toMatchFileSnapshot('../../docs/reference/metrics.md');
});

function linesOf(registry: Registry, shown: RegExp): string {
  return registry
    .getMetricsAsArray()
    .filter(({ name }) => shown.test(name))
    .map((metric) => {
      const {
        name,
        help,
        type,
        labelNames = [],
      } = metric as typeof metric & {
        readonly labelNames?: readonly string[];
      };
      return lineOf(name, String(type), labelNames, help);
    })
    .join('\n');
}

function lineOf(name: string, type: string, labels: readonly string[], help: string): string {
  const facts = [type, ...(labels.length === 0 ? [] : [labels.map((label) => `\`${label}\``).join(', ')])];
  return `- \`${name}\` (${facts.join('; ')}): ${sentence(help)}`;
}

/** Counters as plugins declare them, with a name, a text and their labels. */
function pluginCounters(): readonly string[] {
  return readdirSync(plugins)
    .filter((name) => !name.startsWith('_') && !name.endsWith('.md'))
    .flatMap((file) => {
      const plugin = file.replace(/\.ts$/, '').replaceAll('-', '_');
      return sourcesOf(join(plugins, file)).flatMap((source) =>
        [...source.matchAll(/metrics\.counter\(\s*'(\w+)',\s*'([^']+)'(?:,\s*\[([^\]]*)\])?/g)].map(
          ([, name = '', help = '', labels = '']) =>
            lineOf(
              `sluice_plugin_${plugin}_${name}_total`,
              'counter',
              [...labels.matchAll(/'(\w+)'/g)].map(([, label = '']) => label),
              help,
            ),
        ),
      );
    });
}

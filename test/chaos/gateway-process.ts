/** The gateway of the chaos, in a process of its own: a real server with every plugin, and a probe that looks into it. */
import { setTimeout as pause } from 'node:timers/promises';
import { join } from 'node:path';
import { definePlugin, type InternalTools } from 'sluice/internal';
import type { UsageRecord } from '../../core/model/usage-record.ts';
import demo from '../../channels/demo/index.ts';
import { readConfig } from '../../core/config/config.ts';
import { type GatewayConfig } from '../../core/sdk/config.ts';
import { createLog } from '../../core/log.ts';
import { startServer } from '../../core/server.ts';
import type { TargetHealth } from '../../core/sdk/health.ts';
import { answering } from '../bench/answering.ts';
import { dialects, formats, type Format } from './dialects.ts';
import { faults } from './faults.ts';
import { seamPlugin, type Seam } from './seams.ts';

/** Options from the parent in `CHAOS_GATEWAY`. */
export interface GatewayOrder {
  readonly folder: string;
  readonly upstream: string;
  readonly refusing: string;
  readonly settings: GatewayConfig;
  readonly keys: number;
  readonly seam?: Seam;
}

/** The first words of the process. */
export interface GatewayReady {
  readonly url: string;
  readonly keys: readonly string[];
}

/** Resources that are held at a time. */
export interface Probe {
  /** Bytes, after a full collection. */
  readonly rss: number;
  readonly heap: number;
  /** Active resources of the event loop by kind. */
  readonly handles: Readonly<Record<string, number>>;
  readonly reservations: number;
  /** Settlements that wait to be written. */
  readonly unsettled: number;
  /** Lines of the log that tell of a failure of the gateway's own. */
  readonly errors: readonly string[];
}

/** Usage record of a call. */
export type BookedCall = Pick<
  UsageRecord,
  'id' | 'keyId' | 'status' | 'ended' | 'input' | 'output' | 'microDollars' | 'model' | 'code'
>;

/** All that was charged. */
export interface Books {
  readonly keys: readonly { readonly id: string; readonly spent: number; readonly reserved: number }[];
  readonly records: readonly BookedCall[];
}

const order = JSON.parse(process.env['CHAOS_GATEWAY'] ?? '{}') as GatewayOrder;
const held: { tools?: InternalTools } = {};
const probe = definePlugin({
  name: 'probe',
  stage: 'observe',
  setup(_options, tools: InternalTools) {
    held.tools = tools;
    return (call, next) => next(call);
  },
});
/** One kind of channel speaks two of the formats: here each speaks its own alone. */
const traitsFor = (format: Format) =>
  format === 'chat-completions' ? { traits: { '*': { formats: [format] } } } : {};
const seam = order.seam === undefined ? undefined : seamPlugin(order.seam, order.upstream);
const config = readConfig(
  {
    listen: { port: 0, host: '127.0.0.1' },
    database: `sqlite:${join(order.folder, 'sluice.db')}`,
    data: join(order.folder, 'data'),
    prices: { '*': { input: 10, output: 20 } },
    // A busy machine refuses no call.
    overload: { lag: 600_000 },
    ...order.settings,
    plugins: [probe(), seam],
    channels: [
      ...formats.flatMap((format) => [
        ...faults.map(({ name, play }) =>
          dialects[format].channel(`${play === undefined ? order.refusing : order.upstream}/first`, {
            id: `${name}.${format}`,
            models: [`${name}.${format}.*`],
            priority: 1,
            ...traitsFor(format),
          }),
        ),
        dialects[format].channel(`${order.upstream}/second`, {
          id: `second.${format}`,
          models: [`*.pair-${format}`],
          ...traitsFor(format),
        }),
      ]),
      ...formats.map((format) =>
        demo({ id: `demo.${format}`, speaks: [format], models: { [`demo.${format}`]: 'demo' } }),
      ),
    ],
  } satisfies GatewayConfig,
  join(order.folder, 'gateway.config.ts'),
);

const errors: string[] = [];
const log = createLog('warn', {
  write(line: string) {
    const { level } = JSON.parse(line) as { readonly level: string };
    if ((level === 'error' || level === 'fatal') && errors.length < 20) errors.push(line.trim());
  },
});

const server = await startServer(config, log);
for (const event of ['uncaughtException', 'unhandledRejection'])
  process.on(event, (error: unknown) =>
    errors.push(`${event}: ${error instanceof Error ? error.stack : String(error)}`),
  );
const budget = { unit: 'micro-dollar', period: 'total', amount: 1e15 } as const;
const keys = await Promise.all(
  Array.from({ length: order.keys }, (_, index) =>
    server.apiKeys.create({ name: `chaos ${index}`, budgets: [budget] }),
  ),
);

function toolsOf(): InternalTools {
  if (held.tools === undefined) throw new Error('The probe was not set up.');
  return held.tools;
}

function querySqlite(sql: string): Record<string, unknown> {
  const { database } = server.stores;
  if (database.kind !== 'sqlite') throw new Error('The chaos runs on SQLite.');
  return (database.connection.prepare(sql).get() ?? {}) as Record<string, unknown>;
}

answering(
  {
    async probe(): Promise<Probe> {
      globalThis.gc?.();
      await pause(20);
      globalThis.gc?.();
      const handles: Record<string, number> = {};
      for (const kind of process.getActiveResourcesInfo()) handles[kind] = (handles[kind] ?? 0) + 1;
      return {
        rss: process.memoryUsage.rss(),
        heap: process.memoryUsage().heapUsed,
        handles,
        reservations: Number(querySqlite('SELECT COUNT(*) AS claims FROM ledger_reservations')['claims']),
        unsettled: toolsOf().bookkeeper.waiting,
        errors,
      };
    },
    rss: (): number => process.memoryUsage.rss(),
    async books(): Promise<Books> {
      if (order.seam === 'lost-record')
        querySqlite(
          'DELETE FROM usage_records WHERE id IN (SELECT MAX(id) FROM usage_records WHERE micro_dollars > 0) RETURNING id',
        );
      const { ledger, usageLog } = toolsOf();
      const records: BookedCall[] = [];
      for await (const {
        id,
        keyId,
        status,
        ended,
        input,
        output,
        microDollars,
        model,
        code,
      } of usageLog.each({})) {
        records.push({
          id,
          status,
          ended,
          input,
          output,
          model,
          ...(keyId === undefined ? {} : { keyId }),
          ...(microDollars === undefined ? {} : { microDollars }),
          ...(code === undefined ? {} : { code }),
        });
      }
      const states = await Promise.all(
        keys.map(async ({ record: { id } }) => {
          const [state] = await ledger.states(id, [budget]);
          return { id, spent: state?.spent ?? -1, reserved: state?.reserved ?? -1 };
        }),
      );
      return { keys: states, records };
    },
    health: (): readonly TargetHealth[] => toolsOf().health.report(),
    close: () => server.close(),
  },
  { url: server.url, keys: keys.map(({ value }) => value) } satisfies GatewayReady,
);

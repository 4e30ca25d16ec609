/** Prometheus metrics: counters and histograms of calls, and gauges that are read when the metrics are scraped. */
import { Counter, Gauge, Histogram, Registry, type Aggregator } from 'prom-client';
import type { Call, PluginTools, ProcessFigures, SettledCall, TargetStanding } from 'sluice';
import { PendingCalls, tokenKinds } from './pending.ts';

/** Services that the series read. */
export type SeriesTools = Pick<PluginTools, 'catalog' | 'operations' | 'overload'>;

/** Histogram buckets in seconds: from responses of the cache to long reasoning. */
const durations = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

const standings: readonly TargetStanding['state'][] = ['up', 'cooling', 'resting', 'probing'];

/**
 * All series, in a registry of their own. The number of values of every label is bounded: formats, operations and codes are the gateway's own,
 * channels and models are those of the configuration.
 */
export class Series {
  readonly registry = new Registry();
  readonly #named: ReadonlySet<string>;
  readonly #calls;
  readonly #seconds;
  readonly #firstSeconds;
  readonly #tokens;
  readonly #dollars;
  readonly #failures;
  readonly #endErrors;
  readonly #learned;
  /** Calls that are not in the counters yet, by all of their labels. */
  readonly #pending = new Map<string, PendingCalls>();

  constructor(tools: SeriesTools) {
    this.#named = new Set(
      tools.catalog.channels.flatMap(({ models }) => models).filter((name) => !name.includes('*')),
    );
    const registers = [this.registry];
    const collect = (): void => this.#addPending();
    this.#calls = new Counter({
      name: 'sluice_calls_total',
      help: 'Calls that have ended. status: 2xx, 4xx or 5xx as sent to the client, or left (the client left); code: error code, empty for successful calls.',
      labelNames: ['operation', 'format', 'channel', 'model', 'status', 'code'],
      registers,
      collect,
    });
    this.#seconds = new Histogram({
      name: 'sluice_call_duration_seconds',
      help: 'Time from the request to the end of the response.',
      labelNames: ['operation', 'channel'],
      buckets: durations,
      registers,
    });
    this.#firstSeconds = new Histogram({
      name: 'sluice_first_token_seconds',
      help: 'Time from the request to the first event of the response.',
      labelNames: ['operation', 'channel'],
      buckets: durations,
      registers,
    });
    this.#tokens = new Counter({
      name: 'sluice_tokens_total',
      help: 'Tokens by kind, if usage-log, quota or rate-limit read usage. cache_read and cache_write are parts of input, reasoning is a part of output.',
      labelNames: ['kind', 'channel', 'model'],
      registers,
      collect,
    });
    this.#dollars = new Counter({
      name: 'sluice_cost_dollars_total',
      help: 'Cost of calls, for models with a price.',
      labelNames: ['channel', 'model'],
      registers,
      collect,
    });
    this.#failures = new Counter({
      name: 'sluice_attempts_failed_total',
      help: 'Failed attempts at a channel, also if a fallback succeeded.',
      labelNames: ['channel', 'code'],
      registers,
    });
    this.#endErrors = new Counter({
      name: 'sluice_end_of_call_errors_total',
      help: 'Errors in the work of plugins and the gateway at the end of calls. Each is logged; the calls are not affected.',
      registers,
    });
    this.#learned = new Counter({
      name: 'sluice_learned_refusals_total',
      help: 'Request fields that a provider has refused, and that are omitted for the model.',
      labelNames: ['channel'],
      registers,
    });
    this.#look(tools);
  }

  /** Counts a call that has ended. */
  count(call: Call, { response, usage, cost, answeredBy = '' }: SettledCall): void {
    const { attempt, ended, error, firstMs, status } = response;
    const { operation } = call;
    const channel = attempt?.channel ?? answeredBy;
    const model = this.#modelOf(call.askedModel);
    const family = ended === 'left' ? 'left' : `${Math.floor(status / 100)}xx`;
    const format = call.format.name;
    const code = error?.code ?? '';
    const key = [operation, format, channel, model, family, code].join('\0');
    let pending = this.#pending.get(key);
    if (pending === undefined) {
      pending = new PendingCalls({ operation, format, channel, model, status: family, code });
      this.#pending.set(key, pending);
    }
    pending.calls += 1;
    this.#seconds.observe(pending.ofTimes, response.ms / 1000);
    if (firstMs !== undefined) this.#firstSeconds.observe(pending.ofTimes, firstMs / 1000);
    if (usage !== undefined) pending.add(usage);
    pending.microDollars += cost?.microDollars ?? 0;
  }

  /** Adds the pending calls to the counters. Called at each scrape, because adding to each counter took half of the work for a call. */
  #addPending(): void {
    for (const { labels, calls, tokens, microDollars } of this.#pending.values()) {
      const { channel, model } = labels;
      this.#calls.inc(labels, calls);
      for (const kind of tokenKinds)
        if (tokens[kind] > 0) this.#tokens.inc({ kind, channel, model }, tokens[kind]);
      if (microDollars > 0) this.#dollars.inc({ channel, model }, microDollars / 1e6);
    }
    this.#pending.clear();
  }

  /** Counts an attempt that failed. */
  countFailure(channel: string, code: string): void {
    this.#failures.inc({ channel, code });
  }

  /** Counts an error in the work at the end of a call. */
  countEndError(): void {
    this.#endErrors.inc();
  }

  /** Counts a member that a model of a channel was found to refuse. */
  countLearned(channel: string): void {
    this.#learned.inc({ channel });
  }

  /** Returns the label of a model: its name where a channel lists it, otherwise `other`, because clients may send any name. */
  #modelOf(model: string): string {
    return model === '' || this.#named.has(model) ? model : 'other';
  }

  /** Adds gauges of the connections to PostgreSQL. */
  #lookAtPool({ operations }: SeriesTools): void {
    const gauge = (
      name: string,
      help: string,
      read: (state: ProcessFigures['connections'][number]) => number,
    ): void => {
      const made = new Gauge({
        name,
        help,
        labelNames: ['server'],
        registers: [this.registry],
        collect: () => {
          // The thread may have ended.
          made.reset();
          for (const state of operations.figures().connections)
            made.set({ server: state.server }, read(state));
        },
      });
    };
    const of =
      'server: primary, replica, or thread for those of the thread that reads sums, to either of them.';
    gauge(
      'sluice_database_connections_in_use',
      `Connections that run a statement. ${of}`,
      ({ inUse }) => inUse,
    );
    gauge('sluice_database_connections_idle', `Connections that are free. ${of}`, ({ idle }) => idle);
    gauge(
      'sluice_database_connections_max',
      `Connections that there may be: poolSize, and half of it for a thread. ${of}`,
      ({ size }) => size,
    );
    gauge(
      'sluice_database_waiting',
      `Statements that wait for a connection. ${of}`,
      ({ waiting }) => waiting,
    );
  }

  /** Adds the metrics that are read from other parts of the gateway at each scrape. */
  #look(tools: SeriesTools): void {
    const { operations, overload } = tools;
    const registers = [this.registry];
    const gauge = (name: string, help: string, read: () => number, aggregator: Aggregator = 'sum'): void => {
      const made: Gauge = new Gauge({ name, help, registers, aggregator, collect: () => made.set(read()) });
    };
    gauge('sluice_running_calls', 'Running calls.', () => overload.running);
    gauge('sluice_waiting_calls', 'Calls that wait until running calls end.', () => overload.waiting);
    gauge(
      'sluice_body_bytes',
      'Bytes of request bodies and forms that running calls hold in memory.',
      () => overload.bodies,
    );
    gauge(
      'sluice_unsettled_calls',
      'Ended calls that are not charged and recorded yet.',
      () => operations.figures().unsettledCalls,
    );
    gauge(
      'sluice_api_keys_held',
      'API keys that processes cache in memory.',
      () => operations.figures().heldApiKeys,
    );
    gauge(
      'sluice_shared_store_up',
      '1 if the shared store responds or none is configured, else 0.',
      () => (operations.figures().sharedStore === 'up' ? 1 : 0),
      'min',
    );
    if (operations.figures().connections.length > 0) this.#lookAtPool(tools);
    const refused = new Counter({
      name: 'sluice_overload_refusals_total',
      help: 'Calls that were refused because a process was overloaded.',
      registers,
      collect: () => {
        refused.reset();
        refused.inc(overload.refused);
      },
    });
    this.#lookAtChannels(tools);
    this.#lookAtKept(tools);
  }

  #lookAtChannels({ catalog, operations }: SeriesTools): void {
    const registers = [this.registry];
    const standing = new Gauge({
      name: 'sluice_channel_standing',
      help: 'State of the circuit breaker of each key of a channel: 1 for its current state, 0 for the others. key: key id, region and key id, or empty.',
      labelNames: ['channel', 'key', 'standing'],
      registers,
      aggregator: 'max',
      collect: () => {
        const { targets } = operations.figures();
        for (const { id, keys } of catalog.channels)
          for (const { id: key } of keys) {
            const known = targets.find(
              (target) => target.channel === id && target.key === key && target.model === undefined,
            );
            const now = known?.state ?? 'up';
            for (const one of standings)
              standing.set({ channel: id, key, standing: one }, one === now ? 1 : 0);
          }
      },
    });
    const enabled = new Gauge({
      name: 'sluice_channel_enabled',
      help: '1 if the channel is enabled, else 0.',
      labelNames: ['channel'],
      registers,
      aggregator: 'min',
      collect: () => {
        for (const { id } of catalog.channels) enabled.set({ channel: id }, catalog.isOn(id) ? 1 : 0);
      },
    });
  }

  #lookAtKept({ operations }: SeriesTools): void {
    const registers = [this.registry];
    const rows: Gauge<'kept'> = new Gauge({
      name: 'sluice_kept_rows',
      help: 'Rows of stored data in the database, where they are counted. kept: usage-records, usage-sums (records that are not in sums yet) and others.',
      labelNames: ['kept'],
      registers,
      aggregator: 'max',
      collect: () => {
        for (const { what, rows: count } of operations.figures().upkeep)
          if (count !== undefined) rows.set({ kept: what }, count);
      },
    });
    const overdue: Gauge<'kept'> = new Gauge({
      name: 'sluice_kept_overdue_seconds',
      help: 'Seconds by which the oldest row is overdue for removal or processing.',
      labelNames: ['kept'],
      registers,
      aggregator: 'max',
      collect: () => {
        for (const { what, overdueSeconds } of operations.figures().upkeep)
          overdue.set({ kept: what }, overdueSeconds);
      },
    });
  }
}

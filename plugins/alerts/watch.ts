/** Checks all conditions every few seconds in the background. Each process publishes its observations, and one of them makes alerts of all. */
import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { CallOutcome, PluginTools } from 'sluice';
import { caller, type Call } from 'sluice';
import type { Alert, Condition, Item, Message } from './alert.ts';
import { limits } from './alert.ts';
import { BudgetWatch } from './budgets.ts';
import { Deliveries } from './deliveries.ts';
import { ErrorRates, failingTooOften } from './error-rates.ts';
import { ExpiryWatch } from './expiries.ts';
import { databaseLost, gatewayConditions } from './gateway-conditions.ts';
import type { AlertsOptions } from './options.ts';
import { addToOutbox } from './outbox.ts';
import { Outage } from './outage.ts';
import { reconcile } from './reconcile.ts';
import { destinationsOf } from './routing.ts';
import { Sender } from './sender.ts';
import { SharedAlertState, type Report } from './shared-state.ts';

/** Number of intervals for which the observations of a process count after it has published them. The lease of the sender lasts as long. */
const intervalsToTrust = 3;

/** Maximum time in milliseconds that a stopping process waits for running deliveries. */
const lastDeliveriesMs = 2_000;

/** The alerts of one process. */
export class AlertWatch {
  readonly state: SharedAlertState;
  readonly deliveries: Deliveries;
  readonly #options: AlertsOptions;
  readonly #tools: PluginTools;
  readonly #budgets: BudgetWatch;
  readonly #rates: ErrorRates | undefined;
  readonly #expiries: ExpiryWatch;
  readonly #sender: Sender;
  readonly #outage: Outage;
  readonly #dropped;
  readonly #trustMs: number;
  #published: { readonly text: string; readonly at: number } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: AlertsOptions, tools: PluginTools, deliveries: Deliveries) {
    const { log, metrics, operations, stores } = tools;
    this.#options = options;
    this.#tools = tools;
    this.deliveries = deliveries;
    this.#trustMs = intervalsToTrust * options.interval + 1_000;
    this.state = new SharedAlertState(
      stores,
      `${operations.gateway}:${process.pid}:${randomUUID()}`,
      this.#trustMs,
    );
    this.#budgets = new BudgetWatch(options.budgets, (error) =>
      log.warn({ error }, 'the budgets of a key could not be read'),
    );
    this.#rates = options.errorRate === false ? undefined : new ErrorRates(options.errorRate);
    this.#expiries = new ExpiryWatch(options, {
      certificate: (certificate, error) =>
        log.warn({ certificate, error }, 'the end of a certificate could not be read'),
      keys: (error) => log.warn({ error }, 'the keys that expire could not be read'),
    });
    this.#dropped = metrics.counter('dropped', 'Messages that were dropped, by reason: attempts or queue.', [
      'reason',
    ]);
    this.#sender = new Sender(this.state, deliveries, options, {
      failed: (error) => log.warn({ error }, 'alerts could not be sent'),
      dropped: (message, reason) => this.#drop(message, reason),
    });
    this.#outage = new Outage(deliveries, options, (item) => this.#destinationsOf(item));
  }

  begin(): void {
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#next(), this.#options.interval).unref();
  }

  /** Records the outcome of a call, without reading or waiting. */
  note(call: Call, outcome: CallOutcome): void {
    this.#rates?.count(outcome, Date.now());
    const key = call.get(caller);
    if (key !== undefined)
      this.#budgets.note(key, outcome.error?.code === 'insufficient_quota' && outcome.attempts.length === 0);
  }

  /** Checks a last time, and releases the lease so that another process can send. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#looking;
    await this.#look().catch(() => {});
    // A delivery of the outbox that takes longer is tried again by the process that sends next.
    await Promise.race([
      Promise.all([this.#sender.close(), this.#outage.close()]),
      wait(lastDeliveriesMs, undefined, { ref: false }),
    ]);
    this.deliveries.close();
    await this.state.resign().catch(() => {});
  }

  #next(): void {
    this.#looking = this.#look()
      .catch((error: unknown) =>
        this.#tools.log.warn({ error }, 'the conditions of alerts could not be checked'),
      )
      .finally(() => this.begin());
  }

  async #look(): Promise<void> {
    const { operations } = this.#tools;
    const status = await operations.status();
    const now = Date.now();
    if (status.database === 'down') {
      this.#outage.down(databaseLost(operations.gateway), status.isFirst, now);
      return;
    }
    const ended = this.#outage.up(now);
    if (ended !== undefined) await this.#list(ended);
    // The first worker sends alerts about an outage of the database, and needs the mutes before that.
    if (status.isFirst) this.#outage.follow(await this.state.read());
    const conditions = [
      ...gatewayConditions(status, operations.gateway, now),
      ...(await this.#budgets.look(operations, now)),
    ].slice(0, limits.conditions);
    await this.#publish({ conditions, rates: this.#rates?.read(now) ?? {} }, now);
    if (await this.state.lead()) await this.#lead(now);
  }

  async #publish(report: Report, now: number): Promise<void> {
    const text = JSON.stringify(report);
    const { text: before, at = 0 } = this.#published ?? {};
    if (text === before && now - at < this.#options.interval * (intervalsToTrust - 1)) return;
    await this.state.publish(report, 2 * this.#trustMs);
    this.#published = { text, at: now };
  }

  /** Makes alerts of the observations of all processes, and starts the due deliveries. */
  async #lead(now: number): Promise<void> {
    const { errorRate, throttle } = this.#options;
    const reports = await this.state.reports();
    const found = new Map<string, Condition>();
    const add = (conditions: readonly Condition[]): void => {
      for (const one of conditions) if (found.size < limits.conditions) found.set(one.id, one);
    };
    for (const { conditions } of reports) add(conditions);
    if (errorRate !== false)
      add(
        failingTooOften(
          reports.map(({ rates }) => rates),
          errorRate,
        ),
      );
    add(await this.#expiries.look(this.#tools.operations, now));
    const onlyOnce = [...found.values()].flatMap(({ id, once = false }) => (once ? [id] : []));
    const known = new Set((await this.state.read()).alerts.map(({ id }) => id));
    const notified = await this.state.findNotified(onlyOnce.filter((id) => !known.has(id)));
    let items: readonly Item[] = [];
    let dropped: readonly Message[] = [];
    const changed = await this.state.change((current) => {
      const next = reconcile(current, [...found.values()], {
        now,
        throttle,
        wasNotified: (id) => notified.has(id),
      });
      const filled = addToOutbox(current.outbox, next.items, {
        now,
        destinationsOf: (item) => this.#destinationsOf(item),
        takesOne: (name) => this.deliveries.takesOne(name),
      });
      items = next.items;
      dropped = filled.dropped;
      const mutes = current.mutes.filter(({ until }) => until > now);
      const after = { ...current, mutes, alerts: [...next.alerts], outbox: [...filled.outbox] };
      return JSON.stringify(after) === JSON.stringify(current) ? undefined : after;
    });
    for (const message of changed === undefined ? [] : dropped) this.#drop(message, 'queue');
    if (changed !== undefined)
      await this.state.rememberNotified(items.flatMap(({ id, once = false }) => (once ? [id] : [])));
    this.#sender.kick(changed ?? (await this.state.read()));
  }

  /** Adds an alert that was sent during an outage of the database to the list. */
  async #list(alert: Alert): Promise<void> {
    await this.state.administer((current) => ({
      ...current,
      alerts: [...current.alerts.filter(({ id }) => id !== alert.id), alert].slice(-limits.alerts),
    }));
  }

  #destinationsOf(item: Item): readonly string[] {
    return destinationsOf(item, this.#options.routes, this.deliveries.names);
  }

  #drop({ destination, id, items }: Message, reason: string): void {
    this.#dropped.add({ reason });
    this.#tools.log.error({ destination, id, alerts: items.length, reason }, 'an alert message was dropped');
  }
}

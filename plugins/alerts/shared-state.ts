/** Stores the alerts, the lease of the sender and what each process has seen, in the gateway's database. */
import { z } from 'zod';
import type { PluginTools } from 'sluice';
import { stateSchema, condition, emptyState, limits, type AlertState } from './alert.ts';

const stateNamespace = 'alerts';
const observerSpace = 'alerts-observers';
const notifiedNamespace = 'alerts-told';

/** Milliseconds for which the notification of a condition with `once` is remembered. */
const notifiedMs = 400 * 86_400_000;

/** The most processes whose reports are read. */
const mostReports = 1_000;

const lease = z.object({ holder: z.string(), until: z.number() });

/** Conditions that one process has seen. */
export const report = z.object({
  conditions: z.array(condition),
  /** Calls within the window, and how many of them failed, by channel or model. */
  rates: z.record(z.string(), z.tuple([z.int(), z.int()])),
});
/** A checked {@link report}. */
export type Report = z.output<typeof report>;

/** The entries that all processes of all gateways on one database share. */
export class SharedAlertState {
  readonly #stores: PluginTools['stores'];
  readonly #name: string;
  readonly #leaseMs: number;
  #heldUntil = 0;
  #isWriter = false;

  /** `name` identifies this process. */
  constructor(stores: PluginTools['stores'], name: string, leaseMs: number) {
    this.#stores = stores;
    this.#name = name;
    this.#leaseMs = leaseMs;
  }

  /** True while nobody else may send. */
  get isHeld(): boolean {
    return this.#isWriter && performance.now() < this.#heldUntil;
  }

  /** Acquires or renews the lease of the sender. Resolves with false while another process holds it. */
  async lead(): Promise<boolean> {
    const startedAt = performance.now();
    const now = Date.now();
    const mine = { holder: this.#name, until: now + this.#leaseMs };
    let isThere = false;
    const taken = await this.#stores.change<unknown>(stateNamespace, 'lease', (value) => {
      isThere = true;
      const { data } = lease.safeParse(value);
      const isFree = data === undefined || data.holder === this.#name || data.until < now;
      return isFree ? { value: mine } : undefined;
    });
    const isMine =
      taken !== undefined || (!isThere && (await this.#stores.add(stateNamespace, 'lease', mine)));
    if (!isMine) this.#isWriter = false;
    else if (!this.#isWriter) {
      await this.#change((current) => ({ ...current, writer: this.#name }));
      this.#isWriter = true;
    }
    if (isMine) this.#heldUntil = startedAt + this.#leaseMs;
    return isMine;
  }

  /** Releases the lease, so that another process can send at once. */
  async resign(): Promise<void> {
    if (!this.isHeld) return;
    this.#isWriter = false;
    await this.#stores.change<unknown>(stateNamespace, 'lease', (value) =>
      lease.safeParse(value).data?.holder === this.#name ? { value: { holder: '', until: 0 } } : undefined,
    );
  }

  /** Changes the state as its writer. Resolves with undefined when another process has become the writer, or nothing is to be changed. */
  change(edit: (current: AlertState) => AlertState | undefined): Promise<AlertState | undefined> {
    return this.#change((current) => (current.writer === this.#name ? edit(current) : undefined));
  }

  /** Changes the state for an administrator, who need not be at the process that sends. */
  administer(edit: (current: AlertState) => AlertState | undefined): Promise<AlertState | undefined> {
    return this.#change(edit);
  }

  async read(): Promise<AlertState> {
    return readState(await this.#stores.namespace<unknown>(stateNamespace).get('book'));
  }

  async #change(edit: (current: AlertState) => AlertState | undefined): Promise<AlertState | undefined> {
    let isThere = false;
    const apply = () =>
      this.#stores.change<unknown>(stateNamespace, 'book', (value) => {
        isThere = true;
        const next = edit(readState(value));
        return next === undefined ? undefined : { value: next };
      });
    const first = await apply();
    if (isThere) return first as AlertState | undefined;
    await this.#stores.add(stateNamespace, 'book', emptyState);
    return (await apply()) as AlertState | undefined;
  }

  /** Publishes the observations of this process to the others. */
  async publish(seen: Report, ttl: number): Promise<void> {
    await this.#stores.namespace<Report>(observerSpace).set(this.#name, seen, ttl);
  }

  /** Conditions that all processes have seen lately. */
  async reports(): Promise<readonly Report[]> {
    const found: Report[] = [];
    const entries = this.#stores.namespace<unknown>(observerSpace).iterator?.(undefined) ?? [];
    for await (const [, value] of entries as AsyncIterable<readonly [string, unknown]>) {
      const { data } = report.safeParse(value);
      if (data !== undefined) found.push(data);
      if (found.length >= mostReports) break;
    }
    return found;
  }

  /** Returns the ids whose notification is remembered. */
  async findNotified(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const limited = ids.slice(0, limits.conditions);
    if (limited.length === 0) return new Set();
    const values = await this.#stores.namespace<number>(notifiedNamespace).getMany([...limited]);
    return new Set(limited.filter((_, index) => values[index] !== undefined));
  }

  async rememberNotified(ids: readonly string[]): Promise<void> {
    const store = this.#stores.namespace<number>(notifiedNamespace);
    await Promise.all(ids.map((id) => store.set(id, 1, notifiedMs)));
  }
}

/** Parses a stored state. Drops items that are invalid and keeps the others, because the state is written back. */
function readState(value: unknown): AlertState {
  const { data } = stateSchema.safeParse(value);
  if (data !== undefined || typeof value !== 'object' || value === null) return data ?? emptyState;
  const { writer, alerts, outbox, mutes, deliveries } = value as {
    readonly [Field in keyof AlertState]?: unknown;
  };
  const { shape } = stateSchema;
  return {
    writer: shape.writer.safeParse(writer).data ?? '',
    alerts: readable(shape.alerts.element, alerts),
    outbox: readable(shape.outbox.element, outbox),
    mutes: readable(shape.mutes.element, mutes),
    deliveries: Object.fromEntries(
      Object.entries(deliveries ?? {}).flatMap(([name, one]) => {
        const read = shape.deliveries.valueType.safeParse(one);
        return read.success ? [[name, read.data]] : [];
      }),
    ),
  };
}

function readable<Schema extends z.ZodType>(schema: Schema, values: unknown): z.output<Schema>[] {
  return (Array.isArray(values) ? values : []).flatMap((value) => {
    const read = schema.safeParse(value);
    return read.success ? [read.data] : [];
  });
}

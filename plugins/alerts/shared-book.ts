/** Keeps the book of alerts, the lease of the sender and what each process has seen, in the gateway's database. */
import { z } from 'zod';
import type { PluginTools } from 'sluice';
import { book, condition, emptyBook, limits, type Book } from './alert.ts';

const bookSpace = 'alerts';
const observerSpace = 'alerts-observers';
const toldSpace = 'alerts-told';

/** How long it is known that a condition with `once` was told, in milliseconds. */
const rememberTold = 400 * 86_400_000;

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
export class SharedBook {
  readonly #stores: PluginTools['stores'];
  readonly #name: string;
  readonly #leaseMs: number;
  #heldUntil = 0;
  #isWriter = false;

  /** `name` tells this process from all others. */
  constructor(stores: PluginTools['stores'], name: string, leaseMs: number) {
    this.#stores = stores;
    this.#name = name;
    this.#leaseMs = leaseMs;
  }

  /** True while nobody else may send. */
  get isHeld(): boolean {
    return this.#isWriter && performance.now() < this.#heldUntil;
  }

  /** Takes or renews the lease of the sender. Resolves with false while another process holds it. */
  async lead(): Promise<boolean> {
    const asked = performance.now();
    const now = Date.now();
    const mine = { holder: this.#name, until: now + this.#leaseMs };
    let isThere = false;
    const taken = await this.#stores.change<unknown>(bookSpace, 'lease', (value) => {
      isThere = true;
      const { data } = lease.safeParse(value);
      const isFree = data === undefined || data.holder === this.#name || data.until < now;
      return isFree ? { value: mine } : undefined;
    });
    const isMine = taken !== undefined || (!isThere && (await this.#stores.add(bookSpace, 'lease', mine)));
    if (!isMine) this.#isWriter = false;
    else if (!this.#isWriter) {
      await this.#change((current) => ({ ...current, writer: this.#name }));
      this.#isWriter = true;
    }
    if (isMine) this.#heldUntil = asked + this.#leaseMs;
    return isMine;
  }

  /** Lets another process send at once. */
  async resign(): Promise<void> {
    if (!this.isHeld) return;
    this.#isWriter = false;
    await this.#stores.change<unknown>(bookSpace, 'lease', (value) =>
      lease.safeParse(value).data?.holder === this.#name ? { value: { holder: '', until: 0 } } : undefined,
    );
  }

  /** Changes the book as its writer. Resolves with undefined when another process has become the writer, or nothing is to be changed. */
  change(edit: (current: Book) => Book | undefined): Promise<Book | undefined> {
    return this.#change((current) => (current.writer === this.#name ? edit(current) : undefined));
  }

  /** Changes the book for an administrator, who need not be at the process that sends. */
  administer(edit: (current: Book) => Book | undefined): Promise<Book | undefined> {
    return this.#change(edit);
  }

  async read(): Promise<Book> {
    return readBook(await this.#stores.namespace<unknown>(bookSpace).get('book'));
  }

  async #change(edit: (current: Book) => Book | undefined): Promise<Book | undefined> {
    let isThere = false;
    const apply = () =>
      this.#stores.change<unknown>(bookSpace, 'book', (value) => {
        isThere = true;
        const next = edit(readBook(value));
        return next === undefined ? undefined : { value: next };
      });
    const first = await apply();
    if (isThere) return first as Book | undefined;
    await this.#stores.add(bookSpace, 'book', emptyBook);
    return (await apply()) as Book | undefined;
  }

  /** Tells the others what this process has seen. */
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

  /** Returns those of the ids that were told before. */
  async told(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const asked = ids.slice(0, limits.conditions);
    if (asked.length === 0) return new Set();
    const values = await this.#stores.namespace<number>(toldSpace).getMany([...asked]);
    return new Set(asked.filter((_, index) => values[index] !== undefined));
  }

  async rememberTold(ids: readonly string[]): Promise<void> {
    const store = this.#stores.namespace<number>(toldSpace);
    await Promise.all(ids.map((id) => store.set(id, 1, rememberTold)));
  }
}

/** Reads a book. Items that cannot be read are left out, and the others stay, because the book is written back. */
function readBook(value: unknown): Book {
  const { data } = book.safeParse(value);
  if (data !== undefined || typeof value !== 'object' || value === null) return data ?? emptyBook;
  const { writer, alerts, outbox, mutes, deliveries } = value as { readonly [Field in keyof Book]?: unknown };
  const { shape } = book;
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

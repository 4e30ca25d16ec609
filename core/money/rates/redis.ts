import { randomUUID } from 'node:crypto';
import { MemoryRates, slices } from './memory.ts';
import { correctScript, renewScript, scripts, takeScript } from './scripts.ts';
import type {
  RateGrant,
  RateRule,
  Rates,
  RateTimes,
  RateVerdict,
  SharedSettings,
  SlotRule,
} from './index.ts';
import { type ReportShared, SharedLink } from '../../state/links/shared-link.ts';

/** Before every name in the store. What stands in braces keeps all on one node of a cluster, where one script may touch them. */
const prefix = 'sluice:{rates}:';

/** Leases that are renewed with one command. */
const renewedAtOnce = 500;

/** Milliseconds after which a call that could not be counted may try again. */
const downRetry = 1_000;

/**
 * Counts in Redis, for all gateways together: the same sliding minute as in memory, by the store's clock. All rules of a call are one
 * script, so one round trip. Slots are leases, renewed while their calls run: those of a process that was killed are free when they have
 * passed. While the store is gone each process counts for itself, or calls with limits are refused.
 */
export class RedisRates implements Rates {
  readonly #link: SharedLink;
  readonly #whenDown: SharedSettings['whenDown'];
  readonly #local: MemoryRates;
  readonly #slice: string;
  readonly #lease: string;
  /** From a slot's id to its name in the store. */
  readonly #held = new Map<string, string>();
  readonly #process = randomUUID();
  #ids = 0;
  readonly #renewing: NodeJS.Timeout;

  constructor(shared: SharedSettings, report: ReportShared, times: RateTimes) {
    const { minute = 60_000, lease = 15_000 } = times;
    this.#whenDown = shared.whenDown;
    this.#local = new MemoryRates(times);
    this.#slice = String(minute / slices);
    this.#lease = String(lease);
    this.#link = new SharedLink({ store: shared, prefix, scripts, report, onUp: () => void this.#renew() });
    this.#renewing = setInterval(() => void this.#renew(), lease / 3);
    this.#renewing.unref();
  }

  get state(): 'ok' | 'degraded' {
    return this.#link.isUp ? 'ok' : 'degraded';
  }

  async take(rules: readonly RateRule[], slots: readonly SlotRule[] = []): Promise<RateVerdict> {
    const subjects = [...rules, ...slots].map(({ subject }) => subject);
    const costs = rules.map(({ limit, cost }) => [String(limit), String(Math.ceil(Math.min(cost, limit)))]);
    const ids = slots.map(() => `${this.#process}:${(this.#ids += 1)}`);
    const values = [this.#slice, this.#lease, String(rules.length)];
    values.push(...costs.flat(), ...slots.flatMap(({ limit }, index) => [String(limit), ids[index] ?? '']));
    let reply: readonly number[];
    try {
      const keys = subjects.map((subject) => prefix + subject);
      reply = await this.#link.run<number[]>(takeScript, keys, values);
    } catch {
      return this.#withoutStore(rules, slots);
    }
    const [refused = 0, retryMs = 0, slice = 0] = reply;
    const states = rules.map(({ subject, limit }, index) => ({
      subject,
      limit,
      remaining: Math.max(0, limit - (reply[3 + 2 * index] ?? 0)),
      resetMs: reply[4 + 2 * index] ?? 0,
    }));
    const exceeded = subjects[refused - 1];
    if (exceeded !== undefined) return { allowed: false, states, exceeded, retryMs };
    slots.forEach(({ subject }, index) => this.#held.set(ids[index] ?? '', prefix + subject));
    return { allowed: true, states, retryMs: 0, grant: this.#grant(slice, ids) };
  }

  async close(): Promise<void> {
    clearInterval(this.#renewing);
    for (const id of this.#held.keys()) this.#free(id);
    // Commands go out in order: when this one is answered the slots are free.
    if (this.#link.isUp) await this.#link.command(['PING']).catch(() => {});
    this.#link.close();
  }

  #withoutStore(rules: readonly RateRule[], slots: readonly SlotRule[]): RateVerdict {
    if (this.#whenDown === 'refuse')
      return { allowed: false, states: [], retryMs: downRetry, degraded: true };
    return { ...this.#local.takeNow(rules, slots), degraded: true };
  }

  #grant(slice: number, ids: readonly string[]): RateGrant {
    return {
      correct: (subject, difference) => {
        const values = [this.#slice, String(Math.ceil(difference)), String(slice)];
        if (difference !== 0) this.#quietly(this.#link.run(correctScript, [prefix + subject], values));
      },
      release: () => {
        for (const id of ids) this.#free(id);
      },
    };
  }

  #free(id: string): void {
    const key = this.#held.get(id);
    if (key === undefined) return;
    this.#held.delete(id);
    this.#quietly(this.#link.command(['ZREM', key, id]));
  }

  async #renew(): Promise<void> {
    const held = [...this.#held];
    for (let from = 0; from < held.length && this.#link.isUp; from += renewedAtOnce) {
      // Given back while others were renewed: renewing it would bring it to life again.
      const some = held.slice(from, from + renewedAtOnce).filter(([id]) => this.#held.has(id));
      const keys = some.map(([, key]) => key);
      const ids = some.map(([id]) => id);
      // oxlint-disable-next-line no-await-in-loop -- one command at a time, however many calls run
      await this.#link.run(renewScript, keys, [this.#lease, ...ids]).catch(() => {});
    }
  }

  /** The link tells when the store is gone; a correction that does not reach it is forgotten within a minute anyway. */
  #quietly(command: Promise<unknown>): void {
    command.catch(() => {});
  }
}

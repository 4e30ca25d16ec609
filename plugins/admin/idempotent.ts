/** Makes repeated requests with the same `idempotency-key` create one thing. */
import { hash, randomBytes } from 'node:crypto';
import { setTimeout as pass } from 'node:timers/promises';
import { GatewayError, toGatewayError, type JsonObject, type Sealer } from 'sluice';
import { entriesOf, type InternalTools } from 'sluice/internal';
import type { Stores } from './core-types.ts';
import type { Actor } from './access/actor.ts';

const namespace = 'admin-idempotent';

/** Time in milliseconds for which the response to a request is stored. */
const keptMs = 24 * 3_600_000;

/** Maximum number of requests that are remembered at once. */
const maxKept = 10_000;

/** Maximum number of them of one user or token, and of all those of one organisation, so that one who is busy leaves room for others. */
const shares = { actor: 2_000, organisation: 5_000 } as const;

/** A count of what is remembered is used for so many requests more, and for so many milliseconds. */
const recount = { requests: 100, ms: 30_000 } as const;

/**
 * For how long a request that runs is waited for, how often is looked, and after how long its gateway is taken for dead, in milliseconds.
 */
const patience = { longest: 10_000, pause: 100, dead: 60_000 };

/** Maximum length of a key in characters. */
const maxKeyLength = 255;

/** A request that was sent with a key. `sealed` is the answer, which may hold a secret. Without it the request runs, or was lost. */
interface Kept {
  /** Random id that distinguishes two concurrent requests with the same key. */
  readonly claim: string;
  /** Hash of the request. */
  readonly body: string;
  readonly startedAt: number;
  /** The shares that it counts in. */
  readonly of?: readonly string[];
  readonly sealed?: string;
  /** True: the request failed, and it is not known whether it has made something. */
  readonly isLost?: true;
}

/** A request that creates something. */
export interface Creation {
  readonly actor: Actor;
  /** Name of the operation. */
  readonly operation: string;
  /** The value of its header `idempotency-key`. */
  readonly key: string;
  readonly body: unknown;
}

/** The answer to a request. `isRepeated` when it is that of an earlier one. */
export interface CreationAnswer {
  readonly value: object;
  readonly isRepeated: boolean;
}

/** Remembers requests that create something for a day, for all gateways on one database. Answers are sealed. */
export class IdempotentCreates {
  readonly #stores: Stores;
  readonly #kept;
  readonly #upkeep: InternalTools['upkeep'];
  readonly #openSealer: InternalTools['openSealer'];
  #sealer: Promise<Sealer> | undefined;
  #counts: Counts | undefined;
  /** The count that runs, which all who need one wait for. */
  #counting: Promise<Counts> | undefined;

  constructor({ stores, upkeep, openSealer }: Pick<InternalTools, 'stores' | 'upkeep' | 'openSealer'>) {
    this.#openSealer = openSealer;
    this.#stores = stores;
    this.#kept = stores.namespace<Kept>(namespace);
    this.#upkeep = upkeep;
  }

  /**
   * Runs `create`, unless the same actor has sent this request before: then its answer is returned. Throws 422 where the body is another one,
   * and 409 where the first request still runs or its outcome is unknown.
   */
  async run(creation: Creation, create: () => Promise<object> | object): Promise<CreationAnswer> {
    const { actor, operation, key } = creation;
    if (!/^[!-~]{1,255}$/.test(key))
      throw new GatewayError(
        'invalid_value',
        `The header idempotency-key must be 1 to ${maxKeyLength} visible ASCII characters without spaces.`,
        { param: 'idempotency-key' },
      );
    const row = hash('sha256', JSON.stringify([actor.kind, actor.id, operation, key]));
    const body = hash('sha256', JSON.stringify(creation.body ?? null));
    // Before the room is checked, because a repeated request takes none.
    const earlier = await this.#earlier(row, body);
    if (earlier !== undefined) return { value: earlier, isRepeated: true };
    const of = sharesOf(actor);
    const counts = await this.#currentCounts();
    checkRoom(counts, of);
    // Before it is written: those who ask at once must not get past the maximum together.
    count(counts, 1, of);
    const giveBack = (): void => count(counts, -1, of);
    const claim = randomBytes(12).toString('hex');
    const first: Kept = { claim, body, startedAt: Date.now(), of: of.map(({ name }) => name) };
    let isAdded = false;
    try {
      const add = () => this.#stores.add<Kept>(namespace, row, first, keptMs);
      isAdded = await add();
      if (!isAdded) {
        // The same request came at the same time.
        const twin = await this.#earlier(row, body);
        if (twin !== undefined) return { value: twin, isRepeated: true };
        // The first request was rejected and removed, so this one runs.
        isAdded = await add();
        if (!isAdded) throw stillRuns();
      }
    } finally {
      if (!isAdded) giveBack();
    }
    return { value: await this.#first({ row, claim, create, giveBack }), isRepeated: false };
  }

  /** Runs the first request with a key, and keeps its answer. */
  async #first({ row, claim, create, giveBack }: First): Promise<object> {
    try {
      const value = await create();
      const sealed = (await this.#open()).seal(namespace, row, value as JsonObject);
      await this.#write(row, claim, (kept) => ({ ...kept, sealed }));
      return value;
    } catch (error) {
      // A refused request created nothing. After any other failure it is unknown how much was done.
      if (toGatewayError(error).status < 500) await this.#kept.delete(row).then(giveBack, () => {});
      else await this.#write(row, claim, (kept) => ({ ...kept, isLost: true })).catch(() => {});
      throw error;
    }
  }

  async #write(row: string, claim: string, change: (kept: Kept) => Kept): Promise<void> {
    await this.#stores.change<Kept>(namespace, row, (kept) =>
      kept.claim === claim ? { value: change(kept), ttl: kept.startedAt + keptMs - Date.now() } : undefined,
    );
  }

  /** Returns the answer to the first request with a key; undefined when that was refused. */
  async #earlier(row: string, body: string): Promise<object | undefined> {
    const end = Date.now() + patience.longest;
    for (;;) {
      // oxlint-disable no-await-in-loop -- looks again after a pause
      const kept = await this.#kept.get(row);
      if (kept === undefined) return undefined;
      if (kept.body !== body)
        throw new GatewayError(
          'idempotency_key_reused',
          'This idempotency-key came with another body within the last 24 hours. Send another key with another request.',
          { param: 'idempotency-key' },
        );
      if (kept.isLost === true) throw lost();
      if (kept.sealed !== undefined) {
        const answer = (await this.#open()).open(namespace, row, kept.sealed);
        if (answer === undefined) throw lost();
        return answer;
      }
      if (kept.startedAt + patience.dead < Date.now()) throw lost();
      if (Date.now() >= end) throw stillRuns();
      await pass(patience.pause, undefined, { ref: false });
      // oxlint-enable no-await-in-loop
    }
  }

  /** Returns what is remembered, as it was counted a moment ago. */
  #currentCounts(): Promise<Counts> {
    const known = this.#counts;
    if (
      known !== undefined &&
      known.rows - known.counted < recount.requests &&
      Date.now() - known.at < recount.ms
    )
      return Promise.resolve(known);
    this.#counting ??= this.#countAll().finally(() => {
      this.#counting = undefined;
    });
    return this.#counting;
  }

  async #countAll(): Promise<Counts> {
    const at = Date.now();
    const byShare = new Map<string, number>();
    let rows = 0;
    for await (const [row, kept] of entriesOf(this.#kept)) {
      rows += row === '' ? 0 : 1;
      for (const name of kept?.of ?? []) byShare.set(name, (byShare.get(name) ?? 0) + 1);
    }
    this.#counts = { at, counted: rows, rows, byShare };
    this.#upkeep.set({
      what: 'idempotency-keys',
      rule: 'Answers to requests with an idempotency-key are removed after 24 hours.',
      rows,
      overdueSeconds: 0,
    });
    return this.#counts;
  }

  #open(): Promise<Sealer> {
    this.#sealer ??= this.#openSealer().catch((error: unknown) => {
      this.#sealer = undefined;
      throw error;
    });
    return this.#sealer;
  }
}

/** Number of remembered requests: `counted` of the last count, and `rows` with those that this process has added since. */
interface Counts {
  readonly at: number;
  readonly counted: number;
  rows: number;
  readonly byShare: Map<string, number>;
}

/** First request with a key. `giveBack` removes it from the counts when it is deleted. */
interface First {
  readonly row: string;
  readonly claim: string;
  readonly create: () => Promise<object> | object;
  readonly giveBack: () => void;
}

/** A part of the remembered requests that has a maximum of its own. */
interface Share {
  readonly name: string;
  readonly most: number;
  /** Beginning of the error message when the limit is reached. */
  readonly whose: string;
}

/** Throws 429 when too many requests are remembered, of all or of a share. */
function checkRoom({ rows, byShare }: Counts, of: readonly Share[]): void {
  if (rows >= maxKept)
    throw new GatewayError(
      'rate_limit_exceeded',
      `More than ${maxKept} requests with an idempotency-key came within 24 hours. Send this one without the header, or later.`,
      { retryAfter: 3_600 },
    );
  const full = of.find(({ name, most }) => (byShare.get(name) ?? 0) >= most);
  if (full !== undefined)
    throw new GatewayError(
      'rate_limit_exceeded',
      `${full.whose} sent more than ${full.most} requests with an idempotency-key within 24 hours. Send this one without the header, or later.`,
      { retryAfter: 3_600 },
    );
}

function count(counts: Counts, more: 1 | -1, of: readonly Share[]): void {
  counts.rows += more;
  for (const { name } of of) counts.byShare.set(name, (counts.byShare.get(name) ?? 0) + more);
}

/** Returns the shares of an actor. The admin password has no other than all. */
function sharesOf({ kind, id, organisation }: Actor): readonly Share[] {
  return [
    ...(kind === 'password' ? [] : [{ name: `${kind} ${id}`, most: shares.actor, whose: 'You have' }]),
    ...(organisation === undefined
      ? []
      : [
          {
            name: `organisation ${organisation}`,
            most: shares.organisation,
            whose: 'Your organisation has',
          },
        ]),
  ];
}

function stillRuns(): GatewayError {
  return new GatewayError(
    'conflict',
    'The first request with this idempotency-key still runs. Try again in a moment.',
    {
      retryAfter: 2,
    },
  );
}

function lost(): GatewayError {
  return new GatewayError(
    'idempotency_outcome_unknown',
    'The first request with this idempotency-key failed, or its response cannot be repeated, and it may have created an object. Check the list before you retry with another key.',
    { param: 'idempotency-key' },
  );
}

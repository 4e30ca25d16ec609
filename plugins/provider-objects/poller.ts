/** Polls providers for the state of batches until each has ended and is charged. */
import { randomUUID } from 'node:crypto';
import { GatewayError, isObject, toGatewayError, type PriceRule } from 'sluice';
import type { InternalTools } from 'sluice/internal';
import type { Channel, ObjectLease, ObjectStore, ProviderObject } from './core-types.ts';
import { Polling } from '../_polling.ts';
import { sendRequest, requestJson, isGone } from './send-request.ts';
import { answerIn, batchSorts, type BatchSort } from './batch-sorts.ts';
import { Bill } from './bill.ts';
import type { ObjectFormat } from './collections.ts';
import { eachLine } from './lines.ts';
import { accountOf, type ProviderAccount } from './account.ts';

/** Options of the polling of batches. Times are in milliseconds. */
export interface PollerOptions {
  readonly first: number;
  readonly most: number;
  readonly parallel: number;
  /** Timeout for one description with its results. */
  readonly patience: number;
  /** Returns the price of requests in a batch of a channel's provider, as a share of their usual price. */
  shareOf(channel: Channel): number;
  /** Maximum number of bytes of a description. */
  readonly answerSize: number;
}

type Tools = Pick<InternalTools, 'apiKeys' | 'catalog' | 'providerCalls' | 'format' | 'prices' | 'log'>;

/** Number of consecutive 404 responses after which a batch is given up, and its minimum age for that, because a new batch may not be found yet. */
const mostRefusals = 3;
const forgottenAfter = 3_600_000;
/** Maximum number of milliseconds that a client waits for a poll. */
const clientPatience = 20_000;

/** Polls batches, and settles each when it has ended. */
export class Poller {
  readonly #store: ObjectStore;
  readonly #tools: Tools;
  readonly #options: PollerOptions;
  readonly #lease: ObjectLease;
  readonly #polling: Polling<ProviderObject>;

  constructor(store: ObjectStore, tools: Tools, options: PollerOptions) {
    const lease = { name: randomUUID(), milliseconds: options.patience + 10_000 };
    this.#store = store;
    this.#tools = tools;
    this.#options = options;
    this.#lease = lease;
    this.#polling = new Polling(
      {
        keyOf,
        claim: (most) => store.claim(lease, most),
        claimOne: (object) => store.claimOne(lease, object),
        find: ({ owner, kind, id }) => store.find(owner, kind, id),
        poll: (object) => this.#poll(object),
        failed: (error, object) =>
          object === undefined
            ? tools.log.warn({ error }, 'looking for due batches failed')
            : tools.log.warn({ id: object.id, error }, 'the state of a batch could not be stored'),
      },
      { ...options, longestPause: 5_000 },
    );
  }

  /** Starts polling the batches that are due. */
  start(): void {
    this.#polling.start();
  }

  /** Returns the time of the next poll after `asks` polls. */
  nextPollAt(asks: number): number {
    return this.#polling.nextPollAt(asks, Date.now());
  }

  /** Polls one batch and returns it, without `charge` once it has been charged. Returns the stored state where that takes too long. */
  refresh(object: ProviderObject): Promise<ProviderObject> {
    return this.#polling.refresh(object, Math.min(clientPatience, this.#options.patience));
  }

  close(): Promise<void> {
    return this.#polling.close();
  }

  async #poll(object: ProviderObject): Promise<ProviderObject> {
    const { charge } = object;
    if (charge === undefined) return object;
    const { log } = this.#tools;
    try {
      const polled = await this.#fetchState(object, charge.deadline);
      if (polled.isOver) return await this.#settled(polled);
      await this.#store.later(this.#lease, polled.object, this.nextPollAt(charge.asks + 1));
      return polled.object;
    } catch (thrown) {
      const error = toGatewayError(thrown);
      log.debug({ id: object.id, channel: object.channel, error }, 'polling a batch failed');
      const refusals = isGone(thrown) ? charge.refusals + 1 : charge.refusals;
      const isForgotten = refusals >= mostRefusals && Date.now() - object.createdAt > forgottenAfter;
      if (isForgotten || Date.now() > charge.deadline) {
        log.warn(
          { id: object.id, channel: object.channel, error },
          'a batch was given up and is not charged',
        );
        return this.#settled({ object, settlements: [], left: [] });
      }
      const later = { ...object, charge: { ...charge, asks: charge.asks + 1, refusals } };
      await this.#store.later(this.#lease, later, this.nextPollAt(charge.asks + 1));
      return later;
    }
  }

  async #settled({ object, settlements = [], left = [] }: PolledState): Promise<ProviderObject> {
    const done = await this.#store.settle(object, settlements, left);
    if (done)
      this.#tools.log.info(
        {
          id: object.id,
          channel: object.channel,
          microDollars: settlements.reduce((sum, { charged }) => sum + charged.microDollars, 0),
        },
        'a batch has come to its end',
      );
    const { charge: _charged, ...rest } = object;
    return rest;
  }

  /** Requests the state of a batch and, when it has ended, the settlements for its results. */
  async #fetchState(object: ProviderObject, deadline: number): Promise<PolledState> {
    const slash = object.kind.indexOf('/');
    const format = object.kind.slice(0, slash) as ObjectFormat;
    const sort = batchSorts[object.kind];
    const { charge } = object;
    if (sort === undefined || charge === undefined)
      throw new Error(`${object.kind} has nothing to be charged.`);
    const account = accountOf(object, this.#tools.catalog);
    const { call, end } = this.#tools.providerCalls(format, { ...account, model: '', traits: {} });
    return this.#polling.within(end, async () => {
      const path = `${object.kind.slice(slash)}/${object.id}`;
      const seen = await requestJson(
        call,
        account,
        format,
        { method: 'GET', path },
        this.#options.answerSize,
      );
      const now: ProviderObject = {
        ...object,
        seen,
        charge: { ...charge, asks: charge.asks + 1, refusals: 0 },
      };
      if (!sort.isOver(seen)) {
        if (Date.now() > deadline)
          throw new GatewayError('upstream_timeout', 'The batch has not ended in time.');
        return { object: now };
      }
      const bill = await this.#bill(call, now, account, sort).catch((error: unknown) => {
        if (Date.now() > deadline) throw error;
        this.#tools.log.warn(
          { id: object.id, channel: object.channel, error },
          'results of a batch cannot be read yet',
        );
        return undefined;
      });
      if (bill === undefined) return { object: now };
      const left = sort.files(seen).map((id): ProviderObject => ({
        owner: object.owner,
        kind: `${format}/files`,
        id,
        channel: object.channel,
        key: object.key,
        createdAt: Date.now(),
        seen: {},
        known: {},
      }));
      return { object: now, isOver: true, settlements: bill.settlements(Date.now()), left };
    });
  }

  /** Returns the price rule by which a batch was reserved. */
  async #pricingOf({ owner, charge }: ProviderObject): Promise<PriceRule | undefined> {
    if (charge?.pricing !== undefined) return charge.pricing as PriceRule;
    return owner === '' ? undefined : (await this.#tools.apiKeys.effectiveById(owner))?.pricing;
  }

  /** Reads the results, however long they are, line by line. */
  async #bill(
    call: ReturnType<InternalTools['providerCalls']>['call'],
    object: ProviderObject,
    account: ProviderAccount,
    sort: BatchSort,
  ): Promise<Bill> {
    const { seen, known, kind, id } = object;
    const bill = new Bill({
      object,
      channel: account.channel,
      codec: sort.codec(known),
      share: this.#options.shareOf(account.channel),
      pricing: await this.#pricingOf(object),
      tools: this.#tools,
    });
    for (const line of sort.inline(seen)) {
      const answer = isObject(line) ? sort.answer(line) : undefined;
      if (answer !== undefined) bill.add(answer);
    }
    const question = sort.results(seen, id);
    if (question !== undefined) {
      const format = kind.slice(0, kind.indexOf('/')) as ObjectFormat;
      const { bytes } = await sendRequest(call, account, format, question);
      await eachLine(call, bytes, (line) => {
        const answer = answerIn(line.toString(), sort);
        if (answer !== undefined) bill.add(answer);
      });
    }
    if (bill.withoutUsage > 0)
      this.#tools.log.warn(
        { id, channel: object.channel, answers: bill.withoutUsage },
        'responses of a batch have no usage',
      );
    return bill;
  }
}

interface PolledState {
  readonly object: ProviderObject;
  readonly isOver?: boolean;
  readonly settlements?: ReturnType<Bill['settlements']>;
  readonly left?: readonly ProviderObject[];
}

function keyOf({ owner, kind, id }: ProviderObject): string {
  return JSON.stringify([owner, kind, id]);
}

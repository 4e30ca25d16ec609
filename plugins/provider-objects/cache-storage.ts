/** Reserves, charges and refunds the storage of cached contents of generateContent, which costs by tokens and hours. */
import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { caller, isObject, matchesModel, type JsonObject } from 'sluice';
import { chargedMicroDollars, factorFor, type Call } from 'sluice/internal';
import type { ProviderObject, Reservation, Settlement } from './core-types.ts';
import type { ObjectServices } from './services.ts';
import { endIn, timeOf } from './cache-life.ts';
import { mostInput, NeedsByModel } from './needs.ts';
import { ownerOf } from './owner.ts';
import type { ProviderAccount } from './account.ts';
import { claimed } from './reserve.ts';
import { refuseBudgeted } from './unknown-cost.ts';

/** Charged storage of a cached content, from its creation to its expiry. Times are Unix milliseconds. */
interface Storage {
  readonly id: string;
  readonly model: string;
  readonly upstreamModel: string;
  readonly channel: string;
  /** Dollars for a million tokens and an hour. */
  readonly price: number;
  readonly tokens: number;
  readonly from: number;
  readonly until: number;
  /** Cost of it. */
  readonly microDollars: number;
  /** Factor by which the price rule of the key's owners charged it when it was made. Absent where that was before there were price rules: 1. */
  readonly factor?: number;
  /** Number of settlements so far. */
  readonly count: number;
}

/** Data that is stored with a cached content, and the settlements for it. */
export interface Stored {
  readonly known: JsonObject;
  readonly settlements: readonly Settlement[];
}

/** Reservation of a budget for content that is about to be stored, or stored for longer. */
export interface StorageReservation {
  /** Returns the charge, by the provider's description of the content. */
  stored(seen: JsonObject): Stored;
  /** Releases the reservation, unless it was charged. Must be called once, at the end. */
  end(isCharged: boolean): void;
}

/** Lifetime in milliseconds of a content whose request names none. https://ai.google.dev/api/caching */
const usualLife = 3_600_000;
/** Assumed maximum difference to the provider's clock, in milliseconds. */
const slack = 60_000;
const mostTries = 20;

/**
 * Reserves the storage of a new content. For a model whose storage has no price: throws 403 where the key has a budget, otherwise returns
 * undefined.
 */
export async function reserveStorage(
  call: Call,
  { channel }: ProviderAccount,
  { model, body }: { readonly model: string; readonly body: JsonObject },
  services: ObjectServices,
): Promise<StorageReservation | undefined> {
  const upstreamModel = channel.upstreamModel(model) ?? model;
  const price = priceOf(upstreamModel, services);
  const now = Date.now();
  const until = endIn(body, now) ?? now + usualLife;
  if (price === undefined) {
    refuseBudgeted(call);
    return undefined;
  }
  const begun: Storage = {
    id: `cache_${randomBytes(16).toString('hex')}`,
    model,
    upstreamModel,
    channel: channel.id,
    price,
    tokens: mostTokens(model, body, channel.id, services),
    from: now,
    until: now,
    microDollars: 0,
    factor: factorFor(call.get(caller)?.pricing, model),
    count: 0,
  };
  return createStorageReservation(call, begun, until, services);
}

/**
 * Reserves a longer storage of a content. For one whose storage was not charged: throws 403 where the key has a budget, otherwise returns
 * undefined.
 */
export async function reserveExtension(
  call: Call,
  object: ProviderObject,
  body: JsonObject,
  services: ObjectServices,
): Promise<StorageReservation | undefined> {
  const before = storageOf(object);
  const until = endIn(body, Date.now());
  if (before !== undefined) return createStorageReservation(call, before, until ?? before.until, services);
  if (until !== undefined) refuseBudgeted(call);
  return undefined;
}

async function createStorageReservation(
  call: Call,
  before: Storage,
  until: number,
  { tools: { bookkeeper } }: ObjectServices,
): Promise<StorageReservation> {
  const key = call.get(caller);
  const budgets = key?.budgets ?? [];
  const most = { ...before, microDollars: costOf(before, Math.max(before.until, until) + slack) };
  const more = chargeOf(most) - chargeOf(before);
  let reservation: Reservation | undefined;
  const isInDollars = budgets.some(({ unit }) => unit === 'micro-dollar');
  // Storage uses no tokens, so that a budget in tokens alone would not limit it.
  if (!isInDollars && before.price > 0 && until > before.until) refuseBudgeted(call);
  if (key !== undefined && isInDollars && more > 0)
    reservation = await claimed(key.id, budgets, { microDollars: more, tokens: 0 }, bookkeeper);
  return {
    stored: (seen) => storedAs(ownerOf(call), before, seen, until, reservation?.id),
    end(isCharged) {
      if (!isCharged && reservation !== undefined) bookkeeper.release(reservation.id);
    },
  };
}

/** Returns the storage and the settlement that follow from the provider's description of a content. */
function storedAs(
  owner: string,
  before: Storage,
  { createTime, expireTime, usageMetadata }: JsonObject,
  wanted: number,
  reservation: string | undefined,
): Stored {
  const tokenCount = isObject(usageMetadata) ? Number(usageMetadata['totalTokenCount']) : Number.NaN;
  const isNew = before.count === 0;
  const now: Storage = {
    ...before,
    tokens: isNew && tokenCount >= 0 ? Math.ceil(tokenCount) : before.tokens,
    from: (isNew ? timeOf(createTime) : undefined) ?? before.from,
    until: timeOf(expireTime) ?? wanted,
    count: before.count + 1,
  };
  const after = { ...now, microDollars: costOf(now, now.until) };
  return {
    known: { storage: { ...after } },
    settlements: [settlementOf(owner, before, after, reservation)],
  };
}

/** Stores the description of a content whose expiry has changed, together with the charge or the refund. */
export async function keepLonger(
  call: Call,
  object: ProviderObject,
  seen: JsonObject,
  storage: StorageReservation,
  { store }: ObjectServices,
): Promise<void> {
  let now: ProviderObject | undefined = object;
  let { known, settlements } = storage.stored(seen);
  for (let tries = 0; tries < mostTries && now !== undefined; tries += 1) {
    // oxlint-disable-next-line no-await-in-loop -- again where somebody else has changed it meanwhile
    if (await store.change(now, { ...now, seen, known: { ...now.known, ...known } }, settlements)) return;
    // oxlint-disable-next-line no-await-in-loop -- as above
    now = await store.find(now.owner, now.kind, now.id);
    const before = now && storageOf(now);
    if (before === undefined) return;
    ({ known, settlements } = storedAs(
      ownerOf(call),
      before,
      seen,
      before.until,
      settlements[0]?.reservation,
    ));
  }
}

/** Removes an object that its provider has deleted, and refunds the storage that was charged for the time after that. */
export async function forget(
  object: ProviderObject,
  { store }: Pick<ObjectServices, 'store'>,
): Promise<void> {
  let now: ProviderObject | undefined = object;
  for (let tries = 0; now !== undefined; tries += 1) {
    const before = storageOf(now);
    if (before === undefined || before.until <= Date.now() || tries === mostTries) {
      // oxlint-disable-next-line no-await-in-loop -- the last step
      await store.remove(now);
      return;
    }
    const until = Math.max(before.from, Date.now());
    const after = { ...before, until, microDollars: costOf(before, until), count: before.count + 1 };
    // oxlint-disable-next-line no-await-in-loop -- again where somebody else has changed it meanwhile
    if (await store.change(now, undefined, [settlementOf(now.owner, before, after, undefined)])) return;
    // oxlint-disable-next-line no-await-in-loop -- as above
    await setTimeout(tries);
    // oxlint-disable-next-line no-await-in-loop -- as above
    now = await store.find(now.owner, now.kind, now.id);
  }
}

function settlementOf(
  owner: string,
  before: Storage,
  after: Storage,
  reservation: string | undefined,
): Settlement {
  const { id, model, upstreamModel, channel, price, tokens, from, count } = after;
  const more = after.microDollars - before.microDollars;
  // The difference of rounded charges, so that all of them together give what the whole comes to.
  const charged = chargeOf(after) - chargeOf(before);
  const now = Date.now();
  const hours = (after.until - before.until) / 3_600_000;
  return {
    ...(owner === '' ? {} : { keyId: owner }),
    ...(reservation === undefined ? {} : { reservation }),
    charged: { microDollars: Math.abs(charged), tokens: 0 },
    isPriced: true,
    // The refund counts at the time of the original charge.
    ...(more < 0 ? { refundOf: from } : {}),
    record: {
      id: count === 1 ? id : `${id}_${count}`,
      at: now,
      ...(owner === '' ? {} : { keyId: owner }),
      ip: '',
      operation: 'cache-storage',
      format: 'generate-content',
      upstreamFormat: 'generate-content',
      model,
      upstreamModel,
      channel,
      stream: false,
      status: 200,
      ended: 'complete',
      reason: `${tokens} tokens are kept for ${hours.toFixed(2)} hours${more < 0 ? ' that were charged and are given back' : ''}.`,
      input: 0,
      output: 0,
      cacheRead: 0,
      cacheWrite: 0,
      reasoning: 0,
      microDollars: more,
      ...(charged === more ? {} : { chargedMicroDollars: charged }),
      price: { model: upstreamModel, cacheStorage: price },
      ms: 0,
    },
  };
}

function storageOf({ known }: ProviderObject): Storage | undefined {
  const { storage } = known;
  return isObject(storage) ? (storage as unknown as Storage) : undefined;
}

/** Returns the cost of storage from its beginning until a time, in micro-dollars. */
function costOf({ price, tokens, from }: Storage, until: number): number {
  const hours = Math.max(0, until - from) / 3_600_000;
  return Math.min(Number.MAX_SAFE_INTEGER, Math.ceil(tokens * price * hours));
}

/** Returns the charge of storage, in micro-dollars: its cost times the factor of the key's price rule. */
function chargeOf({ microDollars, factor = 1 }: Storage): number {
  return chargedMicroDollars(microDollars, factor);
}

function priceOf(model: string, { cacheStorage }: ObjectServices): number | undefined {
  const [fitting] = Object.keys(cacheStorage)
    .filter((pattern) => matchesModel([pattern], model))
    .toSorted((one, other) => other.length - one.length);
  return fitting === undefined ? undefined : cacheStorage[fitting];
}

/** Returns an upper bound of the tokens of a content, which is at most the input limit of its model. */
function mostTokens(model: string, body: JsonObject, channel: string, { tools }: ObjectServices): number {
  const traits = tools.catalog.targets(model).find((one) => one.channel.id === channel)?.traits ?? {};
  const codec = tools.format('generate-content')?.codecs.chat;
  const needs = new NeedsByModel();
  try {
    if (codec !== undefined) needs.add(model, codec, body);
  } catch {
    // The provider reports what is wrong with the request.
  }
  const [one] = Object.values(needs.all);
  return one === undefined ? Buffer.byteLength(JSON.stringify(body)) : mostInput(one, traits);
}

/** Reserves the maximum cost of a batch from the budgets of its API key. */
import {
  caller,
  GatewayError,
  matchesName,
  isObject,
  type JsonObject,
  type PriceRule,
  type Budget,
  type Call,
} from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import { noPriceError, noServicePriceError } from '../_price-errors.ts';
import { chargedMicroDollars, priceFor } from 'sluice/internal';
import type { Amounts, Bookkeeper, Reservation } from './core-types.ts';
import type { ObjectServices } from './services.ts';
import { mostOf, NeedsByModel, type Needs } from './needs.ts';
import type { ProviderAccount } from './account.ts';
import { isSliceOver, nextSlice } from './slices.ts';

/** Lifetime of a reservation in milliseconds while the provider responds: longer than any response takes, and the maximum after a crash. */
const reservationMs = 600_000;

/** Returns the upper bounds of the requests of a batch, by the public name of their model. */
export type NeedsOf = () => Promise<Readonly<Record<string, Needs>>>;

/**
 * Reserves the maximum cost of a batch; undefined for a key without budgets. Throws 429 where a budget is too small, and 403 for a model or
 * service without a price where a budget is in dollars.
 */
export async function reserved(
  call: Call,
  { channel }: ProviderAccount,
  needsOf: NeedsOf,
  { tools: { bookkeeper, catalog, prices }, shareOf }: ObjectServices,
): Promise<Reservation | undefined> {
  const key = call.get(caller);
  const budgets = key?.budgets ?? [];
  if (key === undefined || budgets.length === 0) return undefined;
  const isPriced = budgets.some(({ unit }) => unit === 'micro-dollar');
  let [tokens, microDollars] = [0, 0];
  for (const [model, needs] of Object.entries(await needsOf())) {
    const target = catalog.targets(model).find((one) => one.channel.id === channel.id);
    const { factor, row } = priceFor(key.pricing, model);
    const most = mostOf(model, needs, target?.traits ?? {}, prices, row);
    if (isPriced && row === undefined && (most.microDollars === undefined || prices.unpriced(model)))
      throw noPriceError(model);
    const { services, ...units } = needs.units;
    const priced = services && row ? row.unnamed(services) : services;
    const unpriced = isPriced && priced ? prices.unpricedService(model, priced) : undefined;
    if (unpriced !== undefined) throw noServicePriceError(model, unpriced);
    tokens += most.tokens;
    // Each model's answers are charged together. Batches have no discount for services.
    const bare = mostOf(model, { ...needs, units }, target?.traits ?? {}, prices, row).microDollars ?? 0;
    microDollars += chargedMicroDollars(
      Math.ceil(bare * shareOf(channel)) + (most.microDollars ?? 0) - bare,
      row === undefined ? factor : 1,
    );
  }
  return claimed(key.id, budgets, { tokens, microDollars }, bookkeeper);
}

/** Returns the part of a price rule that is about these models, or all of it without any: a batch is charged by the rule that it was reserved by. */
export function ruleOf(pricing: PriceRule = {}, models: readonly string[]): JsonObject {
  const prices = (pricing.models ?? []).filter(
    ({ model }) => models.length === 0 || models.some((name) => matchesName([model], name)),
  );
  return { ...pricing, models: prices } as unknown as JsonObject;
}

/** Reserves amounts for as long as a provider may take to respond. Throws 429 where a budget is too small, and 503 when the database fails. */
export async function claimed(
  keyId: string,
  budgets: readonly Budget[],
  most: Amounts,
  bookkeeper: Bookkeeper,
): Promise<Reservation> {
  try {
    return await bookkeeper.reserve(keyId, budgets, most, reservationMs);
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw new GatewayError('server_is_overloaded', 'The budget of this API key cannot be checked now.', {
      retryAfter: 5,
      cause: error,
    });
  }
}

/** Returns the upper bounds of requests in a body. Throws 400 that names the first one that cannot be read. */
export async function measured(
  requests: readonly {
    readonly model: string;
    readonly codec: Codec | undefined;
    readonly body: JsonObject;
  }[],
  pathOf: (index: number) => string,
): Promise<Readonly<Record<string, Needs>>> {
  const needs = new NeedsByModel();
  for (const [index, { model, codec, body }] of requests.entries()) {
    try {
      if (codec !== undefined) needs.add(model, codec, body);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      throw new GatewayError('invalid_value', `${pathOf(index)}: ${error.message}`, { param: pathOf(index) });
    }
    // oxlint-disable-next-line no-await-in-loop -- other callers run between two requests
    if (isSliceOver()) await nextSlice();
  }
  return needs.all;
}

/** Returns the upper bounds of the lines of a file. Throws 400 where they are not known. `model`: the model of lines that name none. */
export function needsOfLines(
  requested: JsonObject,
  model: string,
  param: string,
): Readonly<Record<string, Needs>> {
  const { needs, unreadable } = requested;
  if (isObject(needs))
    return Object.fromEntries(
      Object.entries(needs as unknown as Readonly<Record<string, Needs>>).map(([name, one]) => [
        name === '' ? model : name,
        one,
      ]),
    );
  throw new GatewayError(
    'invalid_value',
    typeof unreadable === 'string'
      ? `This API key has a budget, and the maximum cost of the file is unknown: ${unreadable}.`
      : 'This API key has a budget, and what the file may come to is not known: upload it again.',
    { param },
  );
}

/**
 * Rules of budgets without a database: periods, reservation ids, the room that is left for a call, and the 429 error of an exhausted budget.
 */
import { GatewayError } from '../../sdk/errors.ts';
import type { Amounts } from '../../model/usage-record.ts';
import type { Budget, HeldBudget } from '../../sdk/budget.ts';
import { fits } from './amounts.ts';
import type { Reservation } from './index.ts';
import { freeAt, spanOf, type Bucket } from './windows.ts';

/** The periods of UTC for which every key's spending is summed. */
export const periods = ['day', 'month', 'total'] as const satisfies readonly Budget['period'][];

/** One of them. */
export type SummedPeriod = (typeof periods)[number];

/** Returns the start of the period that contains a time, both in milliseconds since 1970, by days and months of UTC. 0 for `total`. */
export function periodStart(period: SummedPeriod, at: number): number {
  if (period === 'total') return 0;
  const date = new Date(at);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), period === 'day' ? date.getUTCDate() : 1);
}

/**
 * Returns a new reservation's id. It contains the time, so that a reservation that was swept is still charged to the period in which it was
 * made. It ends with an `o` where owners of the key have budgets too; without it the table of owners' reservations need not be read.
 */
export function newReservationId(at: number, hasOwners = false): string {
  return `rsv_${at.toString(36)}_${crypto.randomUUID().replaceAll('-', '')}${hasOwners ? 'o' : ''}`;
}

/** True for the id of a reservation on budgets of owners too. The random digits before its end are hexadecimal. */
export function includesOwners(id: string): boolean {
  return id.endsWith('o');
}

/** Returns the ids of the owners that hold some of these budgets. */
export function ownersIn(budgets: readonly HeldBudget[]): readonly string[] {
  return [...new Set(budgets.flatMap(({ owner }) => owner?.id ?? []))];
}

/** Returns the id under which the spending and the reservations of a budget are stored: the owner's, else the key's. */
export function holderOf({ owner }: HeldBudget, keyId: string): string {
  return owner?.id ?? keyId;
}

/** Returns the time in a reservation's id, in milliseconds since 1970; undefined for an invalid id. */
export function reservedAt(id: string): number | undefined {
  const [, digits] = /^rsv_([0-9a-z]{1,10})_/.exec(id) ?? [];
  return digits === undefined ? undefined : Number.parseInt(digits, 36);
}

/** Returns the tokens or the micro-dollars of amounts, whichever a budget counts. */
export function counted(unit: Budget['unit'], { microDollars, tokens }: Amounts): number {
  return unit === 'token' ? tokens : microDollars;
}

/** Amounts of a budget that are not available for a call. */
type Taken = Readonly<Record<'spent' | 'reserved' | 'ahead', number>>;

/** Returns what is left of a budget for calls. */
function leftOf({ amount, spent, reserved, ahead }: Budget & Taken): number {
  return amount - spent - reserved - ahead;
}

/** Returns the budgets without room for a call. */
function exceeded<State extends Budget & Taken>(states: readonly State[], most: Amounts): readonly State[] {
  return states.filter((state) => counted(state.unit, most) > leftOf(state));
}

/** Returns the ids of the holders whose budgets have no room for a call. */
export function shortOf(
  states: readonly (HeldBudget & Taken)[],
  most: Amounts,
  keyId: string,
): readonly string[] {
  return [...new Set(exceeded(states, most).map((state) => holderOf(state, keyId)))];
}

/** Returns the first of these amounts for which all budgets have room; else the error for the last. */
export function firstThatFits(
  states: readonly (HeldBudget & Taken)[],
  amounts: readonly Amounts[],
  now: number,
): Amounts | BudgetExhausted {
  let refusal: BudgetExhausted | undefined;
  for (const most of amounts) {
    const [full] = exceeded(states, most);
    if (full === undefined) return most;
    refusal = exhausted(full, most, now);
  }
  return refusal ?? { microDollars: 0, tokens: 0 };
}

/** Share of what is left of a budget that one allotment may take: other processes serve calls of the key too. */
const maxShare = 1 / 8;

/**
 * Returns what is reserved ahead with a call: so much of `wanted` as all budgets have ample room for. Undefined when that is not enough for
 * another such call; near its limit a budget is reserved call by call.
 */
function aheadWithin(
  states: readonly (Budget & Taken)[],
  most: Amounts,
  wanted: Amounts,
): Amounts | undefined {
  let { microDollars, tokens } = wanted;
  for (const state of states) {
    const { unit } = state;
    const share = Math.floor((leftOf(state) - counted(unit, most)) * maxShare);
    if (unit === 'token') tokens = Math.min(tokens, share);
    else microDollars = Math.min(microDollars, share);
  }
  return fits(most, { microDollars, tokens }) ? { microDollars, tokens } : undefined;
}

/** Returns the reservation of a call that fits. Something is reserved ahead only where the call gets the most that it may come to. */
export function reservationOf(
  granted: {
    readonly keyId: string;
    readonly states: readonly (HeldBudget & Taken)[];
    /** Amount that is reserved for the call: `most`, or a smaller amount that it can be limited to. */
    readonly fitting: Amounts;
    readonly most: Amounts;
    readonly lease: number;
    readonly wanted: Amounts | undefined;
  },
  now: number,
): Reservation {
  const { keyId, states, fitting, most, lease, wanted } = granted;
  const ahead = wanted === undefined || fitting !== most ? undefined : aheadWithin(states, most, wanted);
  const owners = ownersIn(states);
  return {
    id: newReservationId(now, owners.length > 0),
    keyId,
    ...(owners.length === 0 ? {} : { owners }),
    most: fitting,
    lease,
    ...(ahead === undefined ? {} : { ahead }),
  };
}

/** The 429 error: a budget has no room for a call. */
export class BudgetExhausted extends GatewayError {
  /** True when only the claims of calls that have not been settled yet stand in the way. */
  readonly claimed: boolean;
  /** True when allotments that may make room for the call were recalled, here or in other processes. */
  recalls = false;
  /** The rolling window that is full, and how much of it must become free. */
  readonly full: FullWindow | undefined;

  constructor(message: string, claimed: boolean, full?: FullWindow, retryAfter?: number) {
    super('insufficient_quota', message, retryAfter === undefined ? {} : { retryAfter });
    this.claimed = claimed;
    this.full = full;
  }
}

/** A rolling window without room for a call. */
interface FullWindow {
  readonly budget: HeldBudget;
  readonly since: number;
  readonly needed: number;
  /** The refusal without the time. */
  readonly sentence: string;
}

/**
 * Returns the refusal with the time at which enough of a rolling window is free again for the call, if no other call takes it. `buckets`: what
 * was spent in the window, oldest first.
 */
export function withFreeTime(
  refusal: BudgetExhausted,
  full: FullWindow,
  buckets: readonly Bucket[],
  now: number,
): BudgetExhausted {
  const free = freeAt(full.budget.hours ?? 1, buckets, full.needed);
  if (free === undefined) return refusal;
  const withTime = new BudgetExhausted(
    `${full.sentence} Enough of it is available at ${timeOf(free)} UTC.`,
    refusal.claimed,
    full,
    Math.max(1, Math.ceil((free - now) / 1_000)),
  );
  withTime.recalls = refusal.recalls;
  return withTime;
}

const periodWords = { day: 'daily', week: 'weekly', month: 'monthly', total: 'total' } as const;

function nameOf({ period, hours = 1 }: Budget): string {
  return period === 'hours' ? `${hours}-hour` : periodWords[period];
}

/** `2026-11-26 21:40`. */
function timeOf(at: number): string {
  return new Date(at).toISOString().slice(0, 16).replace('T', ' ');
}

/** Returns when the budget of a period begins anew, for a sentence. */
function beginsAnew(budget: Budget, at: number): string {
  if (budget.period === 'total') return 'It does not reset.';
  if (budget.period === 'hours') return 'Spending counts for the length of this window.';
  return `It resets at ${timeOf(spanOf(budget, at).end)} UTC.`;
}

/** Returns the 429 error with the budget, its spent and reserved amounts, and the start of its next period. */
function exhausted(budget: HeldBudget & Taken, most: Amounts, at: number): BudgetExhausted {
  const { unit, amount, spent } = budget;
  const reserved = budget.reserved + budget.ahead;
  const holder = budget.owner?.name ?? 'this API key';
  const name = `The ${nameOf(budget)} budget of ${holder} (${shown(unit, amount)})`;
  const used = `${shown(unit, spent)} spent`;
  const claimed = reserved > 0 ? `, ${shown(unit, reserved)} reserved for running calls` : '';
  const left = leftOf(budget);
  const sentence =
    left <= 0
      ? `${name} is used up: ${used}${claimed}.`
      : `${name} does not allow this call: ${used}${claimed}, and it may cost up to ${shown(unit, counted(unit, most))}. Lower the output limit to need less.`;
  const call = counted(unit, most);
  const full =
    budget.period === 'hours' && call <= amount
      ? { budget, since: spanOf(budget, at).start, needed: call - left, sentence }
      : undefined;
  return new BudgetExhausted(`${sentence} ${beginsAnew(budget, at)}`, spent + call <= amount, full);
}

function shown(unit: Budget['unit'], amount: number): string {
  if (unit === 'token') return `${amount.toLocaleString('en-US')} tokens`;
  const dollars = (amount / 1e6).toFixed(6).replace(/(\.\d\d\d*?)0+$/, '$1');
  return `$${dollars}`;
}

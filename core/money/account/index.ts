/**
 * The account of one call: collects its charges and closes at its end, then books one settlement and runs the callbacks with the final
 * outcome.
 */
import type { AttemptEvent } from '../../model/event.ts';
import type { Usage } from '../../model/usage.ts';
import type { CallAccount } from '../../sdk/account.ts';
import type { CallCost, CallOutcome, SettledCall } from '../../sdk/author/outcome.ts';
import type { Call } from '../../sdk/call.ts';
import type { Handler, Next } from '../../sdk/define.ts';
import type { Observing } from '../../sdk/followed-reply.ts';
import { none, smaller } from '../ledger/amounts.ts';
import type { Amounts } from '../../model/usage-record.ts';
import type { ChargedHolders } from '../ledger/charged-holders.ts';
import { chargedFor, priceFor, type OwnPrice } from '../ledger/pricing.ts';
import type { PricedUsage } from '../prices/own-row.ts';
import type { Settlement } from '../ledger/index.ts';
import { CallAttempts } from './attempts.ts';
import { costOf, sumOfCharges, type Charge } from './charge.ts';
import type { Attribution } from './attribution.ts';
import type { CallReservation, HeldReservation } from './call-reservation.ts';
import type { EndedCall } from './ended-calls.ts';
import { outcomeOf } from './outcome.ts';
import { CallRecord, type RecordedCall } from './record.ts';
import type { AccountServices, Recorder } from './services.ts';

/**
 * The reservations, attempts, usage, cost and end of one call.
 *
 * States, each entered once: `open` from the request on; `closed` when the lifetime that owns the account has ended and all its callbacks
 * have run, so that no figure changes; `taken` where its settlement is written together with other data; `settled` once the charge is booked.
 *
 * | step | caller | how often |
 * | --- | --- | --- |
 * | observe the response | the gateway, outside of all plugins (`followed`) | once for the client, once for a detached call |
 * | reserve | the plugin that decides limits, with a `Claim` | once for each request that an earlier reservation does not cover, together with what the call has been charged before |
 * | `attempts` | routing, the innermost step, the reader of the socket | for each attempt |
 * | observe usage, then charge | a `ReplyMeter` around each request that is sent | once, at the end of its response or of the call |
 * | close | the lifetime of the call (`end`), or `take` | once |
 * | settle: book the charge with its record, or release | the account | once |
 * | outcome | the account, to each callback | once |
 *
 * Ways in which a call ends:
 *
 * - Refused before it is sent, by a plugin or the front end: nothing is charged, the claim is released, the record has the refusal.
 * - Attempts and fallbacks: one `ReplyMeter` stands around all of them. An attempt that failed costs nothing; the one that answers is charged.
 * - Hedges and requests for parallel answers: reserved together. Abandoned ones are charged with their input, because their
 *   providers have received it.
 * - A plugin that sends several requests: each is charged, and the charges are added. What is reserved for a request covers the requests
 *   before it, too, so that one reservation is settled and the others are released.
 * - A response that is cut, or a client that leaves: the lifetime ends the meter, which charges the usage so far, or the input once a provider
 *   has received it.
 * - A call that goes on without its client (background responses, tasks, objects): the detached lifetime owns the account from `detach` on.
 *   The client's response then settles nothing. A detached call that was never sent gives the account back to a client that still waits.
 * - A task that is kept together with its charge: `settlesElsewhere` is set before the call is sent, and `take` closes the account and gives
 *   its settlement. Where nobody takes it the bookkeeper gets it.
 * - A session over a WebSocket: each answer has a reservation and a settlement of its own and is added with `chargeApart`; the session itself
 *   costs nothing.
 * - Objects that cost something after their call has ended, such as batches, are settled by their poller.
 * - Shutdown ends the lifetimes of all calls. A gateway that closes settles what waits before it closes each plugin.
 *
 * Callbacks see final figures, in whatever order plugins run or register: they run after all callbacks of `call.onEnd`.
 */
export class Account implements CallAccount, EndedCall, SettledCall {
  /** True when the settlement is written together with other data, so that the reservation must not be part of an allotment. */
  settlesElsewhere = false;
  /** Attempts at providers. */
  readonly attempts = new CallAttempts();
  #services: AccountServices | undefined = undefined;
  #record: CallRecord;
  /** The record of the client's response, where a detached call owns the account. */
  #earlier: CallRecord | undefined = undefined;
  #state: 'open' | 'closed' | 'taken' | 'settled' = 'open';
  #step: Handler | undefined = undefined;
  #isBooked = false;
  #recorder: Recorder | undefined = undefined;
  #attribution: Attribution | undefined = undefined;
  #holders: ChargedHolders = { owners: [], series: [] };
  #watcher: (() => Observing) | undefined = undefined;
  #closeJobs: (() => void)[] | undefined = undefined;
  #settleJobs: ((settled: SettledCall) => void)[] | undefined = undefined;
  #charged: Charge | undefined = undefined;
  #apart: Charge | undefined = undefined;
  #answeredBy: string | undefined = undefined;
  #reservation: CallReservation | undefined = undefined;
  #outcome: CallOutcome | undefined = undefined;

  constructor(call: RecordedCall) {
    this.#record = new CallRecord(call, this.attempts.failures);
  }

  /** The record of the response that counts: the client's, or that of the detached call. */
  get record(): CallRecord {
    return this.#record;
  }

  get response(): CallRecord {
    return this.#record;
  }

  /** Connects the account with the gateway in which its call runs. */
  open(services: AccountServices): void {
    this.#services = services;
  }

  /** Makes a detached call the owner. Returns its record. */
  moveTo(call: RecordedCall): CallRecord {
    const moved = new CallRecord(call, this.attempts.failures, this.#record.startedAt);
    moved.watcher = this.#watcher?.();
    this.#earlier = this.#record;
    this.#record = moved;
    return moved;
  }

  /**
   * Sets the step through which every request is sent, for the plugin that charges. `reservation`: that of the call, which also pays for
   * a response that a plugin gives by itself.
   */
  sendThrough(step: Handler, reservation?: CallReservation): void {
    this.#step = step;
    this.#reservation = reservation;
  }

  /** Sends a request of the call: the step between the plugins that run once for a call and routing. */
  send(call: Call, attempts: Next): ReturnType<Next> {
    return this.#step === undefined ? attempts(call) : this.#step(call, attempts);
  }

  /** Charges so far; undefined when nothing charges this call. */
  get charged(): Charge | undefined {
    return this.#charged;
  }

  /** Adds a charge. Of two reservations one that covers the sum settles it, and the other is released. */
  charge(more: Charge): void {
    if (this.#state !== 'open') {
      this.#release(more.reservation);
      this.#services?.report(new Error('A call was charged after its account was closed.'), this.#record.id);
      return;
    }
    const before = this.#charged;
    this.#charged = before === undefined ? more : sumOfCharges(before, more);
    for (const one of [before?.reservation, more.reservation])
      if (one !== this.#charged.reservation) this.#release(one);
  }

  /**
   * Charges a share of what the usage costs, for a response that a plugin gives in place of a channel. The reservation of the call pays for
   * it: a charge that is larger, because the response was made for another request, is cut to that.
   */
  chargeAnswer(plugin: string, model: string, usage: Usage | undefined, share: number): void {
    this.#answeredBy = `plugin:${plugin}`;
    if (usage === undefined || share <= 0) {
      this.charge({ amounts: none });
      return;
    }
    const cost = this.priced(model, usage, undefined);
    const free = this.#reservation?.isFree === true ? this.#reservation.handOver() : undefined;
    const amounts = {
      microDollars: Math.ceil((cost?.microDollars ?? 0) * share),
      tokens: Math.ceil((usage.input + usage.output) * share),
    };
    const priced = this.chargeOf(model, amounts, [{ usage, price: cost?.price }], share);
    this.charge({
      ...priced,
      amounts: free === undefined ? priced.amounts : smaller(priced.amounts, free.most),
      usage,
      ...(cost?.price === undefined ? {} : { price: cost.price }),
      ...(free === undefined ? {} : { reservation: free }),
    });
  }

  /** `plugin:NAME` of a response that no channel gave. */
  get answeredBy(): string | undefined {
    return this.#answeredBy;
  }

  /** Adds what has a settlement of its own, such as an answer of a session. It counts in the outcome alone. */
  chargeApart(more: Charge): void {
    this.#apart = this.#apart === undefined ? more : sumOfCharges(this.#apart, more);
  }

  /** Returns the cost of a usage at the attempt that answered. */
  priced(model: string, usage: Usage, answered: AttemptEvent | undefined): CallCost | undefined {
    return this.#services?.prices.cost(model, usage, answered);
  }

  /** Usage that is charged, or that the response reported where nothing charges. */
  get usage(): Usage | undefined {
    return this.#charged === undefined ? this.#record.usage : this.#charged.usage;
  }

  /** Tokens that the response reported, else those that are charged; undefined where neither is known. */
  get usedTokens(): number | undefined {
    const { usage } = this.#record;
    return usage === undefined || this.#answeredBy !== undefined
      ? this.#charged?.amounts.tokens
      : usage.input + usage.output;
  }

  /** Cost of the usage; undefined where its model has no price. */
  get cost(): CallCost | undefined {
    const { usage } = this;
    const charged = this.#charged;
    if (usage === undefined) return { microDollars: charged === undefined ? 0 : costOf(charged) };
    if (charged === undefined) return this.priced(this.#record.model, usage, this.#record.attempt);
    const { price } = charged;
    return price === undefined ? undefined : { microDollars: costOf(charged), price };
  }

  /** Charges that were settled apart. */
  get apart(): Charge | undefined {
    return this.#apart;
  }

  /** Final state of the call. */
  get outcome(): CallOutcome {
    return this.#state === 'open' ? outcomeOf(this) : (this.#outcome ??= outcomeOf(this));
  }

  /** Has the response observed by `make()`, and that of a detached call by another one. */
  watch(make: () => Observing): void {
    this.#watcher = make;
    this.#record.watcher = make();
  }

  /** Sets the owners and series that are charged beside the caller's key, and the price rule. */
  belongTo(holders: ChargedHolders): void {
    this.#holders = holders;
  }

  /** Sets the attribution of the call in its usage record. */
  attributeTo(attribution: Attribution): void {
    this.#attribution = attribution;
  }

  /** Undefined for what is not charged, and before the call was admitted. */
  get attribution(): Attribution | undefined {
    return this.#attribution;
  }

  /** Returns the price of a model for the owners of the key. */
  ownPrice(model: string): OwnPrice {
    return priceFor(this.#holders.pricing, model);
  }

  /**
   * Returns the charge for what costs so much: the price rule of the owners of the key decides. `usages`: what they may have a price of their own
   * for; `share`: the part of it that is charged.
   */
  chargeOf(
    model: string,
    cost: Amounts,
    usages: readonly PricedUsage[] = [],
    share = 1,
  ): Pick<Charge, 'amounts' | 'cost'> {
    const amounts = chargedFor(this.ownPrice(model), cost, usages, share);
    return amounts === cost ? { amounts } : { amounts, cost: cost.microDollars };
  }

  /** Micro-dollars that budgets are charged, where that is another amount than the cost. */
  get chargedMicroDollars(): number | undefined {
    const charged = this.#charged;
    return charged?.cost === undefined ? undefined : charged.amounts.microDollars;
  }

  /** Sets how the usage record is made with which the charge is settled. */
  recordWith(recorder: Recorder): void {
    this.#recorder = recorder;
    if (this.#state === 'settled' && !this.#isBooked) this.#state = 'closed';
    this.#settleLate();
  }

  /** Runs the callback when the account closes: figures are final, nothing is settled yet. It must be short. */
  onClose(job: () => void): void {
    if (this.#state !== 'open') job();
    else (this.#closeJobs ??= []).push(job);
  }

  /** Runs the callback once the account is settled. */
  onSettled(job: (settled: SettledCall) => void): void {
    if (this.#state === 'settled') {
      this.#services?.ended.add({ settle: () => this.#run(job) });
      return;
    }
    (this.#settleJobs ??= []).push(job);
    this.#settleLate();
  }

  onOutcome(job: (outcome: CallOutcome) => void): void {
    this.onSettled(() => job(this.outcome));
  }

  onUsedTokens(job: (tokens: number | undefined) => void): void {
    this.onClose(() => job(this.usedTokens));
  }

  /** Runs the callback together with those of other calls that have ended. */
  afterwards(job: () => void): void {
    this.#services?.ended.add({ settle: () => this.#run(job) });
  }

  /** A lifetime has ended, with all its callbacks: closes the account if it belongs to that lifetime. */
  end(record: CallRecord): void {
    if (record === this.#record) {
      if (record.isFollowed || this.#earlier === undefined) this.close();
      else this.#record = this.#earlier;
    }
    // The client no longer waits for the response.
    if (record === this.#earlier) this.#earlier = undefined;
  }

  /** Closes the account, for a detached call whose response is over. */
  close(): void {
    if (!this.#shut()) return;
    if (this.#recorder !== undefined || this.#settleJobs !== undefined || this.#charged !== undefined)
      this.#services?.ended.add(this);
  }

  /** Closes the account and returns its settlement, for a caller that writes it in one transaction with other data. */
  take(): Settlement | undefined {
    if (!this.#shut()) return undefined;
    this.#state = 'taken';
    this.#services?.ended.add(this);
    return this.#settlement();
  }

  /** Settles the account and runs the callbacks that wait for that. */
  settle(): void {
    if (this.#state === 'closed') this.#enqueueSettlement();
    this.#state = 'settled';
    for (const job of this.#settleJobs ?? []) this.#run(job);
    this.#settleJobs = undefined;
    // A connection may keep its last call for long.
    this.#recorder = undefined;
    this.#watcher = undefined;
    this.#record.watcher = undefined;
  }

  /** Settles an account that is closed already, for plugins that the call reached after its end because one before them held it. */
  #settleLate(): void {
    if (this.#state === 'closed') this.#services?.ended.add(this);
  }

  /** False when the account was closed before. */
  #shut(): boolean {
    if (this.#state !== 'open') return false;
    this.#record.end('left');
    this.#state = 'closed';
    for (const job of this.#closeJobs ?? []) this.#run(job);
    this.#closeJobs = undefined;
    return true;
  }

  #enqueueSettlement(): void {
    const settlement = this.#settlement();
    if (settlement === undefined) return;
    this.#isBooked = true;
    try {
      this.#services?.bookkeeper.enqueue(settlement);
    } catch (error) {
      this.#unrecorded(error);
    }
  }

  /** Undefined where nobody records the call, or its record cannot be made: its reservation is released then. */
  #settlement(): Settlement | undefined {
    if (this.#recorder === undefined) {
      this.#release(this.#charged?.reservation);
      return undefined;
    }
    try {
      const record = this.#recorder();
      const { amounts = none, reservation } = this.#charged ?? {};
      reservation?.unwatch();
      const { keyId } = record;
      return {
        charged: amounts,
        record,
        ...(keyId === undefined ? {} : { keyId, owners: this.#holders.owners, series: this.#holders.series }),
        ...(reservation === undefined ? {} : { reservation: reservation.id }),
      };
    } catch (error) {
      this.#unrecorded(error);
      return undefined;
    }
  }

  #unrecorded(error: unknown): void {
    this.#services?.report(error, this.#record.id, 'a call could not be recorded');
    this.#release(this.#charged?.reservation);
  }

  #release(reservation: HeldReservation | undefined): void {
    reservation?.unwatch();
    if (reservation !== undefined) this.#services?.bookkeeper.release(reservation.id);
  }

  #run(job: (settled: SettledCall) => void): void {
    try {
      job(this);
    } catch (error) {
      this.#services?.report(error, this.#record.id);
    }
  }
}

/** Returns the account of a call. */
export function accountOf({ account }: Pick<Call, 'account'>): Account {
  if (!(account instanceof Account)) throw new TypeError('This call has no account.');
  return account;
}

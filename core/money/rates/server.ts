import { systemClock, type Clock } from '../ledger/clock.ts';
import { MemoryRates } from './memory.ts';
import type { RatesAnswer, RatesQuestion, RatesRecall, RateTimes } from './index.ts';

/** Longest time in ms for which a call waits for what other workers give back. */
const recallTime = 100;

/** Time in ms for which nothing is counted ahead for a subject after a call found no room. */
const restTime = 2_000;

/** Maximum number of subjects for which either is remembered. */
const maxSubjects = 10_000;

type Taking = Extract<RatesQuestion, { kind: 'take' }>;

/** A call that found no room, while workers give back what was counted ahead for them. */
interface Parked {
  readonly worker: number;
  readonly question: Taking;
  readonly waitsFor: Set<number>;
  readonly stopTimer: () => void;
}

/** Counts for several processes, each known by a number. */
export class RatesServer {
  readonly #rates: MemoryRates;
  readonly #clock: Clock;
  readonly #send: (worker: number, news: RatesAnswer | RatesRecall) => void;
  /** Slots that each process holds, by subject. */
  readonly #held = new Map<number, Map<string, number>>();
  /** By subject: for which processes something was counted ahead, and until when it may be free. */
  readonly #ahead = new Map<string, Map<number, number>>();
  readonly #restUntil = new Map<string, number>();
  readonly #parked = new Map<number, Parked>();
  #recalls = 0;

  constructor(
    send: (worker: number, news: RatesAnswer | RatesRecall) => void,
    times: RateTimes = {},
    clock: Clock = systemClock,
  ) {
    this.#send = send;
    this.#rates = new MemoryRates(times, clock);
    this.#clock = clock;
  }

  /** Handles a message of a process, and responds where the process waits. */
  receive(worker: number, question: RatesQuestion): void {
    switch (question.kind) {
      case 'correct':
        this.#rates.correct(question.subject, question.difference, question.slice);
        return;
      case 'release':
        for (const subject of question.slots) this.#release(worker, subject, 1);
        return;
      case 'give-back': {
        for (const { subject, difference, slice } of question.corrections)
          this.#rates.correct(subject, difference, slice);
        for (const [subject, count] of question.slots) this.#release(worker, subject, count);
        if (question.recalled !== undefined) this.#recallDone(worker, question.recalled);
        return;
      }
      case 'take':
        this.#take(worker, question);
    }
  }

  /** Gives back all slots of a process that has ended. */
  forget(worker: number): void {
    for (const [subject, count] of this.#held.get(worker) ?? []) this.#rates.release(subject, count);
    this.#held.delete(worker);
    for (const [subject, workers] of this.#ahead)
      if (workers.delete(worker) && workers.size === 0) this.#ahead.delete(subject);
    for (const [recall, parked] of this.#parked) {
      if (parked.worker === worker) this.#unpark(recall, parked);
      else this.#recallDone(worker, recall);
    }
  }

  #take(worker: number, question: Taking): void {
    const now = this.#clock.now();
    const isResting = ({ subject }: { readonly subject: string }): boolean =>
      now < (this.#restUntil.get(subject) ?? 0);
    const mayTakeAhead = ![...question.rules, ...question.slots].some(isResting);
    const answer = this.#count(worker, question, mayTakeAhead, now);
    const { allowed, exceeded } = answer.verdict;
    if (!allowed) {
      if (exceeded !== undefined) setBounded(this.#restUntil, exceeded, now + restTime);
      const subjects = [...question.rules, ...question.slots].map(({ subject }) => subject);
      const holders = new Set(subjects.flatMap((subject) => this.#holders(subject, now)));
      if (holders.size > 0) {
        this.#park(worker, question, holders, subjects);
        return;
      }
    }
    this.#send(worker, answer);
  }

  #count(worker: number, { id, rules, slots }: Taking, mayTakeAhead: boolean, now: number): RatesAnswer {
    const slice = this.#rates.sliceAt(now);
    const counted = mayTakeAhead ? rules : rules.map(({ ahead: _ahead, ...rule }) => rule);
    const { grant, ...verdict } = this.#rates.takeNow(counted, slots, now, slice);
    const taken = grant === undefined ? [] : slots.map(({ subject }) => subject);
    const slotsAhead =
      grant !== undefined && mayTakeAhead ? slots.map((slot) => this.#rates.takeAhead(slot)) : [];
    const sliceMs = this.#rates.untilNext(now);
    taken.forEach((subject, index) => {
      const held = this.#held.get(worker) ?? new Map<string, number>();
      this.#held.set(worker, held);
      const ahead = slotsAhead[index] ?? 0;
      held.set(subject, (held.get(subject) ?? 0) + 1 + ahead);
      if (ahead > 0) this.#note(subject, worker, Infinity);
    });
    // What is free of a slice comes back soon after its end.
    for (const { subject, ahead = 0 } of verdict.states)
      if (ahead > 0) this.#note(subject, worker, now + sliceMs + recallTime);
    return { id, verdict, slice, sliceMs, slots: taken, slotsAhead };
  }

  /** Has others give back what they do not use, before the call is refused. */
  #park(worker: number, question: Taking, holders: ReadonlySet<number>, subjects: readonly string[]): void {
    const recall = (this.#recalls += 1);
    const stopTimer = this.#clock.after(recallTime, () => this.#again(recall));
    this.#parked.set(recall, { worker: worker, question, waitsFor: new Set(holders), stopTimer });
    for (const holder of holders) this.#send(holder, { recall, subjects });
  }

  /** A worker has given back what was free. */
  #recallDone(worker: number, recall: number): void {
    const parked = this.#parked.get(recall);
    if (parked === undefined) return;
    for (const { subject } of [...parked.question.rules, ...parked.question.slots]) {
      const workers = this.#ahead.get(subject);
      if (workers?.delete(worker) === true && workers.size === 0) this.#ahead.delete(subject);
    }
    parked.waitsFor.delete(worker);
    if (parked.waitsFor.size === 0) this.#again(recall);
  }

  #again(recall: number): void {
    const parked = this.#parked.get(recall);
    if (parked === undefined) return;
    this.#unpark(recall, parked);
    this.#send(parked.worker, this.#count(parked.worker, parked.question, false, this.#clock.now()));
  }

  #unpark(recall: number, { stopTimer }: Parked): void {
    stopTimer();
    this.#parked.delete(recall);
  }

  #note(subject: string, worker: number, until: number): void {
    const workers = this.#ahead.get(subject) ?? new Map<number, number>();
    setBounded(this.#ahead, subject, workers);
    workers.set(worker, Math.max(until, workers.get(worker) ?? 0));
  }

  /** Processes that may hold something of the subject that no call uses. */
  #holders(subject: string, now: number): readonly number[] {
    const workers = this.#ahead.get(subject);
    if (workers === undefined) return [];
    for (const [worker, until] of workers) if (now >= until) workers.delete(worker);
    if (workers.size === 0) this.#ahead.delete(subject);
    return [...workers.keys()];
  }

  #release(worker: number, subject: string, count: number): void {
    const held = this.#held.get(worker);
    const own = held?.get(subject);
    // What it does not hold was given back when it was taken for gone.
    if (held === undefined || own === undefined) return;
    const released = Math.min(count, own);
    if (own > released) held.set(subject, own - released);
    else held.delete(subject);
    this.#rates.release(subject, released);
  }
}

/** Sets the value of a subject, which stands last then; where there are too many, the first one is forgotten. */
function setBounded<Value>(map: Map<string, Value>, subject: string, value: Value): void {
  map.delete(subject);
  const [oldest] = map.keys();
  if (map.size >= maxSubjects && oldest !== undefined) map.delete(oldest);
  map.set(subject, value);
}

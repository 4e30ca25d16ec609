import {
  Answerers,
  type Answerer,
  type Gathered,
  type PeerAnswer,
  type Peers,
  type Totals,
} from './peers.ts';

/** What a worker says about questions among processes. */
export type PeerWord =
  | { readonly kind: 'gather'; readonly id: number; readonly topic: string; readonly question?: unknown }
  /** Without an answer: it has none. */
  | { readonly kind: 'answer'; readonly id: number; readonly topic: string; readonly answer?: PeerAnswer }
  | { readonly kind: 'leave'; readonly topic: string; readonly totals: Totals };

/** What a worker is told. */
export type PeerNews =
  | { readonly kind: 'asked'; readonly id: number; readonly topic: string; readonly question?: unknown }
  | { readonly kind: 'gathered'; readonly id: number; readonly gathered: Gathered };

/** The way to the process that asks all. */
export interface PeerLine {
  /** False when it leads nowhere any more. `sent` runs when the word is on its way, or cannot be. */
  send(word: PeerWord, sent?: () => void): boolean;
  /** Tells who wants to hear what comes. */
  listen(listener: (news: PeerNews) => void): void;
}

/** How long processes have for an answer, in milliseconds. */
const patience = 1_000;

/** Longest wait for the process that asks, in milliseconds: it does next to nothing else. */
const longestWait = 2_500;

/** Questions that may be open at a time. */
const mostOpen = 100;

/** Topics and names of totals that are kept for processes that have ended; what is beyond them is lost with its process. */
const mostTopics = 20;
const mostTotals = 100_000;

/** A worker among others: whoever started them all passes questions and answers on. */
export class WorkerPeers implements Peers {
  readonly #line: PeerLine;
  readonly #answerers = new Answerers();
  readonly #open = new Map<number, (gathered: Gathered | undefined) => void>();
  #ids = 0;

  constructor(line: PeerLine) {
    this.#line = line;
    line.listen((news) => {
      if (news.kind === 'gathered') this.#open.get(news.id)?.(news.gathered);
      else void this.#answer(news.id, news.topic, news.question);
    });
  }

  answer(topic: string, answerer: Answerer): () => void {
    return this.#answerers.add(topic, answerer);
  }

  gather(topic: string, question?: unknown): Promise<Gathered | undefined> {
    return new Promise((resolve) => {
      const id = (this.#ids += 1);
      const settle = (gathered: Gathered | undefined): void => {
        clearTimeout(timer);
        this.#open.delete(id);
        resolve(gathered);
      };
      const timer = setTimeout(() => settle(undefined), longestWait).unref();
      if (this.#open.size >= mostOpen || !this.#line.send({ kind: 'gather', id, topic, question }))
        settle(undefined);
      else this.#open.set(id, settle);
    });
  }

  leave(topic: string, totals: Totals): Promise<void> {
    return new Promise((resolve) => {
      this.#line.send({ kind: 'leave', topic, totals }, resolve);
    });
  }

  async #answer(id: number, topic: string, question: unknown): Promise<void> {
    const answer = await this.#answerers.ask(topic, question);
    this.#line.send({ kind: 'answer', id, topic, ...(answer === undefined ? {} : { answer }) });
  }
}

/** A process that may be asked. */
interface Member {
  /** False when it takes no question now. */
  readonly tell: (news: PeerNews) => boolean;
  /** What it counted by the last time that it told, by topic. */
  readonly totals: Map<string, Totals>;
}

interface Round {
  readonly answers: { readonly from: number; readonly value: unknown }[];
  readonly silent: number[];
  readonly waiting: Set<number>;
  readonly finish: () => void;
}

/** Passes questions on to several processes, each known by a number, and remembers what those that have ended had counted. */
export class PeersDesk {
  readonly #patience: number;
  readonly #members = new Map<number, Member>();
  readonly #rounds = new Map<number, Round>();
  readonly #ended = new Map<string, Map<string, number>>();
  #ids = 0;

  /** `wait`: milliseconds for an answer. */
  constructor(wait = patience) {
    this.#patience = wait;
  }

  /** From now on it is asked. */
  join(member: number, tell: Member['tell']): void {
    this.#members.set(member, { tell, totals: new Map() });
  }

  /** It has ended: nobody waits for it, and what it had counted stays. */
  forget(member: number): void {
    const known = this.#members.get(member);
    if (known === undefined) return;
    this.#members.delete(member);
    for (const [topic, totals] of known.totals) this.#keep(topic, totals);
    for (const round of this.#rounds.values()) if (round.waiting.delete(member)) round.finish();
  }

  /** Takes what a process says. The answer to a question goes the way that it joined with. */
  hear(member: number, word: PeerWord): void {
    switch (word.kind) {
      case 'gather':
        void this.gather(word.topic, word.question).then((gathered) =>
          this.#members.get(member)?.tell({ kind: 'gathered', id: word.id, gathered }),
        );
        return;
      case 'leave':
        this.#members.get(member)?.totals.set(word.topic, word.totals);
        return;
      case 'answer':
        this.#answered(member, word);
    }
  }

  /** Asks all. Never rejects. */
  gather(topic: string, question?: unknown): Promise<Gathered> {
    return new Promise((resolve) => {
      const id = (this.#ids += 1);
      const end = (): void => {
        clearTimeout(timer);
        this.#rounds.delete(id);
        const { answers, silent, waiting } = round;
        resolve({ answers, silent: [...silent, ...waiting], totals: this.#totals(topic) });
      };
      const round: Round = {
        answers: [],
        silent: [],
        waiting: new Set(),
        finish: () => {
          if (round.waiting.size === 0) end();
        },
      };
      const timer = setTimeout(end, this.#patience);
      const isFull = this.#rounds.size >= mostOpen;
      this.#rounds.set(id, round);
      for (const [number, { tell }] of this.#members) {
        if (!isFull && tell({ kind: 'asked', id, topic, question })) round.waiting.add(number);
        else round.silent.push(number);
      }
      round.finish();
    });
  }

  #answered(member: number, { id, topic, answer }: Extract<PeerWord, { kind: 'answer' }>): void {
    // Also what comes too late is the last that it told.
    if (answer?.totals !== undefined) this.#members.get(member)?.totals.set(topic, answer.totals);
    const round = this.#rounds.get(id);
    if (round === undefined || !round.waiting.delete(member)) return;
    if (answer === undefined) round.silent.push(member);
    else round.answers.push({ from: member, value: answer.value });
    round.finish();
  }

  #totals(topic: string): Totals {
    const sums = new Map(this.#ended.get(topic));
    for (const { totals } of this.#members.values()) add(sums, totals.get(topic));
    return Object.fromEntries(sums);
  }

  #keep(topic: string, totals: Totals): void {
    let sums = this.#ended.get(topic);
    if (sums === undefined) {
      if (this.#ended.size >= mostTopics) return;
      this.#ended.set(topic, (sums = new Map()));
    }
    add(sums, totals, mostTotals);
  }
}

function add(sums: Map<string, number>, totals: Totals | undefined, most = Number.POSITIVE_INFINITY): void {
  for (const [name, total] of Object.entries(totals ?? {})) {
    const sum = sums.get(name);
    if (sum !== undefined || sums.size < most) sums.set(name, (sum ?? 0) + total);
  }
}

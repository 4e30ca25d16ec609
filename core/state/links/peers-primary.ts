/**
 * Request and response messages between the workers of one gateway, through the primary process: a worker's end, and the primary's end with
 * totals of ended workers.
 */
import {
  Answerers,
  type Answerer,
  type Gathered,
  type PeerAnswer,
  type Peers,
  type Totals,
} from './peers.ts';

/** Message of a worker to the primary. */
export type WorkerPeerMessage =
  | { readonly kind: 'gather'; readonly id: number; readonly topic: string; readonly question?: unknown }
  /** `answer` is absent where the worker has none. */
  | { readonly kind: 'answer'; readonly id: number; readonly topic: string; readonly answer?: PeerAnswer }
  | { readonly kind: 'leave'; readonly topic: string; readonly totals: Totals };

/** Message of the primary to a worker. */
export type PrimaryPeerMessage =
  | { readonly kind: 'asked'; readonly id: number; readonly topic: string; readonly question?: unknown }
  | { readonly kind: 'gathered'; readonly id: number; readonly gathered: Gathered };

/** A worker's connection to the primary. */
export interface PeerConnection {
  /** Sends a message. Returns false when the connection is closed. `sent` runs when the message was sent, or cannot be. */
  send(word: WorkerPeerMessage, sent?: () => void): boolean;
  /** Sets the listener for messages. */
  listen(listener: (news: PrimaryPeerMessage) => void): void;
}

/** Time for workers to answer, in milliseconds. */
const patience = 1_000;

/** Maximum time that a worker waits for the primary, in milliseconds. */
const longestWait = 2_500;

/** Maximum number of pending questions. */
const mostOpen = 100;

/** Maximum number of topics, and of totals in each, that are kept for ended processes. Totals beyond them are lost with their process. */
const mostTopics = 20;
const mostTotals = 100_000;

/** The peers of a worker. The primary forwards questions and answers. */
export class WorkerPeers implements Peers {
  readonly #line: PeerConnection;
  readonly #answerers = new Answerers();
  readonly #open = new Map<number, (gathered: Gathered | undefined) => void>();
  #ids = 0;

  constructor(line: PeerConnection) {
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
    const answer = await this.#answerers.respond(topic, question);
    this.#line.send({ kind: 'answer', id, topic, ...(answer === undefined ? {} : { answer }) });
  }
}

/** A worker, as the primary sees it. */
interface Member {
  /** Sends a message to the worker. Returns false when the worker takes none now. */
  readonly send: (news: PrimaryPeerMessage) => boolean;
  /** Its last reported totals, by topic. */
  readonly totals: Map<string, Totals>;
}

interface Round {
  readonly answers: { readonly from: number; readonly value: unknown }[];
  readonly silent: number[];
  readonly waiting: Set<number>;
  readonly finish: () => void;
}

/** Forwards questions to workers, each with a number, and keeps the totals of those that have ended. */
export class PeersServer {
  readonly #patience: number;
  readonly #members = new Map<number, Member>();
  readonly #rounds = new Map<number, Round>();
  readonly #ended = new Map<string, Map<string, number>>();
  #ids = 0;

  /** `wait`: milliseconds for an answer. */
  constructor(wait = patience) {
    this.#patience = wait;
  }

  /** Adds a worker. */
  join(member: number, send: Member['send']): void {
    this.#members.set(member, { send, totals: new Map() });
  }

  /** Removes a worker that has ended: no question waits for it, and its totals are kept. */
  forget(member: number): void {
    const known = this.#members.get(member);
    if (known === undefined) return;
    this.#members.delete(member);
    for (const [topic, totals] of known.totals) this.#keep(topic, totals);
    for (const round of this.#rounds.values()) if (round.waiting.delete(member)) round.finish();
  }

  /** Handles a message of a worker. The result of its question is sent with the function with which it joined. */
  receive(member: number, word: WorkerPeerMessage): void {
    switch (word.kind) {
      case 'gather':
        void this.gather(word.topic, word.question).then((gathered) =>
          this.#members.get(member)?.send({ kind: 'gathered', id: word.id, gathered }),
        );
        return;
      case 'leave':
        this.#members.get(member)?.totals.set(word.topic, word.totals);
        return;
      case 'answer':
        this.#answered(member, word);
    }
  }

  /** Sends a question to all workers and resolves to their answers. Never rejects. */
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
      for (const [number, { send }] of this.#members) {
        if (!isFull && send({ kind: 'asked', id, topic, question })) round.waiting.add(number);
        else round.silent.push(number);
      }
      round.finish();
    });
  }

  #answered(member: number, { id, topic, answer }: Extract<WorkerPeerMessage, { kind: 'answer' }>): void {
    // Also for a late answer, because its totals are the latest.
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

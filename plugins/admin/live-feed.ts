/** Keeps the running calls of one process for the live view, and returns those that have changed or ended since a reader's last request. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { caller, type ApiKey, InFlight } from 'sluice';
import { accountOf, isInScope, type Call } from 'sluice/internal';
import type { CallRecord, KeyOwners, KeyScope } from './core-types.ts';
import { liveCall, type LiveCall } from './schemas/index.ts';

/** Maximum number of calls in one response to a reader. */
const mostCalls = 500;

/** Milliseconds without a reader after which the feed drops its ended calls and the texts by which it finds changes. */
const forgetAfter = 5_000;

const count = z.int().min(0);

/** Position of a reader in a feed: number of the reading, and of calls that had ended. */
const mark = z.object({ at: count, ends: count });

/** Request to the feed of a process. */
export const feedQuestion = z.object({
  /** By feed. */
  read: z.record(z.string(), mark),
  /** True: returns all running calls, also those that have not changed. */
  whole: z.boolean(),
});
type FeedQuestion = z.output<typeof feedQuestion>;

/** Response of a feed: the calls that have changed or ended since the reader's position. */
export const feedPortion = z.object({
  feed: z.string(),
  /** New position of the reader, for the next request. */
  mark,
  running: count,
  calls: z.array(liveCall),
  /** Number of ended calls that were left out, because there were too many. */
  skipped: count,
});
type FeedPortion = z.output<typeof feedPortion>;

/** Running call with the record of its response. */
interface RunningCall {
  readonly call: Call;
  readonly record: CallRecord;
}

/** JSON of a call as it was sent last, and the number of the reading in which it changed. */
interface SentView {
  readonly text: string;
  readonly at: number;
}

/** The calls of this process, for any number of readers, each of which sends its position. Without readers a call costs one entry in a list. */
export class LiveFeed {
  readonly #name = randomUUID();
  readonly #running = new InFlight<RunningCall>();
  #sentViews = new Map<string, SentView>();
  /** Latest ended calls, and the number of all ended calls. */
  #ended: LiveCall[] = [];
  #ends = 0;
  /** Readings so far. */
  #at = 0;
  #readAt = Number.NEGATIVE_INFINITY;

  /** The number of calls that run now. */
  get running(): number {
    return this.#running.size;
  }

  /** Returns the number of calls that run now of the keys of a scope. */
  runningOf(scope: KeyScope): number {
    let found = 0;
    for (const { call } of this.#running.values(this.running))
      if (isInScope(scope, ownersOf(call.get(caller)))) found += 1;
    return found;
  }

  /** Adds a running call. The returned function must be called when the call has ended. */
  add(call: Call): () => void {
    const running = { call, record: accountOf(call).record };
    const node = this.#running.add(running);
    return () => {
      if (this.#running.remove(node)) this.#end(running);
    };
  }

  #end(running: RunningCall): void {
    if (this.#isForgotten()) return;
    this.#sentViews.delete(running.call.id);
    this.#ends += 1;
    this.#ended.push(endOf(running));
    if (this.#ended.length > mostCalls) this.#ended.shift();
  }

  /** Returns what has changed since the reader's position. */
  read({ read, whole }: FeedQuestion): FeedPortion {
    if (this.#isForgotten()) this.#forget();
    this.#readAt = performance.now();
    this.#at += 1;
    // A new reader gets the running calls, and none that ended before.
    const since = read[this.#name] ?? { at: 0, ends: this.#ends };
    const ends = Math.max(0, this.#ends - since.ends);
    const ended = ends === 0 ? [] : this.#ended.slice(-ends);
    const sentViews = new Map<string, SentView>();
    const changed: LiveCall[] = [];
    for (const running of this.#running.values(mostCalls)) {
      const { call } = running;
      const view = viewOf(running);
      const text = JSON.stringify(view);
      const before = this.#sentViews.get(call.id);
      const now = before?.text === text ? before : { text, at: this.#at };
      sentViews.set(call.id, now);
      if (whole || now.at > since.at) changed.push(view);
    }
    this.#sentViews = sentViews;
    return {
      feed: this.#name,
      mark: { at: this.#at, ends: this.#ends },
      running: this.running,
      calls: [...ended, ...changed],
      skipped: ends - ended.length,
    };
  }

  #isForgotten(): boolean {
    return performance.now() - this.#readAt > forgetAfter;
  }

  #forget(): void {
    this.#sentViews = new Map();
    this.#ended = [];
  }
}

function viewOf({ call, record }: RunningCall): LiveCall {
  const key = call.get(caller);
  const { attempt } = record;
  const failed = record.failures(({ channel, failure }) => `${channel}: ${failure}`);
  return {
    id: call.id,
    at: Math.round(performance.timeOrigin + call.startedAt),
    phase: record.firstMs === undefined ? 'waiting' : 'answering',
    ip: call.wire.ip,
    operation: call.operation,
    format: call.format.name,
    stream: call.stream,
    keyId: key?.id,
    keyName: key?.name,
    ...ownersOf(key),
    model: call.askedModel === '' ? undefined : call.askedModel,
    channel: attempt?.channel,
    upstreamModel: attempt?.model,
    upstreamFormat: attempt?.format,
    passThrough: attempt?.passThrough,
    failedAttempts: failed === undefined ? undefined : [...failed],
    firstMs: record.firstMs,
    input: record.usage?.input,
    output: record.usage?.output,
  };
}

/** Ids of the owners of a key. */
function ownersOf(key: ApiKey | undefined): KeyOwners {
  const organisation = key?.owners?.find(({ kind }) => kind === 'organisation')?.id;
  return { team: key?.team, member: key?.member, organisation };
}

function endOf(running: RunningCall): LiveCall {
  const { call, record } = running;
  return {
    ...viewOf(running),
    phase: 'ended',
    ended: record.ended,
    status: record.status,
    code: record.error?.code,
    ms: Math.round(performance.now() - call.startedAt),
  };
}

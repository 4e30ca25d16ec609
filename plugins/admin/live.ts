/**
 * Streams the running calls of all processes as Server-Sent Events, and counts them. While somebody watches, the processes are asked for
 * changes four times a second.
 */
import { PassThrough, type Readable } from 'node:stream';
import type { Observable } from 'rxjs';
import { z } from 'zod';
import {
  GatewayError,
  type GatewayEvent,
  type JsonObject,
  type WorkerAnswer,
  type WorkerAnswers,
  type Workers,
} from 'sluice';
import { sseComment, writeSse } from 'sluice/channel-kit';
import { isInScope, type Call, type Next } from 'sluice/internal';
import type { KeyScope } from './core-types.ts';
import { feedPortion, feedQuestion, LiveFeed } from './live-feed.ts';
import type { LiveCall, LiveFrame } from './schemas/index.ts';

/** Topics of the messages between processes: the changes of calls, and the number of running calls. */
const callsTopic = 'admin/live';
const runningTopic = 'admin/running';

/** Milliseconds between two checks for changes, and between two comments that keep connections alive. */
const lookEveryMs = 250;
const breakSilenceEvery = 15_000;

/** Maximum number of watchers. */
const mostWatching = 20;
/** Maximum numbers of watchers of one user or token, and of one organisation, so that none takes all. */
const mostOf = { actor: 5, organisation: 10 } as const;
/** Maximum numbers of calls in a `snapshot` event, and in a `calls` event. */
const mostShown = 500;
const maxCallsPerFrame = 1_000;

/** Maximum number of bytes that wait for a slow reader. Beyond it the connection is cut, and the page opens a new one. */
const mostWaiting = 1024 * 1024;

const runningQuestion = z.object({
  scope: z
    .object({
      organisation: z.string().exactOptional(),
      member: z.string().exactOptional(),
      teams: z.array(z.string()).exactOptional(),
    })
    .exactOptional(),
});
const runningAnswer = z.object({ running: z.int().min(0) });

/** Actor and organisation by which watchers are counted. Absent for the admin password, which has no limit of its own. */
export interface WatcherOwner {
  readonly actor?: string | undefined;
  readonly organisation?: string | undefined;
}

interface Watcher {
  readonly stream: PassThrough;
  readonly owner: WatcherOwner;
  /** Scope of the calls that are shown; absent for all calls. */
  readonly scope: KeyScope | undefined;
  /** False once its session is over. */
  readonly mayWatch: () => Promise<boolean>;
  /** True until the `snapshot` event was written. */
  isNew: boolean;
}

/** Known state of the calls of one process. */
interface ProcessState {
  readonly feed: string;
  /** Calls that ran at its last response. */
  readonly calls: Map<string, LiveCall>;
  mark: z.output<typeof feedPortion>['mark'];
  running: number;
}

/** The running calls of all processes, and the streams of those who watch them. */
export class LiveCalls {
  readonly #peers: Workers;
  readonly #feed = new LiveFeed();
  readonly #stopAnswering: readonly (() => void)[];
  readonly #watching = new Set<Watcher>();
  readonly #states = new Map<number, ProcessState>();
  #isLooking = false;
  #telling: NodeJS.Timeout | undefined;
  #breaking: NodeJS.Timeout | undefined;

  constructor(peers: Workers) {
    this.#peers = peers;
    this.#stopAnswering = [
      peers.answer(callsTopic, (question): WorkerAnswer => ({
        value: this.#feed.read(feedQuestion.parse(question)),
      })),
      peers.answer(runningTopic, (question): WorkerAnswer => {
        const { scope } = runningQuestion.parse(question ?? {});
        return { value: { running: this.#count(scope) } };
      }),
    ];
  }

  /** Returns the number of calls that run now, in all processes; of the keys of a scope if there is one. */
  async running(scope?: KeyScope): Promise<number> {
    const question: JsonObject = scope === undefined ? {} : { scope: { ...scope } as JsonObject };
    const gathered = await this.#peers.gather(runningTopic, question);
    if (gathered === undefined || gathered.answers.length === 0) return this.#count(scope);
    return gathered.answers.reduce(
      (sum, { value }) => sum + (runningAnswer.safeParse(value).data?.running ?? 0),
      0,
    );
  }

  #count(scope: KeyScope | undefined): number {
    return scope === undefined ? this.#feed.running : this.#feed.runningOf(scope);
  }

  /** Adds a call to the feed of this process until the call ends, and sends it on. */
  follow(call: Call, next: Next): Promise<Observable<GatewayEvent>> {
    call.onEnd(this.#feed.add(call));
    return next(call);
  }

  /**
   * Returns server-sent events about the calls of a scope, or about all calls, until their reader leaves or may no longer watch. Throws 503
   * when too many clients watch.
   */
  watch(scope: KeyScope | undefined, mayWatch: () => Promise<boolean>, owner: WatcherOwner = {}): Readable {
    if (this.#watching.size >= mostWatching)
      throw new GatewayError(
        'server_is_overloaded',
        `At most ${mostWatching} clients can watch at the same time.`,
        {
          retryAfter: 30,
        },
      );
    for (const part of ['actor', 'organisation'] as const)
      if (owner[part] !== undefined && this.#countOf(part, owner[part]) >= mostOf[part])
        throw new GatewayError(
          'rate_limit_exceeded',
          `${part === 'actor' ? 'You already watch' : 'Your organisation already watches'} ${mostOf[part]} live streams. Close one.`,
          { retryAfter: 30 },
        );
    const stream = new PassThrough();
    const watcher: Watcher = { stream, owner, scope, mayWatch, isNew: true };
    this.#watching.add(watcher);
    stream.once('close', () => this.#leave(watcher));
    this.#telling ??= setInterval(() => void this.#look(), lookEveryMs).unref();
    this.#breaking ??= setInterval(() => this.#breakSilence(), breakSilenceEvery).unref();
    void this.#look();
    return stream;
  }

  #countOf(part: keyof WatcherOwner, whose: string): number {
    return [...this.#watching].filter(({ owner }) => owner[part] === whose).length;
  }

  /** Ends all streams. Pages reconnect, to the worker that takes over. */
  letGo(): void {
    for (const watcher of this.#watching) {
      watcher.stream.end();
      this.#leave(watcher);
    }
  }

  /** Ends all streams, and stops answering other processes. */
  close(): void {
    this.letGo();
    for (const stop of this.#stopAnswering) stop();
  }

  /** Requests changes from all processes, once for all watchers. Only one request runs at a time. */
  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const fresh = [...this.#watching].filter(({ isNew }) => isNew);
    const read = Object.fromEntries([...this.#states.values()].map(({ feed, mark }) => [feed, mark]));
    const gathered = await this.#peers.gather(callsTopic, { read, whole: fresh.length > 0 });
    this.#isLooking = false;
    // A process that cannot ask is about to end.
    if (gathered === undefined || this.#watching.size === 0) return;
    this.#broadcast(this.#changes(gathered), fresh);
    if ([...this.#watching].some(({ isNew }) => isNew)) void this.#look();
  }

  #changes({ answers, silent }: WorkerAnswers): LiveFrame {
    const calls: LiveCall[] = [];
    let skipped = 0;
    for (const { from, value } of answers) {
      const { data } = feedPortion.safeParse(value);
      if (data === undefined) continue;
      const known = this.#states.get(from);
      const state = known?.feed === data.feed ? known : { ...data, calls: new Map<string, LiveCall>() };
      this.#states.set(from, state);
      state.mark = data.mark;
      state.running = data.running;
      skipped += data.skipped;
      for (const call of data.calls) {
        calls.push(call);
        state.calls.delete(call.id);
        if (call.phase !== 'ended') state.calls.set(call.id, call);
      }
      for (const id of state.calls.keys()) if (state.calls.size > mostShown) state.calls.delete(id);
    }
    const there = new Set([...answers.map(({ from }) => from), ...silent]);
    for (const [from, state] of this.#states) {
      if (there.has(from)) continue;
      for (const call of state.calls.values()) calls.push(lost(call));
      this.#states.delete(from);
    }
    const running = [...this.#states.values()].reduce((sum, state) => sum + state.running, 0);
    skipped += Math.max(0, calls.length - maxCallsPerFrame);
    return { running, calls: newest(calls, maxCallsPerFrame), ...(skipped === 0 ? {} : { skipped }) };
  }

  #broadcast(frame: LiveFrame, fresh: readonly Watcher[]): void {
    const { running, calls, skipped } = frame;
    const changes = calls.length > 0 || skipped !== undefined ? frameOf('calls', frame) : undefined;
    for (const watcher of this.#watching) {
      if (watcher.isNew) continue;
      const text = watcher.scope === undefined ? changes : this.#changesOf(watcher.scope, frame);
      if (text !== undefined) this.#write(watcher, text);
    }
    if (fresh.length === 0) return;
    const shown = calls.filter(({ phase }) => phase !== 'ended');
    const snapshot = frameOf('snapshot', { running, calls: newest(shown, mostShown) });
    for (const watcher of fresh) {
      watcher.isNew = false;
      const { scope } = watcher;
      this.#write(watcher, scope === undefined ? snapshot : this.#snapshotOf(scope, shown));
    }
  }

  #changesOf(scope: KeyScope, frame: LiveFrame): string | undefined {
    const calls = frame.calls.filter((call) => isInScope(scope, call));
    return calls.length === 0 ? undefined : frameOf('calls', { running: this.#shownOf(scope), calls });
  }

  #snapshotOf(scope: KeyScope, shown: readonly LiveCall[]): string {
    const calls = newest(
      shown.filter((call) => isInScope(scope, call)),
      mostShown,
    );
    return frameOf('snapshot', { running: this.#shownOf(scope), calls });
  }

  /** Returns the number of known calls in a scope. */
  #shownOf(scope: KeyScope): number {
    let count = 0;
    for (const { calls } of this.#states.values())
      for (const call of calls.values()) if (isInScope(scope, call)) count += 1;
    return count;
  }

  #breakSilence(): void {
    for (const watcher of this.#watching) {
      this.#write(watcher, sseComment);
      watcher.mayWatch().then(
        (may) => {
          if (!may) watcher.stream.end();
        },
        () => watcher.stream.destroy(),
      );
    }
  }

  #write({ stream }: Watcher, text: string): void {
    if (stream.writableLength > mostWaiting) stream.destroy();
    else if (stream.writable) stream.write(text);
  }

  #leave(watcher: Watcher): void {
    this.#watching.delete(watcher);
    if (this.#watching.size > 0) return;
    clearInterval(this.#telling);
    clearInterval(this.#breaking);
    this.#telling = undefined;
    this.#breaking = undefined;
    this.#states.clear();
  }
}

function frameOf(event: 'snapshot' | 'calls', frame: LiveFrame): string {
  return writeSse({ event, text: JSON.stringify(frame) });
}

/** Returns the calls that began last. */
function newest(calls: readonly LiveCall[], most: number): LiveCall[] {
  if (calls.length <= most) return [...calls];
  return calls.toSorted((one, other) => one.at - other.at).slice(-most);
}

/** Returns a call as ended with an error, because its process is gone. */
function lost(call: LiveCall): LiveCall {
  return {
    ...call,
    phase: 'ended',
    ended: 'error',
    status: 500,
    code: 'internal_error',
    ms: Math.max(0, Date.now() - call.at),
  };
}

/** The clients: send requests as they are told, check every reply, count, and measure how long it took. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { Pool, type Dispatcher } from 'undici';
import { answering } from './answering.ts';
import type { Wire } from './inputs.ts';
import type { Manner } from './manners.ts';
import { requestOf } from './requests.ts';
import { lastWords, word } from './replies.ts';
import type { InputName } from './sessions.ts';
import { delays, type Delays } from './statistics.ts';

/** One request, sent many times. */
export interface Shot {
  readonly url: string;
  readonly key: string;
  readonly wire: Wire;
  readonly input: InputName;
  readonly model: string;
  readonly stream: boolean;
  /** Deltas of the reply, when it is a stream that ends. */
  readonly deltas?: number;
  /** A whole reply shorter than this is wrong. */
  readonly atLeast?: number;
  /** Style in which it is written and sent, if not the default. */
  readonly manner?: Manner;
  /** Each call has a connection of its own. */
  readonly newConnections?: boolean;
}

/** As many replies as fit in the time, with so many requests open at once. */
export interface ClosedLoad {
  readonly shot: Shot;
  readonly concurrency: number;
  readonly seconds: number;
  /** So many in any case: what a process does beside its calls must not count as theirs where the machine is busy. */
  readonly least?: number;
}

/** Streams that begin evenly over so many milliseconds and are read to their end. */
export interface StreamLoad {
  readonly shot: Shot;
  readonly streams: number;
  readonly spread: number;
}

/** Requests at a rate, whatever becomes of those before. Those that would be more than `most` at once are not sent. */
export interface RateLoad {
  readonly shot: Shot;
  readonly perSecond: number;
  readonly seconds: number;
  readonly most: number;
}

/** Results: replies, their deltas, and the errors of the others. */
export interface Done {
  readonly replies: number;
  readonly deltas: number;
  readonly seconds: number;
  readonly failures: readonly string[];
}

/**
 * How a {@link RateLoad} came out; times in milliseconds, from when a call was due, so that what keeps the clients from sending counts
 * too.
 */
export interface Rated {
  readonly served: number;
  readonly refused: number;
  readonly unsent: number;
  readonly servedAfter: Delays;
  readonly refusedAfter: Delays;
  /** 99th percentile of the delay of the clients' own event loop. */
  readonly clientLag: number;
}

/** Times in milliseconds until the first byte of streams, and of each delta from the provider to the client. */
export interface Timed {
  readonly firstByte: readonly number[];
  readonly chunk: readonly number[];
  readonly failures: readonly string[];
}

const pools = new Map<string, Pool>();

function poolOf({ url, newConnections = false }: Shot): Pool {
  const name = `${url} ${newConnections}`;
  let pool = pools.get(name);
  if (pool === undefined) {
    // Without pipelining undici closes a connection after its call.
    const pipelining = newConnections ? 0 : 1;
    pool = new Pool(url, { headersTimeout: 60_000, bodyTimeout: 60_000, pipelining });
    pools.set(name, pool);
  }
  return pool;
}

/** A status that is not 200. */
class Refused extends Error {}

/** Sends it; `onChunk` sees the reply as it comes. Resolves at the end of the reply, rejects when there is no good one. */
function send(
  shot: Shot,
  onChunk: (chunk: Buffer) => void,
  onController?: (controller: Dispatcher.DispatchController) => void,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let problem = '';
    poolOf(shot).dispatch(
      { ...requestOf(shot), method: 'POST' },
      {
        onRequestStart: (controller) => onController?.(controller),
        onResponseStart(_controller, code) {
          status = code;
        },
        onResponseData(_controller, chunk) {
          if (status === 200) onChunk(chunk);
          else problem += chunk.toString();
        },
        onResponseEnd() {
          if (status === 200) resolve();
          else reject(new Refused(`status ${status}: ${problem.slice(0, 300)}`));
        },
        onResponseError: (_controller, error) => reject(error),
      },
    );
  });
}

/** Texts that a format says again at the end of a stream: of the part, its end, the item, the response. */
const repeated = 4;

function occurrences(text: string): number {
  return text.split(word).length - 1;
}

/** One reply, read and checked: what is wrong with it. */
async function read(shot: Shot): Promise<string | undefined> {
  const { wire, deltas, atLeast = 100 } = shot;
  let length = 0;
  let text = '';
  try {
    await send(shot, (chunk) => {
      length += chunk.length;
      if (deltas !== undefined) text += chunk.toString('latin1');
    });
  } catch (error) {
    return String(error);
  }
  if (deltas === undefined) return length < atLeast ? `a reply of ${length} bytes` : undefined;
  const seen = occurrences(text);
  return seen < deltas || seen > deltas + repeated || !lastWords[wire].test(text.slice(-20_000))
    ? `a stream of ${seen} deltas that ends with ${JSON.stringify(text.slice(-60))}`
    : undefined;
}

async function closed({ shot, concurrency, seconds, least = 0 }: ClosedLoad): Promise<Done> {
  const failures: string[] = [];
  let replies = 0;
  const begin = performance.now();
  const client = async (): Promise<void> => {
    do {
      const problem = await read(shot);
      if (problem === undefined) replies += 1;
      else failures.push(problem);
    } while ((performance.now() < begin + seconds * 1000 || replies < least) && failures.length < 100);
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  return {
    replies,
    deltas: replies * (shot.deltas ?? 0),
    seconds: (performance.now() - begin) / 1000,
    failures,
  };
}

async function streams({ shot, streams: number, spread }: StreamLoad): Promise<Done> {
  const begin = performance.now();
  const problems = await Promise.all(
    Array.from({ length: number }, async (_, index) => {
      await pause((spread * index) / number);
      return read(shot);
    }),
  );
  const failures = problems.filter((problem) => problem !== undefined);
  const replies = number - failures.length;
  return {
    replies,
    deltas: replies * (shot.deltas ?? 0),
    seconds: (performance.now() - begin) / 1000,
    failures,
  };
}

async function rate({ shot, perSecond, seconds, most }: RateLoad): Promise<Rated> {
  const served: number[] = [];
  const refused: number[] = [];
  let unsent = 0;
  const running = new Set<Promise<void>>();
  const lag = monitorEventLoopDelay({ resolution: 1 });
  lag.enable();
  const begin = performance.now();
  for (let started = 0; started < perSecond * seconds;) {
    const due = Math.min(perSecond * seconds, ((performance.now() - begin) / 1000) * perSecond);
    for (; started < due; started += 1) {
      if (running.size >= most) {
        unsent += 1;
        continue;
      }
      const dueAt = begin + (started * 1000) / perSecond;
      const one: Promise<void> = read(shot).then((problem) => {
        (problem === undefined ? served : refused).push(performance.now() - dueAt);
        running.delete(one);
      });
      running.add(one);
    }
    await pause(1);
  }
  await Promise.all(running);
  lag.disable();
  return {
    served: served.length,
    refused: refused.length,
    unsent,
    servedAfter: delays(served),
    refusedAfter: delays(refused),
    clientLag: lag.percentile(99) / 1e6,
  };
}

/** Streams one after the other, whose deltas tell when they were sent. */
async function timed({
  shot,
  streams: number,
}: {
  readonly shot: Shot;
  readonly streams: number;
}): Promise<Timed> {
  const firstByte: number[] = [];
  const chunkDelays: number[] = [];
  const failures: string[] = [];
  const now = (): number => Number(process.hrtime.bigint() / 1000n);
  for (let count = 0; count < number; count += 1) {
    const sent = now();
    let begun = false;
    try {
      await send(shot, (chunk) => {
        const at = now();
        if (!begun) firstByte.push((at - sent) / 1000);
        begun = true;
        for (const [, stamp] of chunk.toString('latin1').matchAll(stampPattern))
          chunkDelays.push((at - Number(stamp)) / 1000);
      });
    } catch (error) {
      failures.push(String(error));
      if (failures.length > 10) break;
    }
  }
  return { firstByte, chunk: chunkDelays, failures };
}

const stampPattern = new RegExp(`${word} (\\d+)`, 'g');

let open: Dispatcher.DispatchController[] = [];
let openDeltas = 0;
let openFailures: string[] = [];
const released = new Error('The streams are closed.');

/** Opens streams that never end, 400 a second, and resolves when each has sent something. */
async function openStreams({
  shot,
  streams: number,
}: {
  readonly shot: Shot;
  readonly streams: number;
}): Promise<void> {
  const first = Array.from({ length: number }, async (_, index) => {
    await pause(2.5 * index);
    await new Promise<void>((begun) => {
      send(
        shot,
        (chunk) => {
          openDeltas += occurrences(chunk.toString('latin1'));
          begun();
        },
        (controller) => open.push(controller),
      ).catch((error: unknown) => {
        if (error !== released) openFailures.push(String(error));
        begun();
      });
    });
  });
  await Promise.all(first);
}

/** Deltas of open streams since this was last asked. */
function counted(): Done {
  const done: Done = { replies: 0, deltas: openDeltas, seconds: 0, failures: openFailures };
  openDeltas = 0;
  openFailures = [];
  return done;
}

function closeStreams(): void {
  for (const controller of open) controller.abort(released);
  open = [];
}

answering({ closed, streams, rate, timed, openStreams, counted, closeStreams }, {});

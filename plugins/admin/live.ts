import type { ServerResponse } from 'node:http';
import type { Observable } from 'rxjs';
import { caller, GatewayError, sseComment, writeSse, type Call, type GatewayEvent, type Next } from '#sluice';
import { recorded, recordOf } from '../_record.ts';
import type { LiveCall, LiveFrame } from './schemas.ts';

/** How often those who watch are told what has changed, and how often a silence is broken, in milliseconds. */
const tellEvery = 250;
const breakSilenceEvery = 15_000;

/** The most who watch at once, and the most calls that they are told of at a time. */
const mostWatching = 20;
const mostCalls = 500;

/** Bytes that may wait for somebody who reads slowly: beyond, the connection is cut, and the page opens a new one. */
const mostWaiting = 1024 * 1024;

interface Watcher {
  readonly response: ServerResponse;
  /** False once its session is over. */
  readonly mayWatch: () => Promise<boolean>;
}

/** The calls that run now, for those who watch them. While nobody does, each call costs a place in a set. */
export class LiveCalls {
  readonly #running = new Set<Call>();
  readonly #watching = new Set<Watcher>();
  /** What was told last of each call. */
  #told = new Map<string, string>();
  #ended: LiveCall[] = [];
  #skipped = 0;
  #telling: NodeJS.Timeout | undefined;
  #breaking: NodeJS.Timeout | undefined;

  /** The number of calls that run now. */
  get running(): number {
    return this.#running.size;
  }

  /** Follows a call to its end. */
  follow(call: Call, next: Next): Promise<Observable<GatewayEvent>> {
    this.#running.add(call);
    return recorded(call, next, () => this.#end(call));
  }

  /** Tells this response of all calls until its client leaves or may watch no more. Throws 503 when too many watch. */
  watch(response: ServerResponse, mayWatch: () => Promise<boolean>): void {
    if (this.#watching.size >= mostWatching)
      throw new GatewayError('server_is_overloaded', `At most ${mostWatching} may watch at once.`, {
        retryAfter: 30,
      });
    const watcher: Watcher = { response, mayWatch };
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'x-accel-buffering': 'no',
    });
    this.#watching.add(watcher);
    response.once('close', () => this.#leave(watcher));
    const calls = this.#newest().map((call) => viewOf(call));
    this.#write(watcher, frameOf('snapshot', { running: this.running, calls }));
    this.#telling ??= setInterval(() => this.#tell(), tellEvery).unref();
    this.#breaking ??= setInterval(() => this.#breakSilence(), breakSilenceEvery).unref();
  }

  /** Lets go of everybody: the page comes back to whoever takes over. */
  close(): void {
    for (const { response } of this.#watching) response.end();
  }

  #end(call: Call): void {
    this.#running.delete(call);
    if (this.#watching.size === 0) return;
    this.#told.delete(call.id);
    if (this.#ended.length < mostCalls) this.#ended.push(endOf(call));
    else this.#skipped += 1;
  }

  /** What has changed since the last time, once for all. */
  #tell(): void {
    const told = new Map<string, string>();
    const calls = this.#ended;
    for (const call of this.#newest()) {
      const view = viewOf(call);
      const text = JSON.stringify(view);
      told.set(call.id, text);
      if (this.#told.get(call.id) !== text) calls.push(view);
    }
    this.#told = told;
    this.#ended = [];
    const skipped = this.#skipped;
    this.#skipped = 0;
    if (calls.length === 0 && skipped === 0) return;
    const frame = frameOf('calls', { running: this.running, calls, ...(skipped === 0 ? {} : { skipped }) });
    for (const watcher of this.#watching) this.#write(watcher, frame);
  }

  #newest(): readonly Call[] {
    return this.#running.size <= mostCalls ? [...this.#running] : [...this.#running].slice(-mostCalls);
  }

  #breakSilence(): void {
    for (const watcher of this.#watching) {
      this.#write(watcher, sseComment);
      watcher.mayWatch().then(
        (may) => {
          if (!may) watcher.response.end();
        },
        () => watcher.response.destroy(),
      );
    }
  }

  #write({ response }: Watcher, text: string): void {
    if (response.writableLength > mostWaiting) response.destroy();
    else if (response.writable) response.write(text);
  }

  #leave(watcher: Watcher): void {
    this.#watching.delete(watcher);
    if (this.#watching.size > 0) return;
    clearInterval(this.#telling);
    clearInterval(this.#breaking);
    this.#telling = undefined;
    this.#breaking = undefined;
    this.#told = new Map();
    this.#ended = [];
    this.#skipped = 0;
  }
}

function frameOf(event: 'snapshot' | 'calls', frame: LiveFrame): string {
  return writeSse({ event, text: JSON.stringify(frame) });
}

function viewOf(call: Call): LiveCall {
  const record = recordOf(call);
  const key = call.get(caller);
  const attempt = record?.attempt;
  const failed = record?.failures(({ channel, failure }) => `${channel}: ${failure}`);
  return {
    id: call.id,
    at: Math.round(performance.timeOrigin + call.startedAt),
    phase: record?.firstMs === undefined ? 'waiting' : 'answering',
    ip: call.wire.ip,
    operation: call.operation,
    format: call.format.name,
    stream: call.stream,
    keyId: key?.id,
    keyName: key?.name,
    model: call.askedModel === '' ? undefined : call.askedModel,
    channel: attempt?.channel,
    upstreamModel: attempt?.model,
    upstreamFormat: attempt?.format,
    passThrough: attempt?.passThrough,
    failedAttempts: failed === undefined ? undefined : [...failed],
    firstMs: record?.firstMs,
    input: record?.usage?.input,
    output: record?.usage?.output,
  };
}

function endOf(call: Call): LiveCall {
  const record = recordOf(call);
  return {
    ...viewOf(call),
    phase: 'ended',
    ended: record?.ended ?? 'left',
    status: record?.status ?? 499,
    code: record?.error?.code,
    ms: Math.round(performance.now() - call.startedAt),
  };
}

/**
 * Sends response bodies of the demo channel with backpressure, and with the faults that a request asks for: delays, cuts, errors and
 * malformed data.
 */
import type { Subscriber } from 'rxjs';
import { GatewayError, type GatewayEvent, type JsonObject, type Upstream, type Call } from 'sluice';
import { writeSse, type Codec, type StreamEncoder, type WireFrame, ExactBytes } from 'sluice/channel-kit';
import type { Switches } from './switches.ts';

/** Step in sending a body. */
type Step = { readonly bytes: Buffer } | { readonly wait: number } | { readonly fail: GatewayError };

/** Maximum number of bytes that are sent before other callers run. */
const burst = 64 * 1024;

const cut = new GatewayError(
  'upstream_cut',
  'The upstream closed the connection before the response was complete.',
  { origin: 'upstream' },
);

/** Returns the demo's own failure, as it would stand in an error body. */
export function overloaded(): GatewayError {
  return new GatewayError('server_is_overloaded', 'The demo is overloaded, as you asked.');
}

/** Returns a reply whose body is sent as fast as `call.gate` allows, and no further than its subscriber wants it. */
export function reply(
  call: Call,
  status: number,
  headers: Upstream['headers'],
  steps: Iterable<Step>,
  pace = 0,
): Upstream {
  const bytes = new ExactBytes((subscriber) => {
    const clock = new Clock(call);
    void send(call, subscriber, steps, pace, clock);
    return () => clock.stop();
  });
  return { status, headers, bytes };
}

/** Yields a small whole body. */
export function* body(text: string): Generator<Step> {
  yield { bytes: Buffer.from(text) };
}

async function send(
  call: Call,
  subscriber: Subscriber<Buffer>,
  steps: Iterable<Step>,
  pace: number,
  clock: Clock,
): Promise<void> {
  try {
    // Yields first, because no provider responds before the caller can listen.
    await clock.yieldToOthers();
    let sent = 0;
    /* oxlint-disable no-await-in-loop -- a body is sent in order, and waits where its reader does */
    for (const step of steps) {
      if ('fail' in step) throw step.fail;
      if ('wait' in step) await clock.wait(step.wait);
      else {
        while (call.gate.closed && !subscriber.closed) await call.gate.opened();
        if (subscriber.closed) return;
        subscriber.next(step.bytes);
        sent += step.bytes.length;
        if (pace > 0) await clock.wait(pace);
        else if (sent > burst) {
          sent = 0;
          await clock.yieldToOthers();
        }
      }
      if (subscriber.closed) return;
    }
    /* oxlint-enable no-await-in-loop */
    subscriber.complete();
  } catch (error) {
    subscriber.error(error);
  }
}

/** Waits that end at once when nobody listens any more. */
export class Clock {
  #timer: NodeJS.Timeout | undefined;
  #wake: (() => void) | undefined;
  #stopped = false;
  readonly #forget: () => void;

  constructor(call: Call) {
    this.#forget = call.onEnd(() => this.stop());
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  wait(milliseconds: number): Promise<void> {
    if (this.#stopped || milliseconds <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
      this.#timer = setTimeout(resolve, Math.min(milliseconds, 2 ** 31 - 1));
    });
  }

  /** Yields to other callers. */
  yieldToOthers(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#forget();
    clearTimeout(this.#timer);
    this.#wake?.();
  }
}

/** Returns the frames of a streamed response, with the requested faults. */
export function* streamSteps(
  events: Iterable<GatewayEvent>,
  encoder: StreamEncoder,
  switches: Switches,
  format: string,
): Generator<Step> {
  const breaks = Math.min(switches['200-error'] ? 0 : Infinity, switches['error-after'] ?? Infinity);
  const cuts = switches['cut-after'] ?? Infinity;
  const ends = switches['end-after'] ?? Infinity;
  if (switches['slow-first'] !== undefined) yield { wait: switches['slow-first'] };
  let count = 0;
  for (const frame of framesOf(events, encoder)) {
    if (count >= breaks) {
      for (const last of encoder.error(overloaded())) yield { bytes: Buffer.from(writeSse(last)) };
      return;
    }
    const bytes = Buffer.from(writeSse(frame));
    if (count >= cuts) {
      yield { bytes: bytes.subarray(0, bytes.length >> 1) };
      yield { fail: cut };
    }
    if (count >= ends) return;
    yield { bytes };
    count += 1;
    // After the opening frames, so that the response has content before the fault.
    if (count === 4) {
      if (switches.garbage) yield { bytes: Buffer.from('data: {"this is": not JSON\n\n') };
      if (switches.silence !== undefined) yield { wait: switches.silence };
    }
    if (count > 1) continue;
    if (switches['unknown-event']) yield { bytes: Buffer.from(writeSse(unknownFrame(format))) };
  }
}

function* framesOf(events: Iterable<GatewayEvent>, encoder: StreamEncoder): Generator<WireFrame> {
  for (const event of events) yield* encoder.event(event);
  yield* encoder.end();
}

/** Returns a frame that no version of the format knows. */
function unknownFrame(format: string): WireFrame {
  if (format === 'messages')
    return { event: 'demo_unknown', json: { type: 'demo_unknown', note: 'from the demo' } };
  if (format === 'generate-content') return { json: { demoUnknown: { note: 'from the demo' } } };
  if (format === 'converse') return { event: 'demoUnknown', json: { note: 'from the demo' } };
  if (format === 'responses')
    return { event: 'response.demo_unknown', json: { type: 'response.demo_unknown', note: 'from the demo' } };
  return { json: { object: 'demo.unknown', choices: [], demo_unknown: { note: 'from the demo' } } };
}

/** Returns the body of a response that is not streamed, with the requested faults. */
export function* wholeSteps(document: JsonObject, switches: Switches): Generator<Step> {
  if (switches['slow-first'] !== undefined) yield { wait: switches['slow-first'] };
  const known = switches['unknown-event']
    ? { ...document, demo_unknown: { note: 'from the demo' } }
    : document;
  const bytes = switches.garbage ? Buffer.from('{"this is": not JSON') : Buffer.from(JSON.stringify(known));
  const half = bytes.length >> 1;
  if (switches.silence !== undefined) {
    yield { bytes: bytes.subarray(0, half) };
    yield { wait: switches.silence };
  }
  const from = switches.silence === undefined ? 0 : half;
  const cutShort = switches['cut-after'] !== undefined || switches['end-after'] !== undefined;
  const until = cutShort ? half : bytes.length;
  for (let at = from; at < until; at += burst)
    yield { bytes: bytes.subarray(at, Math.min(at + burst, until)) };
  if (switches['cut-after'] !== undefined) yield { fail: cut };
}

/** Gathers the events into the format's whole reply. */
export function wholeReply(
  events: Iterable<GatewayEvent>,
  encoder: ReturnType<Codec['encodeWhole']>,
): JsonObject {
  for (const event of events) encoder.event(event);
  return encoder.end();
}

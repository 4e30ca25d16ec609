/** Server-Sent Events: cuts a byte stream at blank lines, within a limit on the size of one event, and parses and writes events. */
import type { Frame, WireFrame } from '../../sdk/format.ts';
import { HeldBytes } from '../../model/held-bytes.ts';
import { unusableResponse } from './upstream-error/index.ts';

/** Largest frame that is held while its end is awaited, in bytes. Image and audio events reach tens of megabytes. */
export const frameLimit = 64 * 1024 * 1024;

const newlines = '\n\n';
const carriageNewline = '\n\r\n';
const carriages = '\r\r';

/** Returns the end of the last blank line in `bytes`, or -1. */
function lastBoundary(bytes: Buffer): number {
  // Nearly every read ends with one.
  if (bytes.length > 1 && bytes[bytes.length - 1] === 0x0a && bytes[bytes.length - 2] === 0x0a)
    return bytes.length;
  const plain = bytes.lastIndexOf(newlines);
  let end = plain < 0 ? -1 : plain + 2;
  if (end === bytes.length) return end;
  const mixed = bytes.lastIndexOf(carriageNewline);
  if (mixed >= 0) end = Math.max(end, mixed + 3);
  const old = bytes.lastIndexOf(carriages);
  if (old >= 0) end = Math.max(end, old + 2);
  return end;
}

/**
 * Cuts a byte stream at blank lines: `push` returns whole events only, byte for byte, for `parseSse`. Throws GatewayError for an event of
 * more than 64 MiB.
 *
 * @example
 * const cutter = new SseCutter();
 * const frames = concat(
 *   bytes.pipe(map((chunk) => cutter.push(chunk))),
 *   defer(() => of(cutter.end())), // the last event may come without its blank line
 * ).pipe(concatMap((run) => parseSse(run ?? '')));
 */
export class SseCutter {
  readonly #held = new HeldBytes();
  /** Last bytes of earlier reads, because a blank line may begin in them. */
  #seam: Buffer | undefined;

  /** Returns the whole frames up to the last blank line, or undefined when none is complete yet. Throws when one frame outgrows `frameLimit`. */
  push(chunk: Buffer): Buffer | undefined {
    const cut = this.#cutIn(chunk);
    if (cut <= 0) {
      this.#hold(chunk);
      return undefined;
    }
    const head = cut === chunk.length ? chunk : chunk.subarray(0, cut);
    let whole = head;
    if (this.#held.length > 0) {
      this.#held.push(head);
      whole = this.end() ?? head;
    }
    if (cut < chunk.length) this.#hold(chunk.subarray(cut));
    return whole;
  }

  /** Returns the rest at the end of the stream: a last frame without its blank line, or undefined. */
  end(): Buffer | undefined {
    this.#seam = undefined;
    return this.#held.length === 0 ? undefined : this.#held.take();
  }

  /** Returns the position in the chunk after its last blank line, which may begin in earlier bytes; 0 or less if there is none. */
  #cutIn(chunk: Buffer): number {
    const cut = lastBoundary(chunk);
    if (cut > 0 || this.#seam === undefined) return cut;
    return lastBoundary(Buffer.concat([this.#seam, chunk.subarray(0, 2)])) - this.#seam.length;
  }

  #hold(chunk: Buffer): void {
    this.#held.push(chunk);
    if (this.#held.length > frameLimit) throw unusableResponse('sent an event that is too large');
    const tail = this.#seam === undefined || chunk.length > 2 ? chunk : Buffer.concat([this.#seam, chunk]);
    this.#seam = tail.subarray(-3);
  }
}

const blankLines = [newlines, carriageNewline, carriages];

/**
 * Returns the frames in a run that {@link SseCutter} gave, as bytes: each with the blank lines that end it.
 *
 * @example
 * for (const frame of splitSse(run)) write(frame);
 */
export function splitSse(run: Buffer): Buffer[] {
  const first = run.indexOf(newlines);
  // Nearly every run is one frame.
  if (first === run.length - 2 && !run.includes(0x0d)) return [run];
  const frames: Buffer[] = [];
  // Next position of each kind of line end. Searched again only after it was passed, so that each byte is read at most a few times.
  const next = blankLines.map((line) => run.indexOf(line));
  let start = 0;
  while (start < run.length) {
    let stop = run.length;
    for (const [index, line] of blankLines.entries()) {
      let at = next[index] ?? -1;
      if (at >= 0 && at < start) next[index] = at = run.indexOf(line, start);
      if (at >= 0) stop = Math.min(stop, at + line.length);
    }
    while (run[stop] === 0x0a || run[stop] === 0x0d) stop += 1;
    frames.push(start === 0 && stop === run.length ? run : run.subarray(start, stop));
    start = stop;
  }
  return frames;
}

/**
 * Parses whole server-sent events. Comments, `id:` and `retry:` are passed over; an event without data is dropped.
 *
 * @example
 * const frames = parseSse('event: ping\ndata: {}\n\n'); // [{ event: 'ping', data: '{}' }]
 */
export function parseSse(run: Buffer | string): Frame[] {
  let text = typeof run === 'string' ? run : run.toString('utf8');
  if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
  if (text.includes('\r')) text = text.replaceAll(/\r\n?/g, '\n');
  const frames: Frame[] = [];
  let event: string | undefined;
  let data: string | undefined;
  let start = 0;
  while (start <= text.length) {
    let stop = text.indexOf('\n', start);
    if (stop < 0) stop = text.length;
    if (stop === start) {
      if (data !== undefined) frames.push(event === undefined ? { data } : { event, data });
      event = undefined;
      data = undefined;
    } else if (text.startsWith('data:', start)) {
      const from = text.charCodeAt(start + 5) === 32 ? start + 6 : start + 5;
      const line = text.slice(from, stop);
      data = data === undefined ? line : `${data}\n${line}`;
    } else if (text.startsWith('event:', start)) {
      const from = text.charCodeAt(start + 6) === 32 ? start + 7 : start + 6;
      event = text.slice(from, stop);
    } else if (stop - start === 4 && text.startsWith('data', start)) {
      data = data === undefined ? '' : `${data}\n`;
    }
    start = stop + 1;
  }
  if (data !== undefined) frames.push(event === undefined ? { data } : { event, data });
  return frames;
}

/**
 * Returns one frame as server-sent event. JSON stands on one line.
 *
 * @example
 * const bytes = Buffer.from(writeSse({ event: 'done', json: { ok: true } }));
 */
export function writeSse(frame: WireFrame): string {
  const data = 'text' in frame ? frame.text : JSON.stringify(frame.json);
  return frame.event === undefined ? `data: ${data}\n\n` : `event: ${frame.event}\ndata: ${data}\n\n`;
}

/**
 * A comment of server-sent events: keeps a stream open whose clients tolerate one.
 *
 * @example
 * const timer = setInterval(() => stream.write(sseComment), 15_000);
 */
export const sseComment = ': ping\n\n';

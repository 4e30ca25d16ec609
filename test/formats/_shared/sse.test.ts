/* oxlint-disable vitest/no-conditional-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { frameLimit, parseSse, splitSse, SseCutter, writeSse } from '../../../core/formats/_shared/sse.ts';
import { tries } from '../../support/tries.ts';

const seed = 20_261_120;

/** Parses a whole stream as the HTML standard defines it: lines first, then events. */
function oracle(text: string): { event?: string; data: string }[] {
  const frames: { event?: string; data: string }[] = [];
  let event: string | undefined;
  let data: string[] = [];
  const lines = text.replace(/^\ufeff/, '').split(/\r\n|\r|\n/);
  for (const line of [...lines, '']) {
    if (line === '') {
      if (data.length > 0)
        frames.push(event === undefined ? { data: data.join('\n') } : { event, data: data.join('\n') });
      event = undefined;
      data = [];
      continue;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') data.push(value);
    if (name === 'event' && colon >= 0) event = value;
  }
  return frames;
}

/** Pushes the pieces through a cutter and parses what comes out, run by run. */
function readPieces(pieces: readonly Buffer[]): { frames: ReturnType<typeof parseSse>; bytes: Buffer } {
  const cutter = new SseCutter();
  const runs: Buffer[] = [];
  for (const piece of pieces) {
    const run = cutter.push(piece);
    if (run !== undefined) runs.push(run);
  }
  const rest = cutter.end();
  if (rest !== undefined) runs.push(rest);
  return { frames: runs.flatMap((run) => parseSse(run)), bytes: Buffer.concat(runs) };
}

const torture = [
  '\ufeffdata: {"text":"grüße 😀 終"}',
  '',
  ': a comment',
  '',
  'event: message_start',
  'data:{"no":"space"}',
  '',
  'data: first line',
  'event: late name',
  'data: second line',
  'id: 7',
  'retry: 100',
  '',
  'data',
  '',
  'event: nothing to say',
  '',
  'data:  two spaces',
  '',
  'data: [DONE]',
  '',
  '',
].join('\n');

const lineEnds = { LF: '\n', CRLF: '\r\n', CR: '\r' } as const;

describe.each(Object.entries(lineEnds))('a stream with %s line ends', (_name, lineEnd) => {
  const bytes = Buffer.from(torture.replaceAll('\n', lineEnd));
  const expected = oracle(torture);

  test('reads the same wherever the network cuts it in two', () => {
    expect(expected.map(({ data }) => data)).toEqual([
      '{"text":"grüße 😀 終"}',
      '{"no":"space"}',
      'first line\nsecond line',
      '',
      ' two spaces',
      '[DONE]',
    ]);
    for (let at = 0; at <= bytes.length; at += 1) {
      const { frames, bytes: out } = readPieces([bytes.subarray(0, at), bytes.subarray(at)]);
      expect(frames, `cut at byte ${at}`).toEqual(expected);
      expect(out.equals(bytes), `cut at byte ${at}`).toBe(true);
    }
  });

  test('reads the same in three pieces, cut inside every seam', () => {
    for (let at = 0; at <= bytes.length - 1; at += 1) {
      const pieces = [bytes.subarray(0, at), bytes.subarray(at, at + 1), bytes.subarray(at + 1)];
      expect(readPieces(pieces).frames, `a single byte at ${at}`).toEqual(expected);
    }
  });

  test('gives every event as soon as its blank line is there, also when bytes come one by one', () => {
    const cutter = new SseCutter();
    const got: string[] = [];
    const blank = Buffer.from(lineEnd + lineEnd);
    let seen = Buffer.alloc(0);
    let boundaries = 0;
    for (const byte of bytes) {
      const one = Buffer.from([byte]);
      seen = Buffer.concat([seen, one]);
      const run = cutter.push(one);
      if (seen.subarray(-blank.length).equals(blank)) {
        boundaries += 1;
        expect(run, `after ${JSON.stringify(seen.toString())}`).toBeDefined();
      }
      if (run !== undefined) got.push(...parseSse(run).map(({ data }) => data));
    }
    expect(boundaries).toBeGreaterThan(6);
    expect(got).toEqual(expected.map(({ data }) => data));
    expect(cutter.end()).toBeUndefined();
  });
});

test('random streams in random pieces read as the standard says, and no byte is lost', () => {
  const line = fc.oneof(
    fc.constantFrom('data: x', 'data:', 'data', 'event: e', 'event:', ': c', 'id: 1', 'retry: 2', '', '', ''),
    fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => `data: ${text.replaceAll(/[\r\n]/g, '')}`),
  );
  const stream = fc
    .array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 30 })
    .map((lines) => lines.map(([text, end]) => text + end).join(''));
  fc.assert(
    fc.property(stream, fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 200 }), (text, sizes) => {
      const bytes = Buffer.from(text);
      const pieces: Buffer[] = [];
      let at = 0;
      for (const size of sizes) {
        pieces.push(bytes.subarray(at, at + size));
        at += size;
      }
      pieces.push(bytes.subarray(at));
      const { frames, bytes: out } = readPieces(pieces);
      expect(frames).toEqual(oracle(text));
      expect(out.equals(bytes)).toBe(true);
    }),
    { seed, numRuns: tries(2000) },
  );
});

test('the events of a run are the same one by one, and hold every byte of it', () => {
  const line = fc.constantFrom('data: a', 'data', 'event: e', ': c', 'id: 1', '', '', 'data: ü😀');
  const run = fc.array(fc.tuple(line, fc.constantFrom('\n', '\n', '\r\n', '\r')), { maxLength: 40 });
  fc.assert(
    fc.property(run, (lines) => {
      const bytes = Buffer.from(`${lines.flat().join('')}\n\n`);
      const events = splitSse(bytes);
      expect(Buffer.concat(events).equals(bytes)).toBe(true);
      expect(events.flatMap((event) => parseSse(event))).toEqual(parseSse(bytes));
    }),
    { seed, numRuns: tries(2000) },
  );
});

test('a cut stream leaves its unfinished event to be judged', () => {
  const cutter = new SseCutter();
  expect(cutter.push(Buffer.from('data: one\n\ndata: tw'))?.toString()).toBe('data: one\n\n');
  expect(cutter.end()?.toString()).toBe('data: tw');
  expect(cutter.end()).toBeUndefined();
});

test('an event of 40 MB in small pieces passes, and quickly enough to notice nothing', () => {
  const cutter = new SseCutter();
  const piece = Buffer.alloc(64 * 1024, 'x');
  cutter.push(Buffer.from('data: '));
  for (let count = 0; count < 640; count += 1) expect(cutter.push(piece)).toBeUndefined();
  const run = cutter.push(Buffer.from('\n\n'));
  expect(run?.length).toBe(640 * piece.length + 8);
});

test('an event that never ends is refused instead of filling the memory', () => {
  const cutter = new SseCutter();
  const piece = Buffer.alloc(1024 * 1024, 'x');
  let pushed = 0;
  expect(() => {
    for (;;) {
      cutter.push(piece);
      pushed += piece.length;
    }
  }).toThrow('The upstream sent an event that is too large.');
  expect(pushed).toBeLessThanOrEqual(frameLimit);
});

test('what is written is what is read', () => {
  fc.assert(
    fc.property(
      fc.option(fc.constantFrom('message_start', 'error'), { nil: undefined }),
      fc.jsonValue(),
      (event, value) => {
        const json = { value } as never;
        const text = writeSse(event === undefined ? { json } : { event, json });
        expect(text.split('\n').length, 'JSON stands on one line').toBe(event === undefined ? 3 : 4);
        expect(parseSse(text)).toEqual([
          event === undefined
            ? { data: JSON.stringify({ value }) }
            : { event, data: JSON.stringify({ value }) },
        ]);
      },
    ),
    { seed, numRuns: tries(300) },
  );
});

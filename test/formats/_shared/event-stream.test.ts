import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  frameAsSse,
  EventStreamCutter,
  passEventStream,
  writeEventStream,
} from '../../../core/formats/_shared/event-stream.ts';
import { parseSse } from '../../../core/formats/_shared/sse.ts';
import type { Frame } from '../../../core/sdk/format.ts';
import { tries } from '../../support/tries.ts';

/** The published vectors of the framing, in hexadecimal digits. Headers that are no text, and unnamed events, are read over. */
const sound: Readonly<Record<string, string>> = {
  'an empty message': '000000100000000005c248eb7d98c8ff',
  'a header that is a number':
    '0000002b0000000e348bec7b086576656e742d6964040000a00c7b27666f6f273a27626172277dd3890285',
  'a payload without headers': '0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936',
  'a payload and one header':
    '0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1',
};
const corrupted: Readonly<Record<string, string>> = {
  'a changed header':
    '0000003d0000002007fd83960c636f6e74656e742b747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1',
  'a changed length of the headers':
    '0000003d0000012007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1',
  'a changed length': '0100001d00000000fd528c5a7b27666f6f273a27626172277dc3653936',
  'a changed payload': '0000001d00000000fd528c5a7b27666f6f273a276261722774c3653936',
};

describe('the published vectors', () => {
  test.each(Object.entries(sound))('%s is read', (_name, hex) => {
    const [frame, ...more] = new EventStreamCutter().push(Buffer.from(hex, 'hex'));
    expect(more).toEqual([]);
    expect(frame?.data).toBe(hex.length > 40 ? "{'foo':'bar'}" : '');
  });

  test.each(Object.entries(corrupted))('%s is refused', (_name, hex) => {
    expect(() => new EventStreamCutter().push(Buffer.from(hex, 'hex'))).toThrow(
      /event stream with (a wrong checksum|impossible lengths)/,
    );
  });
});

const frames = fc.array(
  fc.record({
    event: fc.constantFrom('messageStart', 'contentBlockDelta', 'metadata'),
    json: fc.dictionary(fc.string({ maxLength: 4 }), fc.oneof(fc.string(), fc.integer()), { maxKeys: 3 }),
  }),
  { maxLength: 5 },
);

test('what was written is read again, however it is cut', () => {
  fc.assert(
    fc.property(frames, fc.integer({ min: 1, max: 40 }), (written, length) => {
      const bytes = Buffer.concat(written.map((frame) => writeEventStream(frame)));
      const cutter = new EventStreamCutter();
      const read: Frame[] = [];
      for (let at = 0; at < bytes.length; at += length)
        read.push(...cutter.push(bytes.subarray(at, at + length)));
      expect(cutter.unfinished).toBe(false);
      expect(read).toEqual(written.map(({ event, json }) => ({ event, data: JSON.stringify(json) })));
      expect(Buffer.concat(read.map(passEventStream))).toEqual(bytes);
      expect(parseSse(Buffer.concat(read.map(frameAsSse)))).toEqual(read);
    }),
    { numRuns: tries(200) },
  );
});

test('a changed bit is noticed wherever it stands', () => {
  const bytes = writeEventStream({ event: 'messageStart', json: { role: 'assistant' } });
  fc.assert(
    fc.property(fc.nat({ max: bytes.length - 1 }), fc.integer({ min: 0, max: 7 }), (at, bit) => {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ (1 << bit);
      const cutter = new EventStreamCutter();
      expect(() => {
        if (cutter.push(changed).length > 0 || !cutter.unfinished) return;
        throw new Error('a length that only more bytes could belie');
      }).toThrow(/checksum|lengths|only more bytes/);
    }),
    { numRuns: tries(200) },
  );
});

test('a stream that ends inside a message is known to be unfinished', () => {
  const bytes = writeEventStream({ event: 'messageStart', json: { role: 'assistant' } });
  const cutter = new EventStreamCutter();
  expect(cutter.push(bytes.subarray(0, bytes.length - 1))).toEqual([]);
  expect(cutter.unfinished).toBe(true);
});

test('an exception is a frame that tells of an error, there and back', () => {
  const json = { message: 'Too many requests.', __type: 'throttlingException' };
  const bytes = writeEventStream({ event: 'error', json });
  expect(bytes.includes(':exception-type')).toBe(true);
  const [frame] = new EventStreamCutter().push(bytes);
  expect(frame?.event).toBe('error');
  expect(JSON.parse(frame?.data ?? '')).toEqual(json);
});

test('JSON on several lines is one line of an event', () => {
  const sse = frameAsSse({ event: 'metadata', data: '{\r\n  "usage": {}\n}' });
  expect(sse.toString().split('\n')).toHaveLength(4);
  expect(parseSse(sse)).toEqual([{ event: 'metadata', data: '{   "usage": {} }' }]);
});

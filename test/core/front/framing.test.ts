import { describe, expect, test } from 'vitest';
import { EventStreamCutter } from '../../../core/formats/_shared/event-stream.ts';
import { parseSse, sseComment } from '../../../core/formats/_shared/sse.ts';
import { contentTypes, framerOf, joined } from '../../../core/front/framing.ts';
import type { Framing, WireFrame } from '../../../core/sdk/format.ts';

const frames: readonly WireFrame[] = [
  { event: 'one', json: { n: 1 } },
  { json: { n: 2 } },
  { text: '[DONE]' },
];
const passed = Buffer.from('event: one\ndata: {"n":1}\n\n: comment\n\ndata: {"n":\ndata: 2}\n\n');

/** Everything that a framer makes of frames, one call for each, and of the end. */
function whole(framing: Framing): string {
  const framer = framerOf(framing);
  return [...frames.map((frame) => framer.frames([frame])), framer.end()].map(String).join('');
}

/** The same for a provider's bytes. */
function passedWhole(framing: Framing): string {
  const framer = framerOf(framing);
  return [framer.passed(passed), framer.end()].map(String).join('');
}

describe('the frames of a stream', () => {
  test('as server-sent events have their names, and a provider’s bytes are unchanged', () => {
    const text = whole('sse');
    expect(parseSse(text)).toEqual([
      { event: 'one', data: '{"n":1}' },
      { data: '{"n":2}' },
      { data: '[DONE]' },
    ]);
    expect(framerOf('sse').passed(passed)).toBe(passed);
    expect(passedWhole('sse')).toBe(passed.toString());
  });

  test('as lines of JSON are one line each', () => {
    const lines = whole('ndjson').split('\n');
    expect(lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as unknown)).toEqual([
      { n: 1 },
      { n: 2 },
    ]);
    expect(passedWhole('ndjson')).toBe('{"n":1}\n{"n": 2}\n');
  });

  test('as an array are one JSON document, also where there are none', () => {
    expect(JSON.parse(whole('json-array'))).toEqual([{ n: 1 }, { n: 2 }]);
    expect(JSON.parse(passedWhole('json-array'))).toEqual([{ n: 1 }, { n: 2 }]);
    expect(framerOf('json-array').end()).toBe('[]');
    expect(framerOf('none').end()).toBe('');
  });

  test('as a binary event stream are messages with a name and a checksum, passed ones too', () => {
    const framer = framerOf('event-stream');
    const bytes = Buffer.concat([
      framer.frames([{ event: 'one', json: { n: 1 } }]) as Buffer,
      framer.passed(Buffer.from('event: two\ndata: {"n":2}\n\n')) as Buffer,
    ]);
    expect(new EventStreamCutter().push(bytes)).toMatchObject([
      { event: 'one', data: '{"n":1}' },
      { event: 'two', data: '{"n":2}' },
    ]);
    expect([framer.end(), framer.silence(true), framer.silence(false)]).toEqual(['', '', '']);
  });

  test.each(['sse', 'ndjson', 'json-array', 'event-stream', 'none'] as const)(
    'in %s are told by their media type, and none of them is nothing',
    (framing) => {
      expect(framerOf(framing).contentType).toBe(contentTypes[framing]);
      expect(framerOf(framing).frames([])).toHaveLength(0);
      expect(framerOf(framing).passed(Buffer.alloc(0))).toHaveLength(0);
    },
  );

  test('are kept alive by what their readers pass over, where there is such a thing', () => {
    expect(framerOf('sse').silence(true)).toBe(sseComment);
    expect(framerOf('sse').silence(false)).toBe('');
    expect(framerOf('ndjson').silence(false)).toBe('\n');
    expect(framerOf('json-array').silence(true)).toBe('');
  });
});

test('texts and bytes are joined in order, and nothing is added to either', () => {
  expect(joined('a', 'b')).toBe('ab');
  expect(joined('a', '')).toBe('a');
  expect(joined('', 'b')).toBe('b');
  expect(joined(Buffer.from('a'), 'b')).toEqual(Buffer.from('ab'));
  expect(joined('ä', Buffer.from([0xff]))).toEqual(Buffer.from([0xc3, 0xa4, 0xff]));
  expect(joined(Buffer.alloc(0), 'b')).toBe('b');
});

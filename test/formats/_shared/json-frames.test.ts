import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonCutter, writeNdjson } from '../../../core/formats/_shared/json-frames.ts';
import { frameLimit } from '../../../core/formats/_shared/sse.ts';
import { tries } from '../../support/tries.ts';

const seed = 20_261_120;

function readPieces(pieces: readonly Buffer[]): { values: unknown[]; unfinished: boolean } {
  const cutter = new JsonCutter();
  const values = pieces.flatMap((piece) => cutter.push(piece).map(({ data }) => JSON.parse(data) as unknown));
  return { values, unfinished: cutter.unfinished };
}

const objects = [
  { text: 'braces { } in } a { string', quote: '"', slash: '\\', both: '\\"', end: 'x\\' },
  { deep: { a: [{ b: {} }, { c: [[]] }] }, emoji: '😀', control: '\u0000\n\r\t' },
  {},
  { '}{': '"}' },
];

const framings = {
  'lines of JSON': objects.map((value) => `${JSON.stringify(value)}\n`).join(''),
  'lines with CRLF and empty lines': objects.map((value) => `${JSON.stringify(value)}\r\n\r\n`).join('\n'),
  'a JSON array': JSON.stringify(objects),
  'a pretty-printed JSON array': JSON.stringify(objects, null, 2),
  'an array with a comma before each element': `[${objects.map((value) => JSON.stringify(value)).join('\n,\r\n')}]\n`,
  'objects without anything between them': objects.map((value) => JSON.stringify(value)).join(''),
  'an array behind a byte-order mark': `\ufeff${JSON.stringify(objects)}`,
};

describe.each(Object.entries(framings))('%s', (_name, text) => {
  const bytes = Buffer.from(text);

  test('reads the same wherever the network cuts it', () => {
    for (let at = 0; at <= bytes.length; at += 1) {
      const pieces = [bytes.subarray(0, at), bytes.subarray(at)];
      expect(readPieces(pieces), `cut at byte ${at}`).toEqual({ values: objects, unfinished: false });
    }
  });

  test('reads the same byte by byte', () => {
    const pieces = [...bytes].map((byte) => Buffer.from([byte]));
    expect(readPieces(pieces)).toEqual({ values: objects, unfinished: false });
  });
});

test('random objects in random pieces come out as JSON.parse reads them', () => {
  const object = fc.dictionary(fc.string({ unit: 'grapheme', maxLength: 5 }), fc.jsonValue({ maxDepth: 4 }), {
    maxKeys: 5,
  });
  fc.assert(
    fc.property(
      fc.array(object, { maxLength: 6 }),
      fc.boolean(),
      fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
      fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 100 }),
      (values, array, indent, sizes) => {
        const text = array
          ? JSON.stringify(values, null, indent)
          : values.map((value) => JSON.stringify(value)).join('\n');
        const expected = values.map((value) => JSON.parse(JSON.stringify(value)) as unknown);
        const bytes = Buffer.from(text);
        const pieces: Buffer[] = [];
        let at = 0;
        for (const size of sizes) {
          pieces.push(bytes.subarray(at, at + size));
          at += size;
        }
        pieces.push(bytes.subarray(at));
        expect(readPieces(pieces)).toEqual({ values: expected, unfinished: false });
      },
    ),
    { seed, numRuns: tries(1000) },
  );
});

test('an answer that is cut inside an object is known to be cut', () => {
  const bytes = Buffer.from('[{"a":1},{"b":{"c":2}');
  expect(readPieces([bytes])).toEqual({ values: [{ a: 1 }], unfinished: true });
  expect(readPieces([Buffer.from('[{"a":1},{"b":"}')])).toEqual({ values: [{ a: 1 }], unfinished: true });
});

test('an object that never ends is refused instead of filling the memory', () => {
  const cutter = new JsonCutter();
  cutter.push(Buffer.from('{"a":"'));
  const piece = Buffer.alloc(8 * 1024 * 1024, 'x');
  let pushed = 0;
  expect(() => {
    for (;;) {
      cutter.push(piece);
      pushed += piece.length;
    }
  }).toThrow('The upstream sent an event that is too large.');
  expect(pushed).toBeLessThanOrEqual(frameLimit);
});

test('a frame is one line; a terminator of another framing is none', () => {
  expect(writeNdjson({ json: { text: 'a\nb' } })).toBe('{"text":"a\\nb"}\n');
  expect(writeNdjson({ text: '[DONE]' })).toBe('');
});

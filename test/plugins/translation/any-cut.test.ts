/* oxlint-disable vitest/valid-expect -- one test serves many cases: the message says which it was. */
import * as fc from 'fast-check';
import { from, type Observable } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { GatewayError, type GatewayEvent } from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import type { Call, Target } from 'sluice/internal';
import { decodeReply } from '../../../plugins/translation/decode-reply.ts';
import { passReply } from '../../../plugins/translation/pass-reply.ts';
import { allFormats, fixturesOf } from '../../support/fixtures.ts';
import { everything, selectRotating, tries } from '../../support/tries.ts';

const seed = 20_261_122;
const codecs = (await allFormats()).flatMap(({ codecs: { chat } }) =>
  chat === undefined ? [] : [chat as unknown as Codec],
);

interface Outcome {
  readonly text: string;
  readonly usage: unknown;
  readonly error: Error | undefined;
}

/** Returns the stream that a client of the provider's own format receives for these pieces. */
function passed(
  codec: Codec,
  pieces: Iterable<Buffer>,
  { stream = true, passes = true, requestedModel = 'm' } = {},
): Outcome {
  const source: Observable<GatewayEvent> = from(
    (function* events(): Generator<GatewayEvent> {
      yield { type: 'answer', status: 200, headers: { 'content-length': '1' } };
      for (const bytes of pieces) yield { type: 'bytes', bytes };
    })(),
  );
  const call = { codec, stream, askedModel: requestedModel, body: {} } as Call;
  const target = { model: 'm', traits: {} } as Target;
  const reply = passes
    ? passReply(source, { call, target, swallowUsage: false })
    : decodeReply(source, { codec, traits: {}, stream });
  const out: Buffer[] = [];
  let usage: unknown;
  let error: Error | undefined;
  reply.subscribe({
    next(event) {
      if (event.type === 'frames' || event.type === 'bytes') out.push(event.bytes);
      if (event.type === 'usage') usage = event.usage;
    },
    error(thrown: unknown) {
      error = thrown instanceof Error ? thrown : new Error('Something was thrown.', { cause: thrown });
    },
  });
  return { text: Buffer.concat(out).toString(), usage, error };
}

function* cut(text: string, sizes: readonly number[]): Generator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? bytes.length;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

function* repeated(count: number, piece: string): Generator<Buffer> {
  const bytes = Buffer.from(piece);
  for (let index = 0; index < count; index += 1) yield bytes;
}

/** Frames that no format knows, and pieces of what other frames of it begin. */
const oddFrame = fc.oneof(
  fc.constantFrom(
    ': a comment\n\n',
    '\n\n',
    'id: 7\nretry: 10\n\n',
    'data:\n\n',
    'data: no JSON {"\n\n',
    ': {{{ "model":"m"\n\n',
    'data: []\n\n',
    'data: 7\n\n',
    'event: ping\ndata: {"type":"ping"}\n\n',
    'event: note\ndata: {"type":"note","message":"waiting","code":1,"error":null}\n\n',
    'data: {"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":""}}\n\n',
    'data: {"type":"content_block_start","index":9}\n\n',
    'data: {"type":"content_block_delta","index":9,"delta":null}\n\n',
    'data: {"type":"response.output_text.delta","output_index":9,"delta":7}\n\n',
    'data: {"type":"response.output_item.done","output_index":9,"item":{"type":"hologram"}}\n\n',
    'data: {"id":"x","choices":[{"index":1e9,"delta":{"content":"x"}}]}\n\n',
    'data: {"id":"x","choices":[{"index":0,"delta":{"tool_calls":[{"index":-1}]}}]}\n\n',
    'data: {"id":"x","choices":"none","error":""}\n\n',
    'data: {"candidates":[{"content":{"parts":[{"hologram":{}}]},"finishReason":""}],"error":false}\n\n',
    'data: {"candidates":7}\n\n',
  ),
  fc
    .record({
      type: fc.constantFrom('hologram', 'response.hologram.delta', 'content_block_hologram'),
      index: fc.integer(),
      delta: fc.jsonValue(),
      item: fc.jsonValue(),
      content_block: fc.jsonValue(),
    })
    .map((value) => `data: ${JSON.stringify(value)}\n\n`),
);

describe.each(codecs.map((codec) => ({ format: codec.format, codec })))(
  'a stream of $format that passes',
  ({ format, codec }) => {
    const fixtures = [...fixturesOf(format, 'streams', '.sse'), ...fixturesOf(format, 'tolerated', '.sse')];

    test('comes through with whatever else the provider says in it, wherever it is cut', () => {
      fc.assert(
        fc.property(
          fc.constantFrom(...fixtures),
          fc.array(fc.tuple(fc.nat(), oddFrame), { maxLength: 4 }),
          fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 8 }),
          fc.boolean(),
          ({ text }, odd, sizes, carriage) => {
            const frames = text.split(/(?<=\n\n)/);
            for (const [position, frame] of odd) frames.splice(position % frames.length, 0, frame);
            const sent = frames.join('').replaceAll('\n', carriage ? '\r\n' : '\n');
            const whole = passed(codec, [Buffer.from(sent)]);
            expect(whole).toMatchObject({ text: sent, error: undefined });
            expect(passed(codec, cut(sent, sizes))).toEqual(whole);
            const renamed = passed(codec, [Buffer.from(sent)], { requestedModel: 'mine' });
            expect(passed(codec, cut(sent, sizes), { requestedModel: 'mine' })).toEqual(renamed);
          },
        ),
        { seed, numRuns: tries(800) },
      );
    });

    test('ends with the provider’s own words where it tells of an error, wherever it is cut', () => {
      const errors = [
        'event: error\ndata: {"type":"error","error":{"message":"it broke"}}\n\n',
        'data: {"error":{"message":"it broke","code":500}}\n\n',
        'data: {"id":"x", "error" : {"message":"it broke"}}\n\n',
        'data: {"object":"error","message":"it broke"}\n\n',
        'event:error\ndata: {"error":null,"message":"it broke"}\n\n',
      ];
      for (const [nth, error] of errors.entries()) {
        for (const { text } of selectRotating(fixtures, nth, 3)) {
          const frames = text.split(/(?<=\n\n)/);
          const sound = frames.slice(0, -2).join('');
          for (const sizes of [[1], [7, 64], [100_000]]) {
            const outcome = passed(codec, cut(sound + error + frames.at(-1), sizes));
            expect(outcome.error?.message, error).toBe('it broke');
            expect(outcome.error).toBeInstanceOf(GatewayError);
            expect([sound, '']).toContain(outcome.text);
          }
        }
        const first = passed(codec, cut(`: hello\n\n${error}`, [3]));
        expect(first).toMatchObject({ text: '', error: { message: 'it broke', retryable: true } });
      }
    });
  },
);

test.each(codecs.map((codec) => ({ format: codec.format, codec })))(
  'an event of $format that has a kind of its own may speak of an error',
  ({ format, codec }) => {
    const note = 'data: {"type":"note","error":{"message":"none of ours"}}\n\n';
    for (const { name, text } of fixturesOf(format, 'streams', '.sse')) {
      const frames = text.split(/(?<=\n\n)/);
      if (frames.length < 4) continue;
      const sent = frames.toSpliced(-1, 0, note).join('');
      expect(passed(codec, [Buffer.from(sent)]), name).toMatchObject({ text: sent, error: undefined });
    }
  },
);

test('a response that fails before it says anything may be had elsewhere', () => {
  const codec = codecs.find(({ format }) => format === 'responses') as Codec;
  const tools = Array.from({ length: 500 }, (_, index) => ({ type: 'function', name: `tool_${index}` }));
  const frame = (type: string, response: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, response: { id: 'r', tools, error: null, ...response } })}\n\n`;
  const failure = frame('response.failed', {
    status: 'failed',
    error: { code: 'server_is_overloaded', message: 'Try later.' },
  });
  const opening = frame('response.created', {}) + frame('response.in_progress', {});
  expect(passed(codec, cut(opening + failure, [1000]))).toMatchObject({
    text: '',
    error: { code: 'server_is_overloaded', retryable: true },
  });
  // Later it is the response's own last word.
  const words =
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"a"}\n\n';
  expect(passed(codec, cut(opening + words + failure, [1000]))).toMatchObject({
    text: opening + words + failure,
    error: undefined,
  });
});

/** Returns the number of bytes that are copied, searched or parsed during an action. */
function looked(act: () => void): number {
  let bytes = 0;
  const { concat } = Buffer;
  // Not spies of the test runner, which remember every call with its arguments: there are hundreds of thousands.
  Buffer.concat = (list) => {
    const all = concat(list);
    bytes += all.length;
    return all;
  };
  const restore = [
    counted('toString', (text) => (text as string).length),
    counted('indexOf', (at, length, start) => ((at as number) < 0 ? length : (at as number)) - (start ?? 0)),
    counted('lastIndexOf', (at, length) => length - Math.max(0, at as number)),
    () => void (Buffer.concat = concat),
  ];
  function counted(
    name: 'toString' | 'indexOf' | 'lastIndexOf',
    length: (result: unknown, length: number, start?: number) => number,
  ): () => void {
    const methods = Buffer.prototype as unknown as Record<string, (...given: unknown[]) => unknown>;
    const real = methods[name];
    if (real === undefined) throw new Error(`Buffers have no ${name}.`);
    methods[name] = function counting(this: Buffer, ...given: unknown[]): unknown {
      const result = real.apply(this, given);
      bytes += length(result, this.length, typeof given[1] === 'number' ? given[1] : undefined);
      return result;
    };
    return () => void (methods[name] = real);
  }
  try {
    act();
  } finally {
    for (const one of restore) one();
  }
  return bytes;
}

describe.each(codecs.map((codec) => ({ format: codec.format, codec })))(
  'an answer in $format however odd',
  ({ codec }) => {
    const ways = [
      { stream: true, passes: true },
      { stream: true, passes: false },
      { stream: false, passes: true },
      { stream: false, passes: false },
    ];

    test.each(ways)('that is blank lines without end is given up (%o)', (way) => {
      for (const piece of ['\n', ' \r\n', '\n'.repeat(64 * 1024)]) {
        let taken = 0;
        const flood = (function* blanks(): Generator<Buffer> {
          for (; taken < 8 * 1024 * 1024; taken += piece.length) yield Buffer.from(piece);
        })();
        expect(passed(codec, flood, way).error?.message).toMatch(/blank lines/);
        expect(taken).toBeLessThanOrEqual(64 * 1024 + piece.length);
      }
    });

    const many = everything ? 20_000 : 7_000;
    const [{ text } = { text: '' }] = fixturesOf(codec.format, 'streams', '.sse');
    test.each([
      ['blank lines', '\n'],
      ['comments', ': still thinking\n\n'],
      ['empty frames', 'data:\n\n'],
      ['frames that look like errors', 'data: {"error":null,"type":"note"}\n\n'],
      ['one long line', 'x', 'data: {"type":"note","x":"', '"}\n\n'],
      ['one long line of marks', '"error"', 'data: {"type":"note","x":[', ']}\n\n'],
    ])(
      'is looked at a few times and no more, cut or not: %s',
      (_what, piece, before = '', after = '\n\n') => {
        const pieces = [
          Buffer.from(`: hello\n\n${before}`),
          ...repeated(Math.ceil(many / piece.length), piece),
          Buffer.from(`${after}${text}`),
        ];
        const whole = Buffer.concat(pieces);
        for (const sent of [pieces, [whole]]) {
          for (const passes of [true, false]) {
            // For what is cut a few bytes are looked at once more at each seam.
            const most = 12 * (whole.length + 8 * sent.length);
            expect(looked(() => passed(codec, sent, { passes }))).toBeLessThan(most);
          }
        }
        expect(passed(codec, pieces)).toMatchObject({ text: whole.toString(), error: undefined });
      },
    );

    test('is looked at a few times and no more where a whole reply is mostly blank, or one long name', () => {
      const pieces = [Buffer.from('{'), ...repeated(20_000, ' '), Buffer.from('"choices":[]}')];
      for (const passes of [true, false]) {
        expect(looked(() => passed(codec, pieces, { stream: false, passes }))).toBeLessThan(20 * 20_000);
      }
      const length = 200_000;
      for (const value of [' ', 'x']) {
        const key = `{"choices":[],"${codec.marks.model ?? 'model'}":${value === 'x' ? '"' : ''}`;
        const long = [Buffer.from(key), ...repeated(length, value), Buffer.from('"}')];
        const way = { stream: false, requestedModel: 'mine' };
        expect(looked(() => passed(codec, long, way))).toBeLessThan(20 * length);
      }
    });
  },
);

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PartialArguments } from '../../../core/formats/generate-content/stream-in/arguments.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../core/model/json.ts';
import { allFormats } from '../../support/fixtures.ts';
import { tries } from '../../support/tries.ts';
import { chat, context, decodeSse, encode } from './support.ts';
import { anyCharacter } from '../../support/characters.ts';

type Part = JsonObject;
const formats = await allFormats();

/** A stream as the provider sends it: a part a chunk, counts in the last one alone. */
function streamOf(parts: readonly Part[], finishReason = 'STOP'): string {
  const every = {
    modelVersion: 'gemini-x-1',
    createTime: '2026-04-02T17:03:50.399550Z',
    responseId: 'dqHOab6x',
  };
  const chunks = parts.map((part, index) => {
    const last = index === parts.length - 1;
    return {
      candidates: [{ content: { role: 'model', parts: [part] }, ...(last ? { finishReason } : {}) }],
      usageMetadata: last
        ? { promptTokenCount: 26, candidatesTokenCount: 23, totalTokenCount: 49, trafficType: 'ON_DEMAND' }
        : { trafficType: 'ON_DEMAND' },
      ...every,
    };
  });
  return chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`).join('');
}

const call = (fields: JsonObject, more: JsonObject = {}): Part => ({ functionCall: fields, ...more });
const piece = (jsonPath: string, value: JsonObject, goesOn = true): Part =>
  call({ partialArgs: [{ jsonPath, ...value }], ...(goesOn ? { willContinue: true } : {}) });
const text = (stringValue: string, willContinue = true): JsonObject =>
  willContinue ? { stringValue, willContinue } : { stringValue };
const over = call({});

/** The calls of a reply: name, and arguments as text. */
function callsIn(events: readonly GatewayEvent[]): { name: string; input: string }[] {
  const calls = new Map<number, { name: string; input: string }>();
  for (const event of events) {
    if (event.type === 'tool-start') calls.set(event.block, { name: event.name, input: '' });
    if (event.type === 'tool-delta') {
      const found = calls.get(event.block);
      if (found !== undefined) found.input += event.input;
    }
  }
  return [...calls.values()];
}

function parsed(events: readonly GatewayEvent[]): [string, JsonValue][] {
  return callsIn(events).map(({ name, input }) => [name, JSON.parse(input) as JsonValue]);
}

const boston: readonly Part[] = [
  call({ name: 'get_weather', willContinue: true }, { thoughtSignature: 'cGFydGlhbA==' }),
  piece('$.location', text('Bos')),
  piece('$.location', text('ton')),
  piece('$.location', { stringValue: '' }),
  over,
];

describe('a call whose arguments are streamed', () => {
  test.each<[string, readonly Part[], [string, JsonValue][]]>([
    ['a string in pieces', boston, [['get_weather', { location: 'Boston' }]]],
    [
      'lists of objects, with parts that say nothing between, and no part for the end',
      [
        call({ name: 'write', willContinue: true }),
        piece('$.items[0].name', text('a')),
        piece('$.items[0].name', { stringValue: '' }),
        piece('$.items[0].price', { numberValue: 0.5 }),
        call({ willContinue: true }),
        piece('$.items[1].name', text('b', false)),
        piece('$.items[1].price', { numberValue: 3 }, false),
        { text: '' },
      ],
      [
        [
          'write',
          {
            items: [
              { name: 'a', price: 0.5 },
              { name: 'b', price: 3 },
            ],
          },
        ],
      ],
    ],
    [
      'all kinds of values and names',
      [
        call({ name: 'f', willContinue: true }),
        piece('$.a[\'x.y\']["q\\"]"]', { boolValue: false }),
        piece("$.a['it\\'s']", { nullValue: 'NULL_VALUE' }),
        piece('$.a.list[0][0]', { numberValue: 1 }),
        piece('$.a.list[0][1]', { nullValue: null }),
        piece('$.a.list[1]', text('say "hi"\n\u2028')),
        piece('$.__proto__.polluted', { boolValue: true }),
        over,
      ],
      [
        [
          'f',
          JSON.parse(
            '{"a":{"x.y":{"q\\"]":false},"it\'s":null,"list":[[1,null],"say \\"hi\\"\\n\\u2028"]},"__proto__":{"polluted":true}}',
          ) as JsonValue,
        ],
      ],
    ],
    [
      'several calls in turn, the first without its end',
      [
        call({ name: 'f', id: 'one', willContinue: true }),
        piece('$.a', { numberValue: 1 }),
        call({ name: 'f', id: 'two', willContinue: true }),
        call({ id: 'two', partialArgs: [{ jsonPath: '$.a', numberValue: 2 }], willContinue: true }),
        over,
        call({ name: 'g' }),
        call({ name: 'h', args: { whole: true } }),
        call({ name: 'f', partialArgs: [{ jsonPath: '$.a', numberValue: 3 }] }),
        over,
      ],
      [
        ['f', { a: 1 }],
        ['f', { a: 2 }],
        ['g', {}],
        ['h', { whole: true }],
        ['f', { a: 3 }],
      ],
    ],
    [
      'name and id in every part',
      [
        call({ name: 'f', id: 'x', partialArgs: [{ jsonPath: '$.a', ...text('San ') }], willContinue: true }),
        call({ name: 'f', id: 'x', partialArgs: [{ jsonPath: '$.a', ...text('Jose', false) }] }),
      ],
      [['f', { a: 'San Jose' }]],
    ],
    [
      'no arguments at all, and a finish in place of the end',
      [call({ name: 'f', willContinue: true }), { text: '' }],
      [['f', {}]],
    ],
  ])('%s', (_, parts, expected) => {
    const events = decodeSse(streamOf(parts));
    const calls = callsIn(events).map(({ name, input }): [string, JsonValue] => [
      name,
      JSON.parse(input === '' ? '{}' : input) as JsonValue,
    ]);
    expect(calls).toEqual(expected);
    expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'tool-calls' });
    const whole = chat.decodeWhole(
      { candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }], modelVersion: 'm' },
      {},
    );
    expect(callsIn(whole)).toEqual(callsIn(events));
  });

  test('is told while it is written, and its proof with its beginning', () => {
    const decoder = chat.decodeStream!({});
    const pieces = streamOf(boston)
      .split('\r\n\r\n')
      .filter((frame) => frame !== '')
      .map((frame) => decoder.frame({ data: frame.slice(6) }).filter(({ type }) => type.startsWith('tool-')));
    expect(pieces).toEqual([
      [
        expect.objectContaining({
          type: 'tool-start',
          proof: expect.objectContaining({ value: 'cGFydGlhbA==' }),
        }),
      ],
      [expect.objectContaining({ type: 'tool-delta', input: '{"location":"Bos' })],
      [expect.objectContaining({ type: 'tool-delta', input: 'ton' })],
      [],
      [
        expect.objectContaining({ type: 'tool-delta', input: '"}' }),
        expect.objectContaining({ type: 'tool-end' }),
      ],
    ]);
  });

  test('that the output limit cuts stays as it broke off: nothing pretends that it was complete', () => {
    const events = decodeSse(streamOf([...boston.slice(0, 2), { text: '' }], 'MAX_TOKENS'));
    expect(callsIn(events)).toEqual([{ name: 'get_weather', input: '{"location":"Bos' }]);
    expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'length' });
  });

  test.each(formats.filter(({ name }) => name !== 'text-completions').map(({ name }) => name))(
    'reaches a client of %s with its arguments and why the answer ended, and nothing is reported as lost',
    (name) => {
      const codec = formats.find((format) => format.name === name)?.codecs.chat;
      const reply = context({ body: { stream_options: { include_usage: true } } });
      const encoder = codec!.encodeStream!(reply);
      const events = decodeSse(streamOf([...boston, ...boston]));
      const frames = [...events.flatMap((event) => [...encoder.event(event)]), ...encoder.end()];
      const decoder = codec!.decodeStream!({});
      const again = frames.flatMap((frame) => [
        ...decoder.frame({
          ...(frame.event === undefined ? {} : { event: frame.event }),
          data: 'json' in frame ? JSON.stringify(frame.json) : frame.text,
        }),
      ]);
      again.push(...decoder.end());
      expect(parsed(again)).toEqual([
        ['get_weather', { location: 'Boston' }],
        ['get_weather', { location: 'Boston' }],
      ]);
      expect(again.find(({ type }) => type === 'finish')).toMatchObject({ reason: 'tool-calls' });
      expect(reply.losses.filter((path) => path.startsWith('opaque'))).toEqual([]);
    },
  );

  test.each<[string, readonly Part[], string[]]>([
    [
      'a piece of a call that never began is reported as lost',
      [piece('$.a', { numberValue: 1 })],
      ['generate-content'],
    ],
    ['an end that is told twice is no loss', [...boston, over], []],
    ['nor is a part that says nothing', [{ text: 'Hi' }, { text: '' }, over, { text: ' there' }], []],
  ])('%s', (_, parts, lost) => {
    const reply = context();
    const encoder = formats.find(({ name }) => name === 'messages')?.codecs.chat?.encodeStream?.(reply);
    for (const event of decodeSse(streamOf(parts))) encoder?.event(event);
    expect(reply.losses.filter((path) => path.startsWith('opaque'))).toEqual(
      lost.map((what) => `opaque.${what}`),
    );
  });

  test('comes whole to a client of this format that is translated for', () => {
    const frames = encode(decodeSse(streamOf(boston)));
    const calls = frames.flatMap((frame) => {
      const [candidate] =
        'json' in frame && Array.isArray(frame.json.candidates) ? frame.json.candidates : [];
      const content = isObject(candidate) && isObject(candidate.content) ? candidate.content : {};
      return Array.isArray(content.parts)
        ? content.parts.filter((part) => isObject(part) && part.functionCall)
        : [];
    });
    expect(calls).toEqual([
      {
        functionCall: { name: 'get_weather', args: { location: 'Boston' } },
        thoughtSignature: 'cGFydGlhbA==',
      },
    ]);
  });
});

describe('arguments that come as paths', () => {
  // Node's JSON.parse may take the name `"` for `\` where it has met the latter in such an object before.
  const name = fc.oneof(
    fc.constantFrom('a', 'b', 'x.y', "it's", '[0]', '', '__proto__', '"'),
    fc.string().filter((found) => !found.includes('\\')),
  );
  const leaf = fc.oneof(fc.string({ unit: anyCharacter }), fc.integer(), fc.boolean(), fc.constant(null));
  const value = fc.letrec<{ any: JsonValue }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc.array(tie('any'), { minLength: 1, maxLength: 4 }),
      fc
        .uniqueArray(fc.tuple(name, tie('any')), { selector: ([key]) => key, minLength: 1, maxLength: 4 })
        .map(objectOf),
    ),
  })).any;
  const object = fc
    .uniqueArray(fc.tuple(name, value), { selector: ([key]) => key, maxLength: 5 })
    .map(objectOf);

  function objectOf(entries: readonly (readonly [string, JsonValue])[]): JsonObject {
    return JSON.parse(
      `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${JSON.stringify(inner)}`).join()}}`,
    ) as JsonObject;
  }

  /** Returns the frames of a provider for a value: strings in pieces, other values at once. */
  function partialsOf(given: JsonValue, path: string): JsonObject[] {
    if (typeof given === 'string') {
      const middle = Math.floor(given.length / 2);
      return [
        { jsonPath: path, stringValue: given.slice(0, middle), willContinue: true },
        { jsonPath: path, stringValue: given.slice(middle), willContinue: true },
        { jsonPath: path, stringValue: '' },
      ];
    }
    if (given === null) return [{ jsonPath: path, nullValue: 'NULL_VALUE' }];
    if (typeof given === 'number') return [{ jsonPath: path, numberValue: given }];
    if (typeof given === 'boolean') return [{ jsonPath: path, boolValue: given }];
    if (isList(given)) return given.flatMap((inner, index) => partialsOf(inner, `${path}[${index}]`));
    return Object.keys(given).flatMap((key) =>
      partialsOf(given[key] ?? null, `${path}[${JSON.stringify(key)}]`),
    );
  }

  function assembled(partials: readonly JsonObject[]): string {
    const args = new PartialArguments();
    return partials.map((partial) => args.add(partial)).join('') + args.end();
  }

  test('are the same as if they had come whole, in the same order', () => {
    fc.assert(
      fc.property(object, (args) => {
        const assembledCalls = assembled(partialsOf(args, '$'));
        // Half a character is written as an escape.
        expect(JSON.stringify(JSON.parse(assembledCalls === '' ? '{}' : assembledCalls))).toBe(
          JSON.stringify(args),
        );
      }),
      { numRuns: tries(2000) },
    );
  });

  test('are the same in whatever order their places come', () => {
    fc.assert(
      fc.property(object, fc.infiniteStream(fc.nat()), (args, random) => {
        const partials = partialsOf(args, '$').filter(({ stringValue }) => stringValue !== '');
        const order = partials.map((partial, index) => {
          const whole = typeof partial.stringValue !== 'string';
          return { partial, position: whole ? (random.next().value ?? 0) : index };
        });
        const assembledCalls = assembled(
          order.toSorted((one, other) => one.position - other.position).map(({ partial }) => partial),
        );
        expect(
          JSON.stringify(sorted(JSON.parse(assembledCalls === '' ? '{}' : assembledCalls) as JsonValue)),
        ).toBe(JSON.stringify(sorted(withoutEmpty(args))));
      }),
      { numRuns: tries(2000) },
    );
  });

  test('take no more room than what was sent, whatever numbers a path names', () => {
    expect(
      assembled([
        { jsonPath: '$.a[999999999]', numberValue: 1 },
        { jsonPath: '$.a[0]', numberValue: 0 },
      ]),
    ).toBe('{"a":[0,1]}');
    expect(() => assembled([{ jsonPath: `$.a${'[0]'.repeat(100_000)}`, numberValue: 1 }])).toThrow(
      /invalid response/,
    );
  });

  /** Empty strings send nothing once their empty pieces are left out. */
  function withoutEmpty(given: JsonValue): JsonValue | undefined {
    if (given === '') return undefined;
    if (isList(given)) {
      const kept = given.map((inner) => withoutEmpty(inner)).filter((inner) => inner !== undefined);
      return given.length > 0 && kept.length === 0 ? undefined : kept;
    }
    if (!isObject(given)) return given;
    const kept = Object.keys(given).flatMap((key): [string, JsonValue][] => {
      const inner = withoutEmpty(given[key] ?? null);
      return inner === undefined ? [] : [[key, inner]];
    });
    return kept.length === 0 ? undefined : objectOf(kept);
  }

  function sorted(given: JsonValue | undefined): JsonValue {
    if (isList(given)) return given.map((inner) => sorted(inner));
    if (!isObject(given)) return given === undefined ? {} : given;
    return objectOf(
      Object.keys(given)
        .toSorted()
        .map((key) => [key, sorted(given[key] ?? null)] as const),
    );
  }
});

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

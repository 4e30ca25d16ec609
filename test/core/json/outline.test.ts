import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Codec } from '../../../core/sdk/format.ts';
import { leftOutNames, longest, outlineOf, wholeOf } from '../../../core/json/outline/index.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../core/model/json.ts';
import { isChat, type GatewayRequest } from '../../../core/model/request.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { near } from '../../fuzz/_mutate.ts';
import { allFormats, fixturesOf, requestOf } from '../../support/fixtures.ts';
import { tries } from '../../support/tries.ts';

const limits = { depth: 64, values: 10_000, members: 1000 };
const seed = 20_261_122;

/** Placeholder of each omitted text. */
const leftOut = '...';

/** An outline with the same in the place of all marks. */
function unmarked(value: JsonValue): JsonValue {
  if (typeof value === 'string') return /^\f[01]\d{5}$/.test(value) ? leftOut : value;
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(unmarked);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, unmarked(one as JsonValue)]));
}

/** The same by plain means: everything is parsed, then long texts are taken out of it. For JSON as JSON.stringify writes it. */
function cut(value: JsonValue, depth = 1, name?: string): JsonValue {
  if (typeof value === 'string') {
    const written = Buffer.byteLength(JSON.stringify(value)) - 2;
    return depth > 3 && name !== undefined && leftOutNames.includes(name) && written > longest
      ? leftOut
      : value;
  }
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map((one) => cut(one, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, cut(one as JsonValue, depth + 1, key)]),
  );
}

/** The same without a word in it. */
function cutToMarks(value: JsonValue): JsonValue {
  if (typeof value === 'string') return '';
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(cutToMarks);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.values(value).map((one, index) => [String(index), cutToMarks(one as JsonValue)]),
  );
}

/** Bytes between the quotes of all texts that are cut. */
function writtenLeftOut(value: JsonValue, depth = 1, name?: string): number {
  if (typeof value === 'string')
    return cut(value, depth, name) === value ? 0 : Buffer.byteLength(JSON.stringify(value)) - 2;
  if (typeof value !== 'object' || value === null) return 0;
  const inner = Object.entries(value as JsonObject);
  const isList = Array.isArray(value);
  return inner.reduce(
    (sum, [key, one]) => sum + writtenLeftOut(one as JsonValue, depth + 1, isList ? undefined : key),
    0,
  );
}

const word = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 20 }),
  fc.string({ unit: fc.constantFrom('a', '"', '\\', '\n', '\u0001', 'é', '→', '😀', '{', '[', ',', ':') }),
  fc
    .tuple(fc.integer({ min: longest - 2, max: longest + 20 }), fc.constantFrom('x', '\\', '"', '→', 'a\\'))
    .map(([length, unit]) => unit.repeat(length)),
  fc.constantFrom('x'.repeat(longest), 'x'.repeat(longest + 1), '\ud800'.repeat(40)),
);
const name = fc.oneof(
  fc.constantFrom(...leftOutNames, 'model', 'tools', 'role', 'type', '__proto__', '1', 'te\\xt', 'Text', ''),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
);
const { value: anyValue } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: 'medium' },
    fc.oneof(word, fc.integer(), fc.double({ noNaN: true }), fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 5 }),
    fc.dictionary(name, word, { maxKeys: 5 }),
  ),
}));
const anyBody: fc.Arbitrary<JsonObject> = fc.dictionary(name, anyValue, { maxKeys: 6 });

describe('an outline', () => {
  test('says what the whole says, without its long texts', () => {
    fc.assert(
      fc.property(anyBody, fc.constantFrom(undefined, 2, '\t'), (body, indent) => {
        const text = JSON.stringify(body, undefined, indent);
        // As it is read: a number may lose its sign, and `__proto__` is a member like any other.
        const whole = JSON.parse(text) as JsonObject;
        let values = 0;
        const outline = outlineOf(Buffer.from(text), limits, (counted) => {
          values = counted;
        });
        // As the plain way counts them: brackets and commas.
        const marks = JSON.stringify(cutToMarks(whole)).match(/[[{,]/g);
        expect(values).toBe(marks?.length);
        expect(unmarked(outline?.body ?? null)).toEqual(cut(whole));
        expect(Object.keys(outline?.body ?? {})).toEqual(Object.keys(whole));
        const { model } = whole;
        const named =
          outline?.model && Buffer.from(text).toString('utf8', outline.model.start, outline.model.end);
        expect(named).toBe(typeof model === 'string' ? JSON.stringify(model) : undefined);
        expect(outline && wholeOf(outline, Buffer.from(text))).toEqual(whole);
        expect(outline?.leftOut).toBe(writtenLeftOut(whole));
        expect(outline?.cut.toSorted()).toEqual(
          Object.keys(whole)
            .filter((key) => JSON.stringify(whole[key]) !== JSON.stringify((cut(whole) as JsonObject)[key]))
            .toSorted(),
        );
      }),
      { seed, numRuns: tries(5000) },
    );
  });

  test('is made of JSON alone', () => {
    fc.assert(
      fc.property(
        anyBody.chain((body) => near(body as never)),
        fc.nat(),
        fc.uint8Array({ maxLength: 2 }),
        (text, path, bytes) => {
          const damaged = Buffer.from(text);
          damaged.set(bytes, Math.min(path % (damaged.length + 1), damaged.length - bytes.length));
          const outline = outlineOf(damaged, limits);
          if (outline === undefined) return;
          const whole: unknown = JSON.parse(damaged.toString());
          expect(wholeOf(outline, damaged)).toEqual(whole);
        },
      ),
      { seed, numRuns: tries(20_000) },
    );
  });

  const piece = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom('\\\\', '\\"', '\\n', '\\/', '\\u00e9', '\\uD83d', '/', 'u', '→'),
    },
    fc.integer({ min: 1, max: 40 }).map((length) => 'x'.repeat(length)),
  );
  /** Escapes that there are not, what has to be escaped, and an end too early. */
  const wrong = fc.constantFrom(
    '\\',
    '"',
    '\\x',
    '\\u12',
    '\\u12g4',
    '\\é',
    '\n',
    '\\\u0001',
    '\\\\"',
    '\u007f',
  );

  test('is made of texts full of escapes, wherever these stand, if they are JSON', () => {
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 5, maxLength: 40 }),
        fc.option(wrong),
        fc.nat(),
        (pieces, one, at) => {
          const position = at % (pieces.length + 1);
          const text = [...pieces.slice(0, position), one ?? '', ...pieces.slice(position)].join('');
          const bytes = Buffer.from(`{"a":[{"text":"${text}","id":"${text}"}]}`);
          let whole: JsonObject | undefined;
          try {
            whole = JSON.parse(bytes.toString()) as JsonObject;
          } catch {
            // No outline is expected.
          }
          const outline = outlineOf(bytes, limits);
          expect(outline && wholeOf(outline, bytes)).toEqual(whole);
          const [read] = (outline?.body.a ?? []) as readonly JsonObject[];
          expect(read?.id).toEqual((whole?.a as readonly JsonObject[] | undefined)?.[0]?.id);
        },
      ),
      { seed, numRuns: tries(20_000) },
    );
  });

  test.each([
    ['cut in a text', `{"a":[{"text":"${'x'.repeat(100)}`],
    ['cut in an escape', `{"a":[{"text":"${'x'.repeat(100)}\\`],
    ['cut behind a quote that is escaped', `{"a":[{"text":"${'x'.repeat(100)}\\"`],
    ['with a bare line end in a text', `{"a":[{"text":"${'x'.repeat(100)}\n"}]}`],
    ['with an escape that there is not', `{"a":[{"text":"${'x'.repeat(100)}\\x"}]}`],
    ['with half a number in an escape', `{"a":[{"text":"${'x'.repeat(100)}\\u12g4"}]}`],
    ['with two texts and no comma', `{"a":[{"text":"${'x'.repeat(100)}" "${'x'.repeat(100)}"}]}`],
    ['with a text in the place of a name', `{"a":[{"text":"a","${'x'.repeat(100)}"}]}`],
    ['closed once too often', `{"a":[{"text":"${'x'.repeat(100)}"}]}}`],
    ['of nothing', ''],
    ['of a list', `[[{"text":"${'x'.repeat(100)}"}]]`],
    ['in which a member stands twice', `{"a":1,"a":2}`],
    ['in which a member stands twice, spelled in two ways', `{"model":"a","m\\u006fdel":"b"}`],
    ['that is too deep', `{"a":${'['.repeat(64)}${']'.repeat(64)}}`],
    ['that has too many values', `{"a":[${'1,'.repeat(10_000)}1]}`],
  ])('is not made of a body %s', (_, text) => {
    expect(outlineOf(Buffer.from(text), limits)).toBeUndefined();
  });

  test('spares whoever reads short members the parsing of long ones', () => {
    const text = JSON.stringify({
      model: 'm',
      metadata: { user_id: 'u' },
      messages: [{ role: 'user', content: 'x'.repeat(100) }],
    });
    const outline = outlineOf(Buffer.from(text), limits);
    const whole = outline === undefined ? {} : wholeOf(outline, Buffer.from('no JSON'));
    expect(whole.model).toBe('m');
    expect(whole.metadata).toEqual({ user_id: 'u' });
    expect(Object.keys(whole)).toEqual(['model', 'metadata', 'messages']);
    expect(() => whole.messages).toThrow(SyntaxError);
  });

  const toolsNamed = (one: string): JsonValue =>
    Array.from({ length: 20 }, (_, index) => ({
      name: `${one}_${index}`,
      description: 'It does much. '.repeat(10),
      parameters: { type: 'object', properties: { path: { type: 'string' } } },
    }));
  const withTools = (one: string): JsonObject | undefined =>
    outlineOf(Buffer.from(JSON.stringify({ tools: toolsNamed(one), model: 'm' })), limits)?.body;

  test('has the tools that another request had too, and nobody can change them', () => {
    const [one, same, other] = [withTools('a'), withTools('a'), withTools('b')];
    expect(unmarked(one ?? null)).toEqual(cut({ tools: toolsNamed('a'), model: 'm' }));
    expect(same?.tools).toBe(one?.tools);
    expect(unmarked(other ?? null)).toEqual(cut({ tools: toolsNamed('b'), model: 'm' }));
    const tools = one?.tools as { parameters: { type: string } }[] | undefined;
    expect(() => {
      for (const { parameters } of tools ?? []) parameters.type = 'other';
    }).toThrow(TypeError);
  });

  test('has the tools of those requests alone that came lately', () => {
    const first = withTools('first');
    for (let count = 0; count < 3_000; count += 1) withTools('x'.repeat(count % 30) + String(count));
    const again = withTools('first');
    expect(again).toEqual(first);
    expect(again?.tools).not.toBe(first?.tools);
    expect(withTools('latest')?.tools).toBe(withTools('latest')?.tools);
    for (let count = 0; count < 20; count += 1) withTools(`late${String(count).padStart(2, '0')}`);
    expect(withTools('late19')?.tools).toBe(withTools('late19')?.tools);
  });

  test('of many sizes one after the other is of each alone', () => {
    for (const length of [10, 100_000, 3_000_000, 50, 200_000, 1]) {
      const body = { messages: [{ content: 'x'.repeat(length) }], n: length };
      const bytes = Buffer.from(JSON.stringify(body));
      expect(unmarked(outlineOf(bytes, limits)?.body ?? null)).toEqual(cut(body));
    }
    const tooLong = Buffer.from(JSON.stringify({ messages: [{ content: 'x'.repeat(5_000_000) }] }));
    expect(outlineOf(tooLong, limits)).toBeUndefined();
  });

  test('is made by a module that is what its source says', () => {
    const script = fileURLToPath(new URL('../../../core/json/build-scanner.js', import.meta.url));
    expect(() => execFileSync(process.execPath, [script, '--check'], { stdio: 'pipe' })).not.toThrow();
  });
});

function verdict(check: () => GatewayRequest): string {
  try {
    check();
    return 'accepted';
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return `${error.status} ${error.code} ${error.param ?? ''}: ${error.message}`;
  }
}

/** Returns the parts of a request that readers of an outline use. */
function shape(request: GatewayRequest): unknown {
  if (!isChat(request)) return request.operation;
  const blocks = (content: (typeof request.messages)[number]['content']): unknown[] =>
    content.map((block) => ({
      type: block.type,
      at: block.at,
      ...('id' in block ? { id: block.id } : {}),
      ...('name' in block ? { name: block.name } : {}),
      ...('proof' in block ? { proof: block.proof } : {}),
      ...('source' in block ? { source: block.source } : {}),
      ...(block.type === 'tool-result' ? { content: blocks(block.content) } : {}),
    }));
  const turns = (messages: typeof request.messages): unknown[] =>
    messages.map(({ role, content, at }) => ({ role, at, content: blocks(content) }));
  const { model, stream, system, messages, tools, toolChoice, settings } = request;
  return {
    model,
    stream,
    toolChoice,
    system: turns(system),
    messages: turns(messages),
    tools: tools.map((tool) => ({ type: tool.type, ...('name' in tool ? { name: tool.name } : {}) })),
    settings: { ...settings, responseFormat: settings.responseFormat?.type },
  };
}

/** The same with long words in the place of others, by chance. */
function stretched(value: JsonValue, random: () => number): JsonValue {
  if (typeof value === 'string') {
    if (random() > 0.3) return value;
    return random() < 0.5 ? value.padEnd(longest + 10, ' and so on') : 'On and on. '.repeat(60);
  }
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map((one) => stretched(one, random));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, stretched(one as JsonValue, random)]),
  );
}

const cases = (await allFormats()).flatMap(({ name: format, codecs }) =>
  Object.values(codecs as Readonly<Record<string, Codec>>)
    .filter(({ outlines }) => outlines === true)
    .map((codec) => ({ format, operation: codec.operation, codec })),
);

describe.each(cases)('what is refused of $format, $operation,', ({ format, codec }) => {
  const requests = (['requests', 'tolerated'] as const)
    .flatMap((kind) => fixturesOf(format, kind, '.json'))
    .map(requestOf)
    .filter(({ body }) => isObject(body));

  /** Returns the reason of a refusal, or the shape of the request. */
  const outcomeOf = (body: JsonObject, params: object): unknown => {
    const refused = verdict(() => codec.validate(body, params));
    return refused === 'accepted' ? shape(codec.validate(body, params)) : refused;
  };
  const outlined = (text: string): JsonObject =>
    outlineOf(Buffer.from(text), limits)?.body ?? (JSON.parse(text) as JsonObject);

  test('is refused by the outline of a long request, in the same words', () => {
    expect(requests.length).toBeGreaterThan(5);
    const random = fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }));
    fc.assert(
      fc.property(fc.constantFrom(...requests), random, ({ body, params }, numbers) => {
        const next = (): number => numbers.next().value ?? 0;
        const text = JSON.stringify(stretched(body, next));
        expect(outcomeOf(outlined(text), params)).toEqual(outcomeOf(JSON.parse(text) as JsonObject, params));
      }),
      { seed, numRuns: tries(4000) },
    );
  });

  test('is refused the same where other things are wrong with it too', () => {
    fc.assert(
      fc.property(
        fc
          .constantFrom(...requests)
          .chain(({ body, params }) => fc.record({ text: near(body as never), params: fc.constant(params) })),
        ({ text, params }) => {
          let body: JsonValue;
          try {
            body = JSON.parse(text) as JsonValue;
          } catch {
            return;
          }
          const long = JSON.stringify(stretched(body, () => 0.2));
          expect(outcomeOf(outlined(long), params)).toEqual(
            outcomeOf(JSON.parse(long) as JsonObject, params),
          );
        },
      ),
      { seed, numRuns: tries(8000) },
    );
  });
});

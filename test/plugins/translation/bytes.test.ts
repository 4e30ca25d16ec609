/* oxlint-disable vitest/no-conditional-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Usage } from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import { findModel, renamed, Renamer, usageIn } from '../../../plugins/translation/bytes.ts';
import { tries } from '../../support/tries.ts';

const seed = 20_261_120;

const key = fc.oneof(
  fc.constantFrom(
    'model',
    'modelVersion',
    'message',
    'usage',
    'mode',
    'Model',
    '"model"',
    'model":"x',
    '\\',
    'model\\',
  ),
  fc.string({ unit: 'grapheme', maxLength: 6 }),
);
const text = fc.oneof(
  fc.constantFrom('m', '"model":"x"', '\\"model\\":\\"x\\"', '{"model":"x"}', '\\', '"', '}{][', ',"model":'),
  fc.string({ unit: 'grapheme', maxLength: 12 }),
);
const value = fc.letrec<{ any: unknown }>((tie) => ({
  any: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    text,
    fc.constantFrom(null, true, false, 0, -1.5e300, 12),
    fc.array(tie('any'), { maxLength: 3 }),
    fc.dictionary(key, tie('any'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).any;
const members = fc.array(fc.tuple(key, value), { maxLength: 6 });
const blank = fc.constantFrom('', ' ', '\n', '\t', '\r\n ');

/** Members as JSON text in any of the ways in which it may be written: white space, escapes, keys more than once. */
function written(list: readonly (readonly [string, unknown])[], space: string, escape: boolean): string {
  const spell = (word: string): string =>
    escape
      ? `"${[...word].map((one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`
      : JSON.stringify(word);
  const parts = list.map(([name, content]) => {
    const spelled = name === 'model' ? spell(name) : JSON.stringify(name);
    return `${space}${spelled}${space}:${space}${JSON.stringify(content)}${space}`;
  });
  return `${space}{${parts.join(',')}}${space}`;
}

describe('the model in a request body', () => {
  test('is found exactly when JSON.parse has no second opinion', () => {
    fc.assert(
      fc.property(members, blank, fc.boolean(), (list, space, escape) => {
        const bytes = Buffer.from(written(list, space, escape));
        const models = list.filter(([name]) => name === 'model').map(([, content]) => content);
        const span = findModel(bytes);
        if (models.length !== 1 || typeof models[0] !== 'string') {
          expect(span).toBeUndefined();
          return;
        }
        expect(span).toBeDefined();
        const { start, end } = span as { start: number; end: number };
        expect(JSON.parse(bytes.toString('utf8', start, end))).toBe(models[0]);
        const changed = Buffer.concat([
          bytes.subarray(0, start),
          Buffer.from('"other"'),
          bytes.subarray(end),
        ]);
        expect(JSON.parse(changed.toString())).toEqual({
          ...(JSON.parse(bytes.toString()) as object),
          model: 'other',
        });
      }),
      { seed, numRuns: tries(5000) },
    );
  });

  test('that stands there twice is nobody’s word', () => {
    expect(findModel(Buffer.from('{"model":"cheap","model":"dear"}'))).toBeUndefined();
    expect(findModel(Buffer.from('{"model":"cheap","m\\u006fdel":"dear"}'))).toBeUndefined();
    expect(
      findModel(Buffer.from('{"\\u006d\\u006f\\u0064\\u0065\\u006c":"cheap","model":"dear"}')),
    ).toBeUndefined();
  });
});

/** Renames the model at the top level, and in the message or response one level down. */
function expected(body: unknown, name: string): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const copy: Record<string, unknown> = {};
  for (const [member, content] of Object.entries(body)) {
    let changed: unknown = content;
    if (member === 'model' && typeof content === 'string') changed = name;
    else if (
      typeof content === 'object' &&
      content !== null &&
      !Array.isArray(content) &&
      typeof (content as { model?: unknown }).model === 'string'
    ) {
      changed = { ...content, model: name };
    }
    Object.defineProperty(copy, member, {
      value: changed,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return copy;
}

const reply = fc.dictionary(key, value, { maxKeys: 6, noNullPrototype: true });

describe('the model in a reply', () => {
  test('gets the client’s name, and nothing else is touched', () => {
    fc.assert(
      fc.property(reply, fc.constantFrom(0, 1, 2), text, (body, indent, name) => {
        const json = JSON.stringify(body, null, indent);
        const out = renamed(Buffer.from(json), 'model', name).toString();
        expect(JSON.parse(out)).toEqual(expected(JSON.parse(json), name));
      }),
      { seed, numRuns: tries(5000) },
    );
  });

  test('is found wherever the network cuts the reply', () => {
    fc.assert(
      fc.property(reply, fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 60 }), (body, sizes) => {
        const bytes = Buffer.from(JSON.stringify(body));
        const renamer = new Renamer('model', 'mine');
        const out: Buffer[] = [];
        let at = 0;
        for (const size of sizes) {
          out.push(renamer.push(bytes.subarray(at, at + size)));
          at += size;
        }
        out.push(renamer.push(bytes.subarray(at)), renamer.end());
        expect(JSON.parse(Buffer.concat(out).toString())).toEqual(
          expected(JSON.parse(bytes.toString()), 'mine'),
        );
      }),
      { seed, numRuns: tries(3000) },
    );
  });

  test('is changed in every frame of a run, and only there', () => {
    const frame = (model: string, content: string) =>
      `data: ${JSON.stringify({ id: 'x', model, choices: [{ delta: { content, args: { model: 'inner' } } }] })}\n\n`;
    const run = `: "model":"x" {\n\n${frame('upstream', '"model":"upstream"')}event: e\n${frame('upstream', '{')}data: [DONE]\n\n`;
    const want = `: "model":"x" {\n\n${frame('mine', '"model":"upstream"')}event: e\n${frame('mine', '{')}data: [DONE]\n\n`;
    expect(renamed(Buffer.from(run), 'model', 'mine').toString()).toBe(want);
  });

  test('is changed in a message_start, not in the arguments of a tool', () => {
    const start = '{"type":"message_start","message":{"id":"m","model":"upstream","content":[]}}';
    const block =
      '{"type":"content_block_start","content_block":{"type":"tool_use","input":{"model":"inner"}}}';
    expect(renamed(Buffer.from(`data: ${start}\n\ndata: ${block}\n\n`), 'model', 'mine').toString()).toBe(
      `data: ${start.replace('upstream', 'mine')}\n\ndata: ${block}\n\n`,
    );
  });

  test('a reply without one stays the same buffer', () => {
    const bytes = Buffer.from('data: {"text":"a model"}\n\n');
    expect(renamed(bytes, 'model', 'mine')).toBe(bytes);
  });
});

describe('the usage in a whole reply', () => {
  const codec = {
    marks: { usage: ['"usage"'], terminal: [] },
    usageTap: () => ({ read: (data: string) => (JSON.parse(data) as { usage: Usage }).usage }),
  } as unknown as Codec;

  test('is what JSON.parse finds, wherever it stands and whatever stands around it', () => {
    const usage = fc.dictionary(text, fc.oneof(text, fc.dictionary(text, text)), {
      maxKeys: 4,
      noNullPrototype: true,
    });
    const plain = fc.array(
      fc.tuple(
        key.filter((name) => name !== 'usage'),
        text,
      ),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(plain, usage, plain, fc.constantFrom(0, 2), (before, counts, after, indent) => {
        const body = { ...Object.fromEntries(before), usage: counts, ...Object.fromEntries(after) };
        const bytes = Buffer.from(JSON.stringify(body, null, indent));
        expect(usageIn(bytes, codec)).toEqual(JSON.parse(JSON.stringify(counts)));
      }),
      { seed, numRuns: tries(3000) },
    );
  });

  test('is not some other object when there is none', () => {
    expect(usageIn(Buffer.from('{"usage":null,"choices":[{"index":0}]}'), codec)).toBeUndefined();
    expect(usageIn(Buffer.from('{"text":"\\"usage","other":{"a":1}}'), codec)).toBeUndefined();
    expect(usageIn(Buffer.from('{"usage":{"input":1},"x":{"usage":null}}'), codec)).toEqual({ input: 1 });
  });

  test('is given up where there is no end of mentions of it', () => {
    const codecOfMany = { ...codec, usageTap: () => ({ read: () => ((reads += 1), undefined) }) };
    let reads = 0;
    expect(usageIn(Buffer.from(`{"x":[${'{"usage":{}},'.repeat(5000)}1]}`), codecOfMany)).toBeUndefined();
    expect(reads).toBeLessThan(100);
  });

  test('that is cut is none', () => {
    expect(usageIn(Buffer.from('{"usage":{"input":1'), codec)).toBeUndefined();
    expect(usageIn(Buffer.from('{"usage":{"input":"}'), codec)).toBeUndefined();
    expect(usageIn(Buffer.from('{"usage"'), codec)).toBeUndefined();
  });
});

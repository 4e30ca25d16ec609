import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ArgumentsText, argumentsObject, brokenArguments } from '../../../core/json/arguments.ts';
import type { Codec } from '../../../core/sdk/format.ts';
import { parseObject } from '../../../core/json/parse.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import type { ChatRequest } from '../../../core/model/chat.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { allFormats } from '../../support/fixtures.ts';
import { tries } from '../../support/tries.ts';

const formats = await allFormats();

function codecOf(name: string): Codec<ChatRequest> {
  const codec = formats.find((format) => format.name === name)?.codecs.chat;
  if (codec === undefined) throw new Error(`no format ${name}`);
  return codec;
}

/** JSON text as models write it, or something near it: cut, with a sign too much, with another sign in it. */
const json = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value)),
  fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 })).map((value) => JSON.stringify(value, null, 1)),
  fc.constantFrom(
    '{"a":-0.5e+10,"b":[true,false,null,""],"c":{"d":"\\u00e9\\n\\"\\\\"}}',
    '{ "a" : [ ] , "b" : { } }',
  ),
);
const noise = fc.constantFrom(
  ',',
  '}',
  ']',
  '"',
  '\\',
  '\n',
  ':',
  '0',
  'x',
  '{',
  "'",
  '\u0000',
  ' ',
  '-',
  '.',
);
const nearly = fc.tuple(json, fc.nat(), fc.nat(), noise).map(([text, kind, at, sign]) => {
  const position = text.length === 0 ? 0 : at % (text.length + 1);
  if (kind % 3 === 0) return text;
  if (kind % 3 === 1) return text.slice(0, position);
  return text.slice(0, position) + sign + text.slice(position);
});

/** All that is told of a text that comes in pieces of these lengths. */
function streamed(text: string, lengths: readonly number[]): string {
  const stream = new ArgumentsText();
  let emitted = '';
  let at = 0;
  for (const length of lengths) {
    emitted += stream.push(text.slice(at, at + length));
    at += length;
  }
  return emitted + stream.push(text.slice(at)) + stream.end();
}

describe('arguments in formats that want an object', () => {
  test('are told in pieces as the same object, however they are cut, and give their text again', () => {
    fc.assert(
      fc.property(nearly, fc.array(fc.nat({ max: 7 }), { maxLength: 12 }), (text, lengths) => {
        const object = argumentsObject(text);
        const emitted = streamed(text, lengths);
        expect(parseObject(emitted === '' ? '{}' : emitted)).toEqual(object);
        const whole = text.trim() === '' ? {} : parseObject(text);
        if (whole === undefined) expect(brokenArguments(object)).toBe(text);
        else {
          expect(object).toEqual(whole);
          expect(emitted).toBe(
            text.trim() === ''
              ? ''
              : text
                  .trimStart()
                  .slice(0, text.lastIndexOf('}') + 1)
                  .trimEnd(),
          );
          expect(brokenArguments(object)).toBeUndefined();
        }
      }),
      { numRuns: tries(10_000) },
    );
  });

  test.each<[string, JsonObject]>([
    ['{"path":"a","content":"the be', { path: 'a', content: null }],
    ['{"path":"a","mode":12', { path: 'a', mode: null }],
    ['{"path":"a","list":[{"x":1},{"y', { path: 'a', list: null }],
    ['{"path":"a","cont', { path: 'a', cont: null }],
    ['{"path":"a","content":', { path: 'a', content: null }],
    ['{"path":"a",', { path: 'a' }],
    ['{"path":"a"}}', { path: 'a' }],
    ['{}}', {}],
    ['{"path":"a\nb"}', { path: null }],
    ['{', {}],
    ['[1]', {}],
    ['rm -rf', {}],
  ])('%s: a member that breaks off is null, so that nobody takes half of it for all', (text, members) => {
    expect(argumentsObject(text)).toEqual({ ...members, _raw: text });
  });

  test('an ordinary member of that name is no text that broke off', () => {
    expect(brokenArguments({ _raw: '{"a":1}' })).toBeUndefined();
    expect(brokenArguments({ _raw: '{"a":1', b: 2 })).toBeUndefined();
    expect(brokenArguments({ _raw: '' })).toBeUndefined();
  });

  test('take time that grows with their length, not faster, in whatever pieces they come', () => {
    const stream = new ArgumentsText();
    const pieces = 300_000;
    let length = stream.push('{"a":"').length;
    for (let piece = 0; piece < pieces; piece += 1) length += stream.push('x\\n').length;
    expect(length).toBe(6 + 3 * pieces);
    expect(streamed(`{"n":${'1'.repeat(300_000)}`, []).length).toBeGreaterThan(600_000);
  });
});

const blockPosition = { block: 0, choice: 0 };
function callOf(pieces: readonly string[]): GatewayEvent[] {
  return [
    { type: 'head', id: 'x', model: 'm' },
    { type: 'tool-start', ...blockPosition, id: 'call_1', name: 'write' },
    ...pieces.map((input): GatewayEvent => ({ type: 'tool-delta', ...blockPosition, input })),
    { type: 'tool-end', ...blockPosition },
    { type: 'finish', choice: 0, reason: 'length' },
  ];
}

const context = { model: 'm', body: {}, requestId: 'r', created: 1, inputEstimate: 0, drop: () => {} };

describe('a call that the output limit cuts', () => {
  const text = '{"path":"a.txt","content":"It was a dark and';
  const events = callOf(['{"pa', 'th":"a.txt","content":"It was', ' a dark and']);

  test('reaches a messages client as the same object when it is streamed and when it is whole', () => {
    const codec = codecOf('messages');
    const encoder = codec.encodeStream?.(context);
    let input = '';
    for (const event of events)
      for (const frame of encoder?.event(event) ?? []) {
        const { delta } = 'json' in frame ? (frame.json as { delta?: { partial_json?: string } }) : {};
        input += delta?.partial_json ?? '';
      }
    const whole = codec.encodeWhole(context);
    for (const event of events) whole.event(event);
    const [block] = whole.end().content as readonly JsonObject[];
    expect(JSON.parse(input)).toEqual(block?.input);
    expect(block?.input).toEqual({ path: 'a.txt', content: null, _raw: text });
  });

  test.each(['messages', 'generate-content'])(
    'comes back from a %s client as the text that it was',
    (name) => {
      const request: ChatRequest = {
        operation: 'chat',
        format: 'chat-completions',
        model: 'm',
        stream: false,
        system: [],
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
          { role: 'assistant', content: [{ type: 'tool-call', id: 'call_1', name: 'write', input: text }] },
          {
            role: 'tool',
            content: [{ type: 'tool-result', id: 'call_1', content: [{ type: 'text', text: 'no' }] }],
          },
        ],
        tools: [],
        settings: { maxOutput: 10 },
      };
      const codec = codecOf(name);
      const target = {
        model: 'm',
        stream: false,
        traits: {},
        headers: {},
        unsupported: 'refuse' as const,
        drop: () => {},
      };
      const { body } = codec.encodeRequest(request, target);
      const back = codec.decodeRequest(JSON.parse(JSON.stringify(body)) as JsonObject, { model: 'm' });
      expect(
        back.messages.flatMap(({ content }) => content).find(({ type }) => type === 'tool-call'),
      ).toMatchObject({
        input: text,
      });
    },
  );
});

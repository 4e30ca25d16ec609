import { describe, expect, it } from 'vitest';
import { parseSse, SseCutter } from '../../../core/formats/_shared/sse.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { chat, count, decode, fixture, fixtures, refusal, sse } from './support.ts';

const start = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'up',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 3, output_tokens: 1 },
  },
};
const block = (index: number, content_block: JsonObject) => ({
  type: 'content_block_start',
  index,
  content_block,
});
const delta = (index: number, piece: JsonObject) => ({ type: 'content_block_delta', index, delta: piece });
const stop = (index: number) => ({ type: 'content_block_stop', index });
const ending = (stop_reason: string, usage: JsonObject = { output_tokens: 5 }) => ({
  type: 'message_delta',
  delta: { stop_reason, stop_sequence: null },
  usage,
});
const last = { type: 'message_stop' };
const words = (index: number, text: string) => [
  block(index, { type: 'text', text: '' }),
  delta(index, { type: 'text_delta', text }),
  stop(index),
];

const short = (events: readonly GatewayEvent[]): string[] =>
  events
    .filter(({ type }) => type !== 'head' && type !== 'usage')
    .map((event) => {
      if ('text' in event) return `${event.type} ${event.text}`;
      if (event.type === 'tool-delta') return `tool-delta ${event.input}`;
      if (event.type === 'finish') return `finish ${event.reason}`;
      return event.type;
    });

describe('a stream however it is cut', () => {
  const text = fixture('streams', 'of-tomorrow.sse').replace('"Hi"', '"Hi 👋🏽 ünï"');
  const whole = decode(text);

  it.each([
    ['LF', text],
    ['CRLF', text.replaceAll('\n', '\r\n')],
    ['CR', text.replaceAll('\n', '\r')],
    ['no space after the colon', text.replaceAll('data: ', 'data:').replaceAll('event: ', 'event:')],
    ['comments and ids', text.replaceAll('event:', ': hello\nid: 7\nretry: 1\nevent:')],
    ['a byte order mark', `\uFEFF${text}`],
    ['no blank line at its end', text.trimEnd()],
    ['names behind the data', text.replaceAll(/(event: .*)\n(data: .*)\n/g, '$2\n$1\n')],
    ['no names at all', text.replaceAll(/event: .*\n/g, '')],
    ['a [DONE] at its end', `${text}data: [DONE]\n\n`],
  ])('means the same: %s', (_name, spelled) => {
    const bytes = Buffer.from(spelled);
    for (const size of [1, 2, 3, 7, 64, bytes.length]) {
      const cutter = new SseCutter();
      const decoder = chat.decodeStream?.({});
      const events: GatewayEvent[] = [];
      const feed = (run: Buffer | undefined): void => {
        if (run === undefined) return;
        for (const frame of parseSse(run)) events.push(...(decoder?.frame(frame) ?? []));
      };
      for (let at = 0; at < bytes.length; at += size) feed(cutter.push(bytes.subarray(at, at + size)));
      feed(cutter.end());
      events.push(...(decoder?.end() ?? []));
      expect(events).toEqual(whole);
    }
  });

  it.each(fixtures('streams', '.sse'))('%s is never complete before its last words', (name) => {
    const frames = parseSse(fixture('streams', `${name}.sse`));
    const enough = frames.findIndex(({ event }) => event === 'message_delta');
    for (let length = 0; length <= enough; length += 1) {
      const decoder = chat.decodeStream?.({});
      for (const frame of frames.slice(0, length)) decoder?.frame(frame);
      expect(refusal(() => decoder?.end()).code).toBe('upstream_cut');
    }
    const decoder = chat.decodeStream?.({});
    for (const frame of frames.slice(0, enough + 1)) decoder?.frame(frame);
    expect(() => decoder?.end()).not.toThrow();
  });
});

describe('an upstream that is not quite right', () => {
  it.each<[string, string, string[]]>([
    [
      'forgets to end a block',
      sse(
        start,
        block(0, { type: 'text', text: '' }),
        delta(0, { type: 'text_delta', text: 'A' }),
        ending('end_turn'),
        last,
      ),
      ['text-start', 'text-delta A', 'text-end', 'finish stop'],
    ],
    [
      'forgets to end a block before the next',
      sse(
        start,
        block(0, { type: 'text', text: '' }),
        delta(0, { type: 'text_delta', text: 'A' }),
        block(0, { type: 'text', text: '' }),
        delta(0, { type: 'text_delta', text: 'B' }),
        ending('end_turn'),
        last,
      ),
      ['text-start', 'text-delta A', 'text-end', 'text-start', 'text-delta B', 'text-end', 'finish stop'],
    ],
    [
      'forgets to begin a block',
      sse(start, delta(0, { type: 'text_delta', text: 'A' }), stop(0), ending('end_turn'), last),
      ['text-start', 'text-delta A', 'text-end', 'finish stop'],
    ],
    [
      'says text in a thinking block',
      sse(
        start,
        block(0, { type: 'thinking', thinking: '', signature: '' }),
        delta(0, { type: 'thinking_delta', thinking: 'T' }),
        delta(0, { type: 'text_delta', text: 'A' }),
        stop(0),
        ending('end_turn'),
        last,
      ),
      [
        'reasoning-start',
        'reasoning-delta T',
        'reasoning-end',
        'text-start',
        'text-delta A',
        'text-end',
        'finish stop',
      ],
    ],
    [
      'begins twice',
      sse(start, ...words(0, 'A'), start, ...words(1, 'B'), ending('end_turn'), last),
      ['text-start', 'text-delta A', 'text-end', 'text-start', 'text-delta B', 'text-end', 'finish stop'],
    ],
    [
      'never begins',
      sse(...words(0, 'A'), ending('end_turn'), last),
      ['text-start', 'text-delta A', 'text-end', 'finish stop'],
    ],
    [
      'ends twice',
      sse(start, ...words(0, 'A'), ending('end_turn'), ending('max_tokens'), last, last),
      ['text-start', 'text-delta A', 'text-end', 'finish stop'],
    ],
    [
      'gives no reason',
      sse(start, ...words(0, 'A'), last),
      ['text-start', 'text-delta A', 'text-end', 'finish stop'],
    ],
    [
      'gives no reason after a call',
      sse(start, block(0, { type: 'tool_use', id: 'a', name: 'f', input: {} }), stop(0), last),
      ['tool-start', 'tool-end', 'finish tool-calls'],
    ],
    [
      'has no last frame',
      sse(start, ...words(0, 'A'), ending('end_turn')),
      ['text-start', 'text-delta A', 'text-end', 'finish stop'],
    ],
    [
      'says everything at the start of a block',
      sse(
        start,
        block(0, { type: 'text', text: 'A' }),
        stop(0),
        block(1, { type: 'thinking', thinking: 'T', signature: 'S' }),
        stop(1),
        block(2, { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } }),
        stop(2),
        ending('tool_use'),
        last,
      ),
      [
        'text-start',
        'text-delta A',
        'text-end',
        'reasoning-start',
        'reasoning-delta T',
        'reasoning-end',
        'tool-start',
        'tool-delta {"x":1}',
        'tool-end',
        'finish tool-calls',
      ],
    ],
    [
      'says a call twice',
      sse(
        start,
        block(0, { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } }),
        delta(0, { type: 'input_json_delta', partial_json: '{"x":1}' }),
        stop(0),
        ending('tool_use'),
        last,
      ),
      ['tool-start', 'tool-delta {"x":1}', 'tool-end', 'finish tool-calls'],
    ],
    ['ends a block that never was', sse(start, stop(7), ending('end_turn'), last), ['finish stop']],
    ['has an empty answer', sse(start, ending('end_turn'), last), ['finish stop']],
    [
      'sends a whole reply in one event',
      sse({
        ...start.message,
        type: 'message',
        content: [{ type: 'text', text: 'A' }],
        stop_reason: 'end_turn',
      }),
      ['text-start', 'text-delta A', 'text-end', 'finish stop'],
    ],
    [
      'sends events of kinds not known before it began',
      sse({ type: 'hello' }, start, ending('end_turn'), last),
      ['finish stop'],
    ],
    [
      'leaves out what a block is made of',
      sse(
        start,
        block(0, { type: 'tool_use' }),
        delta(0, { type: 'input_json_delta' }),
        stop(0),
        ending('tool_use'),
        last,
      ),
      ['tool-start', 'tool-delta ', 'tool-end', 'finish tool-calls'],
    ],
  ])('%s', (_name, text, expected) => {
    expect(short(decode(text))).toEqual(expected);
  });

  it.each<[string, string]>([
    ['garbage', 'data: {broken\n\n'],
    ['no object', 'data: [1]\n\n'],
    ['a block without content', sse(start, { type: 'content_block_start', index: 0 })],
    ['a piece without content', sse(start, { type: 'content_block_delta', index: 0 })],
    [
      'a piece of a call without its start',
      sse(start, delta(0, { type: 'input_json_delta', partial_json: '{' })),
    ],
    [
      'endless blocks',
      sse(start, ...Array.from({ length: 1025 }, (_item, index) => block(index, { type: 'text', text: '' }))),
    ],
  ])('%s ends the reply as an upstream error', (_name, text) => {
    const error = refusal(() => decode(text));
    expect([error.code, error.origin]).toEqual(['upstream_error', 'upstream']);
  });

  it('an error after some words keeps its meaning', () => {
    const error = refusal(() =>
      decode(
        sse(start, ...words(0, 'A'), {
          type: 'error',
          error: { type: 'overloaded_error', message: 'Overloaded' },
        }),
      ),
    );
    expect([error.code, error.origin, error.message]).toEqual([
      'server_is_overloaded',
      'upstream',
      'Overloaded',
    ]);
    expect(refusal(() => decode('data: {"error":{"message":"x","type":"rate_limit_error"}}\n\n')).code).toBe(
      'rate_limit_exceeded',
    );
  });

  it('ids that no provider takes back are re-spelled, others stay', () => {
    const ids = ['toolu_01', 'call|1:2', 'x'.repeat(300)].map((id, index) =>
      block(index, { type: 'tool_use', id, name: 'f', input: {} }),
    );
    const spelled = decode(sse(start, ...ids, ending('tool_use'), last)).flatMap((event) =>
      event.type === 'tool-start' ? [event.id] : [],
    );
    expect(spelled[0]).toBe('toolu_01');
    for (const id of spelled) expect(id).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  });

  it.each([
    ['end_turn', 'stop'],
    ['max_tokens', 'length'],
    ['stop_sequence', 'stop-sequence'],
    ['tool_use', 'tool-calls'],
    ['pause_turn', 'pause'],
    ['refusal', 'refusal'],
    ['model_context_window_exceeded', 'context-window'],
    ['compaction', 'compaction'],
    ['something_new', 'other'],
  ])('stop reason %s is %s', (raw, reason) => {
    expect(decode(sse(start, ending(raw), last)).at(-1)).toMatchObject({
      type: 'finish',
      reason,
      raw,
      format: 'messages',
    });
  });
});

const usageOf = (first: JsonObject, then: JsonObject) =>
  decode(
    sse({ ...start, message: { ...start.message, usage: first } }, ending('end_turn', then), last),
  ).findLast((event) => event.type === 'usage');

describe('usage', () => {
  it('is the golden example', () => {
    expect(
      usageOf(
        { input_tokens: 50, cache_read_input_tokens: 40, cache_creation_input_tokens: 10, output_tokens: 1 },
        { output_tokens: 30, output_tokens_details: { thinking_tokens: 20 } },
      ),
    ).toMatchObject({
      usage: { input: 100, output: 30, cacheRead: 40, cacheWrite: 10, reasoning: 20 },
    });
  });

  it.each<[string, JsonObject, JsonObject, JsonObject]>([
    ['only at the end', {}, { input_tokens: 7, output_tokens: 3 }, { input: 7, output: 3 }],
    [
      'nulls',
      { input_tokens: 7, cache_read_input_tokens: null, output_tokens: 0 },
      { input_tokens: null, output_tokens: 3, output_tokens_details: null },
      { input: 7, output: 3, cacheRead: 0 },
    ],
    ['zeros', { input_tokens: 0, output_tokens: 0 }, { output_tokens: 0 }, { input: 0, output: 0 }],
    ['nonsense', { input_tokens: 'many', output_tokens: -3 }, { output_tokens: {} }, { input: 0, output: 0 }],
    [
      'cache writes by lifetime alone',
      { input_tokens: 1, cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 3 } },
      { output_tokens: 1 },
      { input: 6, cacheWrite: 5, cacheWriteLong: 3 },
    ],
    [
      'runs of further models, which the top leaves out',
      { input_tokens: 412, output_tokens: 1 },
      {
        output_tokens: 531,
        iterations: [
          { type: 'message', input_tokens: 412, output_tokens: 89 },
          {
            type: 'advisor_message',
            model: 'large',
            input_tokens: 800,
            cache_read_input_tokens: 23,
            output_tokens: 1612,
          },
          {
            type: 'message',
            model: null,
            input_tokens: 936,
            cache_read_input_tokens: 412,
            output_tokens: 442,
          },
          { type: 'compaction', input_tokens: 10, output_tokens: 5 },
          { type: 'advisor_message', model: 'large', input_tokens: 1, output_tokens: 1 },
          'nonsense',
        ],
      },
      {
        input: 412 + 823 + 1348 + 10 + 1,
        output: 89 + 1612 + 442 + 5 + 1,
        cacheRead: 412 + 23,
        otherModels: [{ model: 'large', usage: { input: 824, output: 1613, cacheRead: 23 } }],
      },
    ],
    [
      'a fallback that answered, whose tokens the top repeats',
      { input_tokens: 50, output_tokens: 1 },
      {
        output_tokens: 20,
        iterations: [
          { type: 'message', model: 'first', input_tokens: 50, output_tokens: 2 },
          { type: 'fallback_message', model: 'second', input_tokens: 50, output_tokens: 20 },
        ],
      },
      { input: 100, output: 22, otherModels: [{ model: 'second', usage: { input: 50, output: 20 } }] },
    ],
    [
      'runs of which some are not listed',
      { input_tokens: 50, output_tokens: 1 },
      { output_tokens: 20, iterations: [{ type: 'message', input_tokens: 40, output_tokens: 5 }] },
      { input: 50, output: 20 },
    ],
  ])('%s', (_name, first, then, expected) => {
    expect(usageOf(first, then)).toMatchObject({ usage: expected });
  });

  it('is read from frames and bodies that pass through', () => {
    const tap = chat.usageTap();
    expect(
      tap.read(JSON.stringify(delta(0, { type: 'text_delta', text: 'the "usage" word' }))),
    ).toBeUndefined();
    expect(tap.read(JSON.stringify(start))).toMatchObject({ input: 3, output: 1 });
    expect(tap.read(JSON.stringify(ending('end_turn')))).toMatchObject({ input: 3, output: 5 });
    expect(chat.usageTap().read('{"usage":{"input_tokens":1,"output_tokens":2}}')).toMatchObject({
      input: 1,
      output: 2,
    });
    expect(chat.usageTap().read('"usage" {broken')).toBeUndefined();
    expect(count.usageTap().read('{"input_tokens":1,"usage":{}}')).toBeUndefined();
  });
});

describe('a whole reply', () => {
  it.each<[string, JsonObject]>([
    ['an error', { type: 'error', error: { type: 'api_error', message: 'x' } }],
    ['an error of another shape', { error: { message: 'x', code: 500 } }],
    ['something else', { hello: 'world' }],
  ])('that is %s is an upstream error', (_name, body) => {
    expect(refusal(() => chat.decodeWhole(body, {})).origin).toBe('upstream');
    expect(refusal(() => count.decodeWhole(body, {})).origin).toBe('upstream');
  });

  it('without a stop reason ends naturally', () => {
    expect(short(chat.decodeWhole({ content: [{ type: 'text', text: 'A' }] }, {}))).toEqual([
      'text-start',
      'text-delta A',
      'text-end',
      'finish stop',
    ]);
  });

  it('with odd blocks is decoded as far as it goes', () => {
    expect(
      short(
        chat.decodeWhole(
          {
            content: [7, { type: 'tool_use', id: 'a', name: 'f', input: '{"x":1}' }, {}],
            stop_reason: 'tool_use',
          },
          {},
        ),
      ),
    ).toEqual(['tool-start', 'tool-delta {"x":1}', 'tool-end', 'opaque', 'opaque', 'finish tool-calls']);
  });
});

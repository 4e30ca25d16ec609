import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { unsealProof } from '../../../core/formats/_shared/proof.ts';
import type { WireFrame } from '../../../core/sdk/format.ts';
import type { FinishReason, GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { checkLegal, inputsParse } from '../../support/legal-messages.ts';
import { chat, encoder, fold, framesOf } from './support.ts';
import { tries } from '../../support/tries.ts';

const head: GatewayEvent = { type: 'head', id: 'chatcmpl-abc123', model: 'up' };
const finish = (reason: FinishReason): GatewayEvent => ({ type: 'finish', choice: 0, reason });
const text = (block: number, words: string): GatewayEvent[] => [
  { type: 'text-start', block, choice: 0 },
  { type: 'text-delta', block, choice: 0, text: words },
  { type: 'text-end', block, choice: 0 },
];
const usage: GatewayEvent = {
  type: 'usage',
  usage: { input: 100, output: 30, cacheRead: 40, cacheWrite: 10, reasoning: 20 },
};

/** Names of the frames with what they are about. */
const short = (frames: readonly WireFrame[]): string[] =>
  frames.map((frame) => {
    const json = 'json' in frame ? frame.json : {};
    const about = (json.content_block ?? json.delta) as JsonObject | undefined;
    const words =
      about?.text ?? about?.thinking ?? about?.partial_json ?? about?.name ?? about?.stop_reason ?? '';
    return [json.type, json.index, about?.type, words]
      .filter((part) => part !== undefined && part !== '')
      .join(' ');
  });

describe('a reply of another format', () => {
  it('is the golden stream', () => {
    const frames = framesOf([
      head,
      { type: 'reasoning-start', block: 0, choice: 0 },
      { type: 'reasoning-delta', block: 0, choice: 0, text: 'A' },
      { type: 'reasoning-end', block: 0, choice: 0 },
      { type: 'text-start', block: 1, choice: 0 },
      { type: 'text-delta', block: 1, choice: 0, text: 'Hi' },
      { type: 'text-delta', block: 1, choice: 0, text: '!' },
      { type: 'text-end', block: 1, choice: 0 },
      { type: 'tool-start', block: 2, choice: 0, id: 'call_1', name: 'f' },
      { type: 'tool-start', block: 3, choice: 0, id: 'call_2', name: 'g' },
      { type: 'tool-delta', block: 3, choice: 0, input: '{}' },
      { type: 'tool-delta', block: 2, choice: 0, input: '{"x":1}' },
      { type: 'tool-end', block: 2, choice: 0 },
      { type: 'tool-end', block: 3, choice: 0 },
      finish('tool-calls'),
      { type: 'usage', usage: { input: 10, output: 7, cacheRead: 0, cacheWrite: 0, reasoning: 0 } },
    ]);
    expect(checkLegal(frames)).toEqual([]);
    expect(short(frames)).toEqual([
      'message_start',
      'content_block_start 0 thinking',
      'content_block_delta 0 thinking_delta A',
      'content_block_stop 0',
      'content_block_start 1 text',
      'content_block_delta 1 text_delta Hi',
      'content_block_delta 1 text_delta !',
      'content_block_stop 1',
      'content_block_start 2 tool_use f',
      'content_block_delta 2 input_json_delta {"x":1}',
      'content_block_stop 2',
      'content_block_start 3 tool_use g',
      'content_block_delta 3 input_json_delta {}',
      'content_block_stop 3',
      'message_delta tool_use',
      'message_stop',
    ]);
    expect(fold(frames)).toMatchObject({
      id: 'msg_abc123',
      model: 'm',
      content: [{}, {}, { type: 'tool_use', id: 'call_1', input: { x: 1 } }, { id: 'call_2' }],
      stop_reason: 'tool_use',
      usage: { input_tokens: 10, output_tokens: 7 },
    });
  });

  it('has an estimate first and the true numbers last', () => {
    const frames = framesOf([head, ...text(0, 'A'), finish('stop'), usage]);
    expect(frames[0]).toMatchObject({ json: { message: { usage: { input_tokens: 7, output_tokens: 0 } } } });
    expect(frames.at(-2)).toMatchObject({
      json: {
        usage: {
          input_tokens: 50,
          cache_read_input_tokens: 40,
          cache_creation_input_tokens: 10,
          output_tokens: 30,
          output_tokens_details: { thinking_tokens: 20 },
        },
      },
    });
    expect(framesOf([head, ...text(0, 'A'), finish('stop')]).at(-2)).toMatchObject({
      json: { usage: { input_tokens: 7, output_tokens: 0 } },
    });
  });

  it('starts with its first event, whatever that is', () => {
    const made = encoder();
    expect(made.event({ type: 'request', model: 'm', stream: true })).toEqual([]);
    expect(short(made.event({ type: 'tool-start', block: 0, choice: 0, id: '', name: 'f' }))).toEqual([
      'message_start',
      'content_block_start 0 tool_use f',
    ]);
  });

  it('passes the pieces of a call on at once', () => {
    const made = encoder();
    made.event(head);
    expect(short(made.event({ type: 'tool-start', block: 0, choice: 0, id: 'a', name: 'f' }))).toHaveLength(
      1,
    );
    expect(short(made.event({ type: 'tool-delta', block: 0, choice: 0, input: '{"a' }))).toEqual([
      'content_block_delta 0 input_json_delta {"a',
    ]);
  });

  it('with no words at all is still whole', () => {
    expect(checkLegal(framesOf([]))).toEqual([]);
    expect(fold(framesOf([head, finish('length')]))).toMatchObject({
      content: [],
      stop_reason: 'max_tokens',
      stop_sequence: null,
    });
  });

  it.each<[FinishReason, string]>([
    ['stop', 'end_turn'],
    ['stop-sequence', 'stop_sequence'],
    ['length', 'max_tokens'],
    ['context-window', 'model_context_window_exceeded'],
    ['content-filter', 'refusal'],
    ['refusal', 'refusal'],
    ['pause', 'pause_turn'],
    ['compaction', 'compaction'],
    ['malformed', 'end_turn'],
    ['other', 'end_turn'],
  ])('finish %s is %s', (reason, expected) => {
    expect(fold(framesOf([head, ...text(0, 'A'), finish(reason)])).stop_reason).toBe(expected);
  });

  it('says tool_use exactly when a tool was called', () => {
    const call: GatewayEvent[] = [
      { type: 'tool-start', block: 0, choice: 0, id: 'a', name: 'f' },
      { type: 'tool-end', block: 0, choice: 0 },
    ];
    expect(fold(framesOf([head, ...call, finish('stop')])).stop_reason).toBe('tool_use');
    expect(fold(framesOf([head, ...text(0, 'A'), finish('tool-calls')])).stop_reason).toBe('end_turn');
    expect(
      fold(
        framesOf([
          head,
          ...call,
          { type: 'finish', choice: 0, reason: 'other', raw: 'STOP', format: 'generate-content' },
        ]),
      ).stop_reason,
    ).toBe('tool_use');
  });

  it('declines in words, and says so', () => {
    const whole = fold(
      framesOf([
        head,
        { type: 'refusal-start', block: 0, choice: 0 },
        { type: 'refusal-delta', block: 0, choice: 0, text: 'No.' },
        { type: 'refusal-end', block: 0, choice: 0 },
        finish('stop'),
      ]),
    );
    expect(whole).toMatchObject({ content: [{ type: 'text', text: 'No.' }], stop_reason: 'refusal' });
  });

  it('ends with its text where that text has a proof of another vendor, because clients read the last block', () => {
    const lost: string[] = [];
    const proof = { format: 'generate-content', kind: 'signature', value: 's' } as const;
    const frames = framesOf(
      [
        head,
        { type: 'reasoning-start', block: 0, choice: 0 },
        { type: 'reasoning-delta', block: 0, choice: 0, text: 'Hm.' },
        { type: 'reasoning-end', block: 0, choice: 0 },
        { type: 'text-start', block: 1, choice: 0 },
        { type: 'text-delta', block: 1, choice: 0, text: 'A' },
        { type: 'text-end', block: 1, choice: 0, proof },
        finish('stop'),
      ],
      { drop: (path) => void lost.push(path) },
    );
    expect(checkLegal(frames)).toEqual([]);
    expect((fold(frames).content as JsonObject[]).map(({ type }) => type)).toEqual(['thinking', 'text']);
    expect(lost).toEqual(['text.proof']);
  });

  it('carries proofs of other vendors for the way back', () => {
    const proof = { format: 'generate-content', kind: 'signature', value: 's' } as const;
    const encrypted = { format: 'responses', kind: 'encrypted', value: 'e' } as const;
    const frames = framesOf([
      head,
      { type: 'reasoning-start', block: 0, choice: 0 },
      { type: 'reasoning-end', block: 0, choice: 0, proof: encrypted },
      { type: 'text-start', block: 1, choice: 0 },
      { type: 'text-delta', block: 1, choice: 0, text: 'A' },
      { type: 'text-end', block: 1, choice: 0, proof },
      { type: 'tool-start', block: 2, choice: 0, id: 'a', name: 'f', proof },
      { type: 'tool-end', block: 2, choice: 0 },
      finish('tool-calls'),
    ]);
    expect(checkLegal(frames)).toEqual([]);
    const whole = fold(frames);
    const content = whole.content as JsonObject[];
    expect(content.map(({ type }) => type)).toEqual(['thinking', 'text', 'thinking', 'thinking', 'tool_use']);
    expect(
      content.flatMap(({ signature }) => (typeof signature === 'string' ? [unsealProof(signature)] : [])),
    ).toEqual([{ proof: encrypted }, { proof, on: 'text' }, { proof, on: 'tool-call' }]);
    const back = chat.decodeRequest(
      {
        model: 'm',
        max_tokens: 1,
        messages: [
          { role: 'user', content: 'Hi' },
          { role: 'assistant', content },
        ],
      },
      {},
    );
    expect(
      back.messages[1]?.content.map((block) => [block.type, 'proof' in block ? block.proof : undefined]),
    ).toEqual([
      ['reasoning', encrypted],
      ['text', proof],
      ['tool-call', proof],
    ]);
  });

  it('quotes sources in the form that clients know, and knows them again', () => {
    const lost: string[] = [];
    const frames = framesOf(
      [
        head,
        { type: 'text-start', block: 0, choice: 0 },
        {
          type: 'citation',
          block: 0,
          choice: 0,
          citation: { url: 'https://a.example', title: 'A', start: 0, end: 1 },
        },
        { type: 'text-delta', block: 0, choice: 0, text: 'B' },
        { type: 'citation', block: 0, choice: 0, citation: { quote: 'of nowhere' } },
        { type: 'text-end', block: 0, choice: 0 },
        { type: 'text-start', block: 1, choice: 0 },
        { type: 'citation', block: 1, choice: 0, citation: { url: 'https://b.example' } },
        { type: 'text-end', block: 1, choice: 0 },
        finish('stop'),
      ],
      { drop: (path) => lost.push(path) },
    );
    expect(checkLegal(frames)).toEqual([]);
    expect(lost).toEqual(['citation']);
    expect(fold(frames).content).toMatchObject([
      {
        type: 'text',
        text: 'B',
        citations: [
          { type: 'web_search_result_location', url: 'https://a.example', title: 'A', cited_text: '' },
        ],
      },
    ]);
  });

  it('wraps a free-text call as an object, piece by piece', () => {
    const frames = framesOf([
      head,
      { type: 'tool-start', block: 0, choice: 0, id: 'a', name: 'exec', custom: true },
      { type: 'tool-delta', block: 0, choice: 0, input: 'print("1")\n\ud83d' },
      { type: 'tool-delta', block: 0, choice: 0, input: '\udc4b' },
      { type: 'tool-end', block: 0, choice: 0 },
      { type: 'tool-start', block: 1, choice: 0, id: 'b', name: 'exec', custom: true },
      { type: 'tool-end', block: 1, choice: 0 },
      finish('tool-calls'),
    ]);
    expect(inputsParse(frames)).toBe(true);
    expect(fold(frames).content).toMatchObject([
      { input: { input: 'print("1")\n👋' } },
      { input: { input: '' } },
    ]);
  });

  it('names what is lost, once', () => {
    const lost: string[] = [];
    const logprobs = [{ token: 'A', logprob: -1 }];
    framesOf(
      [
        { ...head, extra: { 'chat-completions': { system_fingerprint: 'fp', $x: 1 } } },
        { type: 'text-start', block: 0, choice: 0 },
        { type: 'text-delta', block: 0, choice: 0, text: 'A', logprobs },
        { type: 'text-delta', block: 0, choice: 0, text: 'B', logprobs },
        { type: 'text-end', block: 0, choice: 0 },
        { type: 'text-start', block: 1, choice: 1 },
        { type: 'text-delta', block: 1, choice: 1, text: 'other answer' },
        { type: 'media-start', block: 2, choice: 0, media: 'image' },
        { type: 'media-end', block: 2, choice: 0 },
        { type: 'opaque', format: 'responses', value: { type: 'file_search_call' } },
        { type: 'opaque', format: 'generate-content', value: {} },
        { type: 'finish', choice: 1, reason: 'stop' },
        finish('stop'),
      ],
      { drop: (path) => lost.push(path) },
    );
    expect(lost).toEqual([
      'system_fingerprint',
      'logprobs',
      'choices',
      'media',
      'opaque.file_search_call',
      'opaque.generate-content',
    ]);
  });

  it.each([
    ['msg_01abc', /^msg_01abc$/],
    ['chatcmpl-9x-Y', /^msg_9xY$/],
    ['resp_0a', /^msg_0a$/],
    ['', /^msg_[0-9a-f]{24}$/],
    ['msg_', /^msg_./],
  ])("id %j is spelled in the format's style", (id, expected) => {
    expect(fold(framesOf([{ type: 'head', id, model: 'x' }])).id).toMatch(expected);
  });
});

describe('in a long silence', () => {
  it('a ping is said, or nothing at length inside a block', () => {
    const made = encoder();
    const ping = [{ event: 'ping', json: { type: 'ping' } }];
    expect(made.keepAlive()).toEqual(ping);
    made.event(head);
    expect(made.keepAlive()).toEqual(ping);
    made.event({ type: 'text-start', block: 0, choice: 0 });
    expect(made.keepAlive()).toEqual(ping);
    made.event({ type: 'text-delta', block: 0, choice: 0, text: 'A' });
    expect(short(made.keepAlive())).toEqual(['content_block_delta 0 text_delta']);
    made.event({ type: 'text-end', block: 0, choice: 0 });
    made.event({ type: 'reasoning-start', block: 1, choice: 0 });
    made.event({ type: 'reasoning-delta', block: 1, choice: 0, text: 'A' });
    expect(short(made.keepAlive())).toEqual(['content_block_delta 1 thinking_delta']);
    made.event({ type: 'reasoning-end', block: 1, choice: 0 });
    made.event({ type: 'tool-start', block: 2, choice: 0, id: 'a', name: 'f' });
    expect(short(made.keepAlive())).toEqual(['content_block_delta 2 input_json_delta']);
    made.end();
    expect(made.keepAlive()).toEqual([]);
  });
});

describe('a reply that breaks', () => {
  it('ends with the error and nothing else, at any moment', () => {
    const events: GatewayEvent[] = [head, ...text(0, 'A'), finish('stop'), usage];
    for (let length = 0; length <= events.length; length += 1) {
      const made = encoder();
      const before = events.slice(0, length).flatMap((event) => made.event(event));
      const error = made.error(new GatewayError('upstream_cut', 'Cut.', { origin: 'upstream' }));
      expect(error).toEqual([
        {
          event: 'error',
          json: { type: 'error', error: { type: 'api_error', message: 'Cut.' }, request_id: 'req_1' },
        },
      ]);
      expect(checkLegal([...before, ...error])).toEqual([]);
      expect([
        ...made.event(events[1] ?? head),
        ...made.end(),
        ...made.keepAlive(),
        ...made.error(new GatewayError('internal_error', 'x')),
      ]).toEqual([]);
    }
  });
});

const proofs = fc.option(
  fc.record({
    format: fc.constantFrom('messages', 'generate-content'),
    kind: fc.constantFrom('signature' as const, 'encrypted' as const),
    value: fc.constantFrom('s1', 's2'),
  }),
  { nil: undefined },
);
const inBlock = { block: fc.integer({ min: 0, max: 4 }), choice: fc.constantFrom(0, 0, 0, 1) };
const words = fc.constantFrom('', 'a', '👋', '{"x":', '1}');
const anyEvent: fc.Arbitrary<GatewayEvent> = fc.oneof(
  fc.record({
    type: fc.constant('head' as const),
    id: fc.constantFrom('', 'msg_1', 'chatcmpl-1'),
    model: fc.constant('up'),
  }),
  fc.record({
    type: fc.constantFrom(
      'text-start' as const,
      'refusal-start' as const,
      'refusal-end' as const,
      'reasoning-start' as const,
      'tool-end' as const,
    ),
    ...inBlock,
  }),
  fc.record({
    type: fc.constantFrom('text-delta' as const, 'refusal-delta' as const, 'reasoning-delta' as const),
    text: words,
    ...inBlock,
  }),
  fc.record({
    type: fc.constantFrom('text-end' as const, 'reasoning-end' as const),
    ...inBlock,
    proof: proofs,
  }) as fc.Arbitrary<GatewayEvent>,
  fc.record({
    type: fc.constant('citation' as const),
    citation: fc.constantFrom({ url: 'https://a.example' }, {}),
    ...inBlock,
  }),
  fc.record({
    type: fc.constant('tool-start' as const),
    id: fc.uuid(),
    name: fc.constant('f'),
    custom: fc.boolean(),
    ...inBlock,
    proof: proofs,
  }) as fc.Arbitrary<GatewayEvent>,
  fc.record({ type: fc.constant('tool-delta' as const), input: words, ...inBlock }),
  fc.record({ type: fc.constant('media-delta' as const), data: words, ...inBlock }),
  fc.record({
    type: fc.constant('finish' as const),
    choice: fc.constantFrom(0, 1),
    reason: fc.constantFrom<FinishReason[]>('stop', 'tool-calls', 'length'),
  }),
  fc.constant(usage),
  fc
    .constantFrom<JsonObject[]>(
      {
        type: 'content_block_start',
        index: 3,
        content_block: { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      },
      { type: 'content_block_delta', index: 3, delta: { type: 'input_json_delta', partial_json: '{}' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'delta_of_tomorrow' } },
      { type: 'content_block_stop', index: 3 },
      { type: 'message_stop', x: 1 },
      { type: 'message_start' },
      { type: 'event_of_tomorrow' },
    )
    .map((value) => ({ type: 'opaque' as const, format: 'messages', value })),
);

describe('whatever events come', () => {
  it('the stream is legal, whole or broken, and silence never breaks it', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), fc.boolean(), (events, breaks) => {
        const made = encoder();
        const frames = events.flatMap((event) => [...made.event(event), ...made.keepAlive()]);
        frames.push(...(breaks ? made.error(new GatewayError('upstream_cut', 'Cut.')) : made.end()));
        expect(checkLegal(frames)).toEqual([]);
      }),
      { numRuns: tries(2000) },
    );
  });

  it('every word of well-formed blocks arrives, however calls interleave', () => {
    const block = fc.record({
      kind: fc.constantFrom('text', 'reasoning', 'tool'),
      pieces: fc.array(fc.constantFrom('a', 'b', '👋'), { minLength: 1, maxLength: 4 }),
    });
    fc.assert(
      fc.property(fc.array(block, { maxLength: 6 }), fc.infiniteStream(fc.nat()), (blocks, picks) => {
        const queues = blocks.map(({ kind, pieces }, number) => eventsOf(kind, pieces, number));
        const events: GatewayEvent[] = [head];
        for (;;) {
          const rest = queues.filter((queue) => queue.length > 0);
          const event = rest[(picks.next().value ?? 0) % rest.length]?.shift();
          if (event === undefined) break;
          events.push(event);
        }
        const frames = framesOf([...events, finish('stop')]);
        expect(checkLegal(frames)).toEqual([]);
        const contents = (fold(frames).content as JsonObject[]).map((content) =>
          JSON.stringify(content.text ?? content.thinking ?? content.input),
        );
        const meant = blocks.map(({ kind, pieces }) =>
          JSON.stringify(kind === 'tool' ? { _raw: pieces.join('') } : pieces.join('')),
        );
        expect(contents.toSorted()).toEqual(meant.toSorted());
      }),
      { numRuns: tries(500) },
    );
  });
});

function eventsOf(kind: string, pieces: readonly string[], block: number): GatewayEvent[] {
  const at = { block, choice: 0 };
  if (kind === 'tool') {
    return [
      { type: 'tool-start', ...at, id: `call_${block}`, name: 'f' },
      ...pieces.map((input): GatewayEvent => ({ type: 'tool-delta', ...at, input })),
      { type: 'tool-end', ...at },
    ];
  }
  const name = kind === 'text' ? 'text' : 'reasoning';
  return [
    { type: `${name}-start`, ...at },
    ...pieces.map((piece): GatewayEvent => ({ type: `${name}-delta`, ...at, text: piece })),
    { type: `${name}-end`, ...at },
  ];
}

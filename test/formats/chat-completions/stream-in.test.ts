import { describe, expect, it } from 'vitest';
import { parseSse, SseCutter } from '../../../core/formats/_shared/sse.ts';
import { fixturesOf } from '../../support/fixtures.ts';
import {
  decodeFrames,
  decoder,
  decodeSse,
  deltas,
  failureOf,
  fixture,
  type GatewayEvent,
  type JsonObject,
} from './support.ts';

/** Summarizes a reply with the deltas of each kind joined. */
function summarize(events: readonly GatewayEvent[]): Record<string, unknown> {
  const calls = new Map<number, { id: string; name: string; input: string }>();
  const found = { text: '', reasoning: '', refusal: '', finish: [] as string[] };
  for (const event of events) {
    if (event.type === 'text-delta') found.text += event.text;
    if (event.type === 'reasoning-delta') found.reasoning += event.text;
    if (event.type === 'refusal-delta') found.refusal += event.text;
    if (event.type === 'tool-start') calls.set(event.block, { id: event.id, name: event.name, input: '' });
    if (event.type === 'tool-delta') {
      const call = calls.get(event.block);
      if (call !== undefined) call.input += event.input;
    }
    if (event.type === 'finish') found.finish.push(event.reason);
  }
  return { ...found, calls: [...calls.values()] };
}

/** Every block starts once, ends once, and says nothing outside its life. */
function checkBlocks(events: readonly GatewayEvent[]): void {
  const open = new Map<number, string>();
  const seen = new Set<number>();
  const wrong: GatewayEvent[] = [];
  for (const event of events) {
    if (!('block' in event)) continue;
    const [kind = '', step] = event.type.split('-');
    if (step === 'start') {
      if (seen.has(event.block)) wrong.push(event);
      seen.add(event.block);
      open.set(event.block, kind);
    } else {
      if (open.get(event.block) !== (event.type === 'citation' ? 'text' : kind)) wrong.push(event);
      if (step === 'end') open.delete(event.block);
    }
  }
  expect(wrong).toEqual([]);
  expect([...open]).toEqual([]);
}

const call = (fragments: readonly JsonObject[], finish = 'tool_calls'): Record<string, unknown> => {
  const events = decodeFrames(
    deltas(
      fragments.map((fragment) => ({ tool_calls: [fragment] })),
      finish,
    ),
  );
  checkBlocks(events);
  return summarize(events);
};

const done = (input: string, id: unknown = 'call_1', name = 'f'): JsonObject =>
  ({ id, name, input }) as JsonObject;

const chunk = (more: JsonObject): { readonly data: string } => ({
  data: JSON.stringify({ id: 'chatcmpl-1', created: 1, model: 'm', ...more }),
});

const usage = (output: number): JsonObject => ({
  prompt_tokens: 5,
  completion_tokens: output,
  total_tokens: 5 + output,
});

const detail = (text: string, index: number): JsonObject => ({
  reasoning_details: [{ type: 'reasoning.summary', summary: text, index }],
});

describe('a stream cut anywhere between two reads', () => {
  it.each(fixturesOf('chat-completions', 'streams', '.sse'))('says the same: $name', (file) => {
    const bytes = Buffer.from(file.text);
    const expected = decodeSse(file.text);
    checkBlocks(expected);
    for (let at = 1; at < bytes.length; at += file.name === 'text' ? 1 : 7) {
      const cutter = new SseCutter();
      const runs = [cutter.push(bytes.subarray(0, at)), cutter.push(bytes.subarray(at)), cutter.end()];
      const events = decodeFrames(runs.flatMap((run) => (run === undefined ? [] : parseSse(run))));
      expect(events).toEqual(expected);
    }
  });

  it('says the same with other line ends', () => {
    const text = fixture('streams/text.sse');
    const expected = decodeSse(text);
    expect(decodeSse(text.replaceAll('\n', '\r\n'))).toEqual(expected);
    expect(decodeSse(text.replaceAll('\n', '\r'))).toEqual(expected);
    expect(decodeSse(text.replaceAll('data: ', 'data:'))).toEqual(expected);
    expect(decodeSse(`\uFEFF: hello\n\nretry: 5\n\n${text.trimEnd()}`)).toEqual(expected);
  });
});

describe('an upstream that goes away', () => {
  it('before the finish is cut, wherever it happens', () => {
    for (const file of fixturesOf('chat-completions', 'streams', '.sse')) {
      if (file.name === 'several-choices') continue;
      const frames = parseSse(file.text);
      const finish = frames.findIndex((frame) => /"finish_reason":"/.test(frame.data));
      for (let count = 0; count < finish; count += 1) {
        const error = failureOf(() => decodeFrames(frames.slice(0, count)));
        expect(error).toMatchObject({ code: 'upstream_cut', origin: 'upstream', status: 502 });
      }
    }
  });

  it('after the finish but before [DONE] has said everything', () => {
    const frames = parseSse(fixture('streams/text.sse')).filter((frame) => frame.data !== '[DONE]');
    expect(summarize(decodeFrames(frames)).finish).toEqual(['stop']);
    expect(summarize(decodeFrames(frames.slice(0, -1))).finish).toEqual(['stop']);
  });

  it('while one of two answers is open is cut', () => {
    const frames = parseSse(fixture('streams/several-choices.sse'));
    const second = frames.findLastIndex((frame) => frame.data.includes('"length"'));
    expect(failureOf(() => decodeFrames(frames.slice(0, second))).code).toBe('upstream_cut');
  });

  it('with [DONE] but no finish reason has ended naturally', () => {
    const frames = deltas([{ content: 'Hi' }]).filter((frame) => !frame.data.includes('"stop"'));
    const events = decodeFrames(frames);
    checkBlocks(events);
    expect(summarize(events)).toMatchObject({ text: 'Hi', finish: ['stop'] });
  });
});

describe('garbage and errors in the stream', () => {
  it.each(['{"id":', 'hello', '"text"', '5', 'null'])('%s is an upstream error', (data) => {
    expect(failureOf(() => decoder().frame({ data }))).toMatchObject({
      code: 'upstream_error',
      origin: 'upstream',
      status: 502,
    });
  });

  it.each([
    [
      '{"error":{"message":"Busy","type":"server_error","code":"server_is_overloaded"}}',
      'server_is_overloaded',
    ],
    ['{"error":{"message":"Slow","code":429}}', 'rate_limit_exceeded'],
    ['{"error":"It broke"}', 'upstream_error'],
    ['{"object":"error","message":"It broke","code":500}', 'upstream_error'],
    ['{"message":"It broke"}', 'upstream_error'],
    ['[{"error":{"code":503,"message":"Busy","status":"UNAVAILABLE"}}]', 'server_is_overloaded'],
    [
      '{"id":"x","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"Gone"}}',
      'upstream_error',
    ],
    ['{"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"error"}]}', 'upstream_error'],
  ])('%s', (data, code) => {
    expect(failureOf(() => decoder().frame({ data }))).toMatchObject({ code, origin: 'upstream' });
  });

  it('an event named error is one', () => {
    expect(failureOf(() => decoder().frame({ event: 'error', data: '{"detail":"It broke"}' })).message).toBe(
      'It broke',
    );
  });

  it('what comes after [DONE] is passed over', () => {
    const frames = [
      ...deltas([{ content: 'Hi' }]),
      { data: 'garbage' },
      { data: '{"error":{"message":"late"}}' },
    ];
    expect(summarize(decodeFrames(frames))).toMatchObject({ text: 'Hi' });
  });

  it('an answer with too many calls or too high a number is refused', () => {
    const many = Array.from({ length: 1100 }, (_, index) => ({
      index,
      id: `call_${index}`,
      function: { name: 'f', arguments: '{}' },
    }));
    expect(failureOf(() => decodeFrames(deltas([{ tool_calls: many }]))).code).toBe('upstream_error');
    const data = '{"id":"x","choices":[{"index":99999,"delta":{"content":"a"},"finish_reason":null}]}';
    expect(failureOf(() => decoder().frame({ data })).code).toBe('upstream_error');
  });
});

describe('tool calls as providers write them', () => {
  it('without an index', () => {
    const result = call([
      { id: 'call_1', function: { name: 'f', arguments: '' } },
      { function: { arguments: '{"a"' } },
      { id: 'call_2', function: { name: 'g', arguments: '{}' } },
      { id: 'call_1', function: { arguments: ':1}' } },
    ]);
    expect(result.calls).toEqual([done('{"a":1}'), done('{}', 'call_2', 'g')]);
  });

  it('whole in one chunk, several with index 0', () => {
    const result = call([
      { index: 0, id: 'call_1', function: { name: 'f', arguments: '{"a":1}' } },
      { index: 0, id: 'call_2', function: { name: 'f', arguments: '{"a":2}' } },
    ]);
    expect(result.calls).toEqual([done('{"a":1}'), done('{"a":2}', 'call_2')]);
  });

  it('without an id', () => {
    const { calls } = call([
      { index: 0, function: { name: 'f', arguments: '{"a":1}' } },
      { index: 0, function: { name: 'g', arguments: '{"a":2}' } },
    ]) as { calls: { id: string; name: string; input: string }[] };
    expect(calls.map(({ name, input }) => [name, input])).toEqual([
      ['f', '{"a":1}'],
      ['g', '{"a":2}'],
    ]);
    expect(calls[0]?.id).toMatch(/^call_[0-9a-f]{24}$/);
    expect(calls[0]?.id).not.toBe(calls[1]?.id);
  });

  it('with arguments as an object, as null, or missing', () => {
    expect(call([{ index: 0, id: 'call_1', function: { name: 'f', arguments: { a: 1 } } }]).calls).toEqual([
      done('{"a":1}'),
    ]);
    expect(call([{ index: 0, id: 'call_1', function: { name: 'f', arguments: null } }]).calls).toEqual([
      done(''),
    ]);
    expect(call([{ index: 0, id: 'call_1', function: { name: 'f' } }]).calls).toEqual([done('')]);
  });

  it('with the id and the name again on every fragment', () => {
    const result = call([
      { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{' } },
      { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '}' } },
      { index: 0, id: '', type: 'function', function: { name: '', arguments: '' } },
    ]);
    expect(result.calls).toEqual([done('{}')]);
  });

  it('with the name after the first arguments', () => {
    expect(
      call([
        { index: 0, id: 'call_1', function: { arguments: '{"a"' } },
        { index: 0, function: { name: 'f', arguments: ':1}' } },
      ]).calls,
    ).toEqual([done('{"a":1}')]);
  });

  it('split in the middle of an escape, as broken JSON, or very long', () => {
    expect(
      call([
        { index: 0, id: 'call_1', function: { name: 'f', arguments: '{"a":"\\' } },
        { index: 0, function: { arguments: 'n"}' } },
      ]).calls,
    ).toEqual([done('{"a":"\\n"}')]);
    expect(call([{ index: 0, id: 'call_1', function: { name: 'f', arguments: '{"a":' } }]).calls).toEqual([
      done('{"a":'),
    ]);
    const long = `"${'x'.repeat(1_000_000)}"`;
    expect(call([{ index: 0, id: 'call_1', function: { name: 'f', arguments: long } }]).calls).toEqual([
      done(long),
    ]);
  });

  it('with ids that other families refuse', () => {
    const { calls } = call([
      { index: 0, id: 'functions.get|time:0', function: { name: 'f', arguments: '{}' } },
    ]) as { calls: { id: string }[] };
    expect(calls[0]?.id).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    const again = call([
      { index: 0, id: 'functions.get|time:0', function: { name: 'f', arguments: '{}' } },
    ]) as { calls: { id: string }[] };
    expect(again.calls[0]?.id).toBe(calls[0]?.id);
  });

  it('with finish reason stop although calls were sent', () => {
    expect(
      call([{ index: 0, id: 'call_1', function: { name: 'f', arguments: '{}' } }], 'stop').finish,
    ).toEqual(['tool-calls']);
    expect(
      call([{ index: 0, id: 'call_1', function: { name: 'f', arguments: '{}' } }], 'length').finish,
    ).toEqual(['length']);
  });

  it('with the deprecated function_call', () => {
    const events = decodeFrames(
      deltas(
        [{ function_call: { name: 'f', arguments: '' } }, { function_call: { arguments: '{}' } }],
        'function_call',
      ),
    );
    checkBlocks(events);
    expect(summarize(events)).toMatchObject({ calls: [{ name: 'f', input: '{}' }], finish: ['tool-calls'] });
  });

  it('followed by text', () => {
    const events = decodeFrames(
      deltas([
        { tool_calls: [{ index: 0, id: 'call_1', function: { name: 'f', arguments: '{}' } }] },
        { content: 'Done.' },
      ]),
    );
    checkBlocks(events);
    expect(summarize(events)).toMatchObject({ text: 'Done.', calls: [done('{}')] });
  });

  it('with Google’s signature on the call', () => {
    const events = decodeFrames(
      deltas([
        {
          tool_calls: [
            {
              index: 0,
              id: 'call_1',
              extra_content: { google: { thought_signature: 'c2ln' } },
              function: { name: 'f', arguments: '{}' },
            },
          ],
        },
      ]),
    );
    expect(events.find((event) => event.type === 'tool-start')).toMatchObject({
      proof: { format: 'generate-content', kind: 'signature', value: 'c2ln' },
    });
  });
});

describe('other habits of providers', () => {
  it('usage in every chunk: the last one counts', () => {
    const events = decodeFrames([
      chunk({ choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null }], usage: usage(1) }),
      chunk({ choices: [{ index: 0, delta: { content: 'b' }, finish_reason: 'stop' }], usage: usage(2) }),
    ]);
    const usageEvents = events.filter((event) => event.type === 'usage');
    expect(usageEvents.at(-1)).toMatchObject({
      usage: { input: 5, output: 2, format: 'chat-completions', raw: usage(2) },
    });
  });

  it('content, finish and usage in one chunk', () => {
    const events = decodeFrames([
      chunk({
        choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1 },
      }),
    ]);
    checkBlocks(events);
    expect(events.map((event) => event.type)).toEqual([
      'head',
      'text-start',
      'text-delta',
      'text-end',
      'finish',
      'usage',
    ]);
  });

  it('a prompt filter chunk before the first answer stays for clients of this format', () => {
    const events = decodeSse(fixture('tolerated/azure.sse'));
    expect(events[0]).toMatchObject({ type: 'head', id: 'chatcmpl-az' });
    expect(events[1]).toMatchObject({
      type: 'opaque',
      format: 'chat-completions',
      value: { prompt_filter_results: [{ prompt_index: 0 }] },
    });
    expect(summarize(events)).toMatchObject({ text: 'Hi', finish: ['stop'] });
  });

  it('usage one level down', () => {
    expect(decodeSse(fixture('tolerated/groq.sse')).at(-1)).toMatchObject({
      type: 'usage',
      usage: { input: 3, output: 1 },
    });
  });

  it('the role on every chunk, an empty finish reason, a missing index', () => {
    const events = decodeFrames([
      chunk({ choices: [{ delta: { role: 'assistant', content: 'a' }, finish_reason: '' }] }),
      chunk({ choices: [{ delta: { role: 'assistant', content: 'b' }, finish_reason: 'stop' }] }),
    ]);
    expect(summarize(events)).toMatchObject({ text: 'ab', finish: ['stop'] });
    expect(events.filter((event) => event.type === 'head')).toHaveLength(1);
  });

  it('a whole message where a delta should be', () => {
    const events = decodeFrames([
      chunk({
        choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
      }),
    ]);
    expect(summarize(events)).toMatchObject({ text: 'Hi' });
  });

  it('content as parts, with the reasoning among them', () => {
    const events = decodeFrames(
      deltas([
        { content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }] },
        { content: [{ type: 'text', text: 'Yes.' }] },
        { content: '!' },
      ]),
    );
    checkBlocks(events);
    expect(summarize(events)).toMatchObject({ reasoning: 'Hm.', text: 'Yes.!' });
  });

  it('more after the finish, or a second finish, is passed over', () => {
    const frames = [...deltas([{ content: 'a' }]).slice(0, -1), ...deltas([{ content: 'b' }])];
    expect(summarize(decodeFrames(frames))).toMatchObject({ text: 'a', finish: ['stop'] });
  });

  it.each([
    ['max_tokens', 'length'],
    ['eos', 'stop'],
    ['SAFETY', 'content-filter'],
    ['insufficient_system_resource', 'length'],
    ['whatever', 'other'],
  ])('finish reason %s means %s', (word, reason) => {
    expect(summarize(decodeFrames(deltas([{ content: 'a' }], word))).finish).toEqual([reason]);
  });

  it('base64 of a sound that is cut anywhere', () => {
    const events = decodeFrames(
      deltas([
        { audio: { id: 'a', data: 'UklGR' } },
        { audio: { data: 'gAAA' } },
        { audio: { data: 'AAA' } },
      ]),
    );
    checkBlocks(events);
    const pieces = events.flatMap((event) =>
      event.type === 'media-delta' && event.data !== undefined ? [event.data] : [],
    );
    expect(pieces.join('')).toBe('UklGRgAAAAAA');
    for (const piece of pieces) expect(piece.length % 4).toBe(0);
  });
});

describe('reasoning as providers write it', () => {
  it('a copy in another field is not said twice', () => {
    const events = decodeFrames(deltas([{ reasoning_content: 'A', reasoning: 'A' }, { reasoning: 'B' }]));
    expect(summarize(events)).toMatchObject({ reasoning: 'AB' });
  });

  it('details without text beside a string', () => {
    const events = decodeFrames(
      deltas([
        { reasoning_content: 'A' },
        {
          reasoning_details: [
            { type: 'reasoning.text', text: '', signature: 'c2ln', format: 'anthropic-claude-v1', index: 0 },
          ],
        },
        { content: 'Hi' },
      ]),
    );
    checkBlocks(events);
    expect(events.find((event) => event.type === 'reasoning-end')).toMatchObject({
      block: 0,
      proof: { format: 'messages', kind: 'signature', value: 'c2ln' },
    });
  });

  it('another index is another reasoning', () => {
    const events = decodeFrames(deltas([detail('A', 0), detail('B', 0), detail('C', 1)]));
    checkBlocks(events);
    expect(events.filter((event) => event.type === 'reasoning-start')).toHaveLength(2);
  });

  it('a proof for a call that comes later waits for it', () => {
    const events = decodeFrames(
      deltas([
        {
          reasoning_details: [
            { type: 'reasoning.encrypted', data: 'c2ln', id: 'call_1', format: 'google-gemini-v1', index: 0 },
          ],
        },
        { content: 'Hi' },
        { tool_calls: [{ index: 0, id: 'call_1', function: { name: 'f', arguments: '{}' } }] },
      ]),
    );
    checkBlocks(events);
    expect(events.find((event) => event.type === 'tool-start')).toMatchObject({
      proof: { format: 'generate-content', value: 'c2ln' },
    });
  });

  it('a proof whose call never comes is still told', () => {
    const events = decodeFrames(
      deltas([
        {
          reasoning_details: [
            { type: 'reasoning.encrypted', data: 'c2ln', id: 'call_1', format: 'google-gemini-v1' },
          ],
        },
      ]),
    );
    checkBlocks(events);
    expect(events.find((event) => event.type === 'reasoning-end')).toMatchObject({
      proof: { value: 'c2ln' },
    });
  });

  describe('inline', () => {
    const text = '\n<think>Let me <b>see</b> < 5.</think>\n\nIt is <think> 4.';

    it('is told from the answer wherever it is cut', () => {
      for (let first = 0; first < text.length; first += 1) {
        for (const second of [first, first + 3, text.length]) {
          const pieces = [text.slice(0, first), text.slice(first, second), text.slice(second)].map(
            (content) => ({ content }),
          );
          const events = decodeFrames(deltas(pieces), { inlineThinking: true });
          checkBlocks(events);
          expect(summarize(events)).toMatchObject({
            reasoning: 'Let me <b>see</b> < 5.',
            text: 'It is <think> 4.',
          });
        }
      }
    });

    it('stays text where the model’s traits do not speak of it', () => {
      expect(summarize(decodeFrames(deltas([{ content: text }])))).toMatchObject({ text, reasoning: '' });
    });

    it('may be all there is, and its absence delays nothing but a beginning like it', () => {
      expect(
        summarize(
          decodeFrames(deltas([{ content: '<think>Hm' }, { content: '</th' }]), { inlineThinking: true }),
        ),
      ).toMatchObject({ reasoning: 'Hm</th', text: '' });
      expect(summarize(decodeFrames(deltas([{ content: '<th' }]), { inlineThinking: true }))).toMatchObject({
        text: '<th',
      });
      const stream = decoder({ inlineThinking: true });
      const [, frame] = deltas([{ content: 'Hello' }]);
      expect(stream.frame(frame ?? { data: '' }).some((event) => event.type === 'text-delta')).toBe(true);
    });
  });
});

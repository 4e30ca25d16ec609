import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { JsonCutter } from '../../../core/formats/_shared/json-frames.ts';
import { parseSse, SseCutter } from '../../../core/formats/_shared/sse.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { chat, decodeSse, fixtures, names, readJson, readStream, thrown } from './support.ts';

const golden = readdirSync(join(fixtures, 'streams')).filter((file) => file.endsWith('.events.json'));

describe('golden events', () => {
  test.each(golden)('%s', (file) => {
    const name = file.slice(0, -'.events.json'.length);
    expect(decodeSse(readStream(name))).toEqual(readJson('streams', `${name}.events`));
  });
});

/** Random ids of calls that came without one are all that may differ between two readings. */
function steady(events: readonly GatewayEvent[]): unknown {
  return JSON.parse(JSON.stringify(events).replaceAll(/call_[0-9a-f]{24}/g, 'call_x'));
}

function decodeChunks(...chunks: JsonObject[]): GatewayEvent[] {
  const decoder = chat.decodeStream!({});
  return [
    ...chunks.flatMap((chunk) => [...decoder.frame({ data: JSON.stringify(chunk) })]),
    ...decoder.end(),
  ];
}

const part = (value: JsonObject, more: JsonObject = {}): JsonObject => ({
  candidates: [{ content: { parts: [value], role: 'model' }, index: 0, ...more }],
});
const stop: JsonObject = { candidates: [{ finishReason: 'STOP', index: 0 }] };
const types = (events: readonly GatewayEvent[]): string[] => events.map(({ type }) => type);

describe('however the bytes come', () => {
  test.each(names('streams', '.sse'))('%s split at every byte', (name) => {
    const bytes = Buffer.from(readStream(name));
    const whole = steady(decodeSse(bytes.toString()));
    const decoder = chat.decodeStream!({});
    const cutter = new SseCutter();
    const events: GatewayEvent[] = [];
    for (const byte of bytes) {
      const run = cutter.push(Buffer.from([byte]));
      if (run !== undefined) for (const frame of parseSse(run)) events.push(...decoder.frame(frame));
    }
    events.push(...decoder.end());
    expect(steady(events)).toEqual(whole);
  });

  test.each(names('streams', '.sse'))('%s with CRLF and CR, comments, no blank line at the end', (name) => {
    const text = readStream(name);
    const whole = steady(decodeSse(text));
    expect(steady(decodeSse(text.replaceAll('\n', '\r\n')))).toEqual(whole);
    expect(steady(decodeSse(text.replaceAll('\n', '\r')))).toEqual(whole);
    expect(steady(decodeSse(`: hello\n${text.trimEnd()}`.replaceAll('data: ', 'data:')))).toEqual(whole);
  });

  test.each(names('streams', '.sse'))('%s as a JSON array or as lines', (name) => {
    const chunks = parseSse(readStream(name)).map(({ data }) => data);
    const whole = steady(decodeSse(readStream(name)));
    for (const text of [`[${chunks.join(',\r\n')}]`, `${chunks.join('\n')}\n`]) {
      const decoder = chat.decodeStream!({});
      const events = new JsonCutter().push(Buffer.from(text)).flatMap((frame) => [...decoder.frame(frame)]);
      expect(steady([...events, ...decoder.end()])).toEqual(whole);
    }
    const decoder = chat.decodeStream!({});
    expect(steady([...decoder.frame({ data: `[${chunks.join(',')}]` }), ...decoder.end()])).toEqual(whole);
  });

  test.each(names('streams', '.sse'))('%s cut before its last chunk is a cut, not an end', (name) => {
    const frames = parseSse(readStream(name));
    const decoder = chat.decodeStream!({});
    for (const frame of frames.slice(0, -1)) decoder.frame(frame);
    const error = thrown(() => decoder.end()) as GatewayError;
    expect(error).toBeInstanceOf(GatewayError);
    expect([error.code, error.origin]).toEqual(['upstream_cut', 'upstream']);
  });

  test('a proxy’s [DONE] is no garbage', () => {
    expect(types(decodeSse(`${readStream('text')}data: [DONE]\n\n`)).at(-1)).toBe('finish');
  });
});

describe('what providers really send', () => {
  test('a finish in every chunk ends the answer once, at the end', () => {
    const events = decodeChunks(
      part({ text: 'a' }, { finishReason: 'STOP' }),
      part({ text: 'b' }, { finishReason: 'STOP' }),
      { usageMetadata: { promptTokenCount: 1, totalTokenCount: 2 } },
    );
    expect(types(events)).toEqual([
      'head',
      'text-start',
      'text-delta',
      'text-delta',
      'text-end',
      'finish',
      'usage',
    ]);
  });

  test('one candidate that is missing its end is a cut', () => {
    const text = { content: { parts: [{ text: 'x' }], role: 'model' } };
    const both = {
      candidates: [
        { ...text, index: 0, finishReason: 'STOP' },
        { ...text, index: 1 },
      ],
    };
    expect((thrown(() => decodeChunks(both)) as GatewayError).code).toBe('upstream_cut');
  });

  test('an empty stream is a cut', () => {
    expect((thrown(() => decodeChunks()) as GatewayError).code).toBe('upstream_cut');
  });

  test('an unspecified finish is no finish', () => {
    expect(
      (
        thrown(() =>
          decodeChunks(part({ text: 'x' }, { finishReason: 'FINISH_REASON_UNSPECIFIED' })),
        ) as GatewayError
      ).code,
    ).toBe('upstream_cut');
  });

  test('a call without an id gets one, a strange id is spelled so that every client takes it', () => {
    const events = decodeChunks(
      part({ functionCall: { name: 'f', args: {} } }),
      part({ functionCall: { id: 'a|b:c', name: 'g' } }, { finishReason: 'STOP' }),
    );
    const starts = events.filter((event) => event.type === 'tool-start');
    expect(starts.map(({ id }) => id)).toEqual([
      expect.stringMatching(/^call_[0-9a-f]{24}$/),
      expect.stringMatching(/^a_b_c_[\w-]+$/),
    ]);
    expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'tool-calls', raw: 'STOP' });
  });

  test('arguments keep the order of their keys', () => {
    const events = decodeChunks(
      part({ functionCall: { name: 'f', args: { z: 1, a: { y: 2, b: 3 } } } }, { finishReason: 'STOP' }),
    );
    expect(events.find((event) => event.type === 'tool-delta')).toMatchObject({
      input: '{"z":1,"a":{"y":2,"b":3}}',
    });
  });

  test('counts as strings, missing or null are read', () => {
    const read = (usageMetadata: JsonObject) => {
      const event = decodeChunks({ ...stop, usageMetadata }).find(({ type }) => type === 'usage');
      return event?.type === 'usage' ? event.usage : undefined;
    };
    expect(
      read({
        promptTokenCount: '12',
        candidatesTokenCount: '3',
        thoughtsTokenCount: null,
        totalTokenCount: '15',
      }),
    ).toMatchObject({ input: 12, output: 3, reasoning: 0 });
    expect(read({ promptTokenCount: 12, totalTokenCount: 20 })).toMatchObject({ input: 12, output: 8 });
    expect(read({})).toMatchObject({ input: 0, output: 0, cacheRead: 0 });
    expect(
      read({
        promptTokenCount: 5,
        toolUsePromptTokenCount: 7,
        cachedContentTokenCount: 2,
        candidatesTokenCount: 1,
        thoughtsTokenCount: 4,
      }),
    ).toMatchObject({
      input: 12,
      cacheRead: 2,
      output: 5,
      reasoning: 4,
    });
  });

  test.each([
    ['{"candidates":[null,7,{"content":null,"finishReason":"STOP"}]}'],
    ['{"candidates":[{"content":{"parts":null},"finishReason":"STOP"}]}'],
    ['{"candidates":[{"content":{"parts":[null,"x",{}]},"finishReason":"STOP"}],"usageMetadata":7}'],
    [
      '{"candidates":[{"content":{"parts":[{"text":5},{"functionCall":"f"},{"inlineData":[]}]},"finishReason":"STOP"}]}',
    ],
    [
      '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":"text"}}]},"finishReason":"STOP","groundingMetadata":[1]}]}',
    ],
    [
      '{"candidates":[{"finishReason":"STOP","logprobsResult":{"chosenCandidates":[1,null]},"groundingMetadata":{"groundingChunks":[1],"groundingSupports":[{"groundingChunkIndices":[9,"x"]}]}}]}',
    ],
  ])('odd shapes do no harm: %s', (data) => {
    const decoder = chat.decodeStream!({});
    const events = [...decoder.frame({ data }), ...decoder.end()];
    expect(types(events).filter((type) => type === 'finish')).toHaveLength(1);
  });

  test.each(['{', 'null', '7', '"x"', '[1]', '<html>'])('garbage is the upstream’s fault: %s', (data) => {
    const error = thrown(() => chat.decodeStream!({}).frame({ data })) as GatewayError;
    expect(error).toBeInstanceOf(GatewayError);
    expect([error.code, error.origin]).toEqual(['upstream_error', 'upstream']);
  });

  test('an endless list of parts is refused', () => {
    const parts = Array.from({ length: 1100 }, (_, index) => ({
      functionCall: { name: `f${index}`, args: {} },
    }));
    const error = thrown(() =>
      decodeChunks({ candidates: [{ content: { parts }, index: 0 }] }),
    ) as GatewayError;
    expect(error.code).toBe('upstream_error');
  });

  test.each([
    [
      '{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}',
      'server_is_overloaded',
    ],
    ['[{"error":{"code":429,"message":"Quota.","status":"RESOURCE_EXHAUSTED"}}]', 'rate_limit_exceeded'],
    [
      '{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}',
      'context_length_exceeded',
    ],
    ['{"error":"broken"}', 'upstream_error'],
  ])('an error in the stream is that error: %s', (data, code) => {
    const decoder = chat.decodeStream!({});
    decoder.frame({ data: JSON.stringify(part({ text: 'so far' })) });
    expect((thrown(() => decoder.frame({ data })) as GatewayError).code).toBe(code);
  });

  test('a whole error body under status 200 is an error', () => {
    const error = thrown(() =>
      chat.decodeWhole({ error: { code: 500, message: 'Oops', status: 'INTERNAL' } }, {}),
    ) as GatewayError;
    expect([error.code, error.origin]).toEqual(['upstream_error', 'upstream']);
    expect((thrown(() => chat.decodeWhole({ hello: 1 }, {})) as GatewayError).code).toBe('upstream_error');
  });

  test('a whole reply without candidates, or without a reason, is complete', () => {
    expect(chat.decodeWhole({ responseId: 'r', usageMetadata: {} }, {}).at(-1)).toMatchObject({
      type: 'finish',
      reason: 'other',
    });
    expect(chat.decodeWhole(part({ text: 'x' }), {}).at(-1)).toMatchObject({
      type: 'finish',
      reason: 'stop',
    });
  });

  test('every reason has its meaning', () => {
    const reasonOf = (finishReason: string) => {
      const event = decodeChunks({ candidates: [{ finishReason, index: 0 }] }).at(-1);
      return event?.type === 'finish' ? event.reason : undefined;
    };
    expect(reasonOf('STOP')).toBe('stop');
    expect(reasonOf('MAX_TOKENS')).toBe('length');
    for (const word of [
      'SAFETY',
      'RECITATION',
      'LANGUAGE',
      'BLOCKLIST',
      'PROHIBITED_CONTENT',
      'SPII',
      'IMAGE_SAFETY',
    ])
      expect(reasonOf(word)).toBe('content-filter');
    for (const word of [
      'MALFORMED_FUNCTION_CALL',
      'UNEXPECTED_TOOL_CALL',
      'TOO_MANY_TOOL_CALLS',
      'MALFORMED_RESPONSE',
    ])
      expect(reasonOf(word)).toBe('malformed');
    for (const word of ['OTHER', 'NO_IMAGE', 'IMAGE_OTHER', 'A_WORD_OF_TOMORROW'])
      expect(reasonOf(word)).toBe('other');
    expect(reasonOf('CONTINUATION')).toBe('pause');
  });
});

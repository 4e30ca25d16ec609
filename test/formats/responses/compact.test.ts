import { describe, expect, test } from 'vitest';
import { compactCodec } from '../../../core/formats/responses/compact.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';

const object: JsonObject = {
  id: 'resp_1',
  object: 'response.compaction',
  created_at: 1,
  output: [{ id: 'cmp_1', type: 'compaction', encrypted_content: 'gAAAA' }],
  usage: {
    input_tokens: 139,
    input_tokens_details: { cached_tokens: 30, cache_write_tokens: 0 },
    output_tokens: 438,
    output_tokens_details: { reasoning_tokens: 64 },
    total_tokens: 577,
  },
};

const context = {
  model: 'm',
  body: { model: 'm' },
  requestId: 'req_1',
  created: 1,
  inputEstimate: 0,
  drop: () => {},
};

const write = (events: readonly GatewayEvent[]): JsonObject => {
  const encoder = compactCodec.encodeWhole(context);
  for (const event of events) encoder.event(event);
  return encoder.end();
};

describe('the object of a compaction', () => {
  test('comes back as it was, and tells its usage', () => {
    const events = compactCodec.decodeWhole(object, {});
    expect(write(events)).toEqual(object);
    expect(events[1]).toMatchObject({
      type: 'usage',
      usage: { input: 139, output: 438, cacheRead: 30, reasoning: 64 },
    });
    expect(compactCodec.usageTap().read(JSON.stringify(object))).toMatchObject({ input: 139, output: 438 });
  });

  test('without usage tells none', () => {
    const { usage: _usage, ...rest } = object;
    expect(compactCodec.decodeWhole(rest, {})).toEqual([{ type: 'result', value: rest }]);
  });

  test.each<[string, JsonObject, string]>([
    [
      'an error',
      { error: { message: 'Too long.', code: 'context_length_exceeded' } },
      'context_length_exceeded',
    ],
    ['something else', { hello: 'world' }, 'upstream_error'],
  ])('that is %s is a failure of the provider', (_name, body, code) => {
    expect(() => compactCodec.decodeWhole(body, {})).toThrow(expect.objectContaining({ code }));
  });
});

describe('a request for compaction', () => {
  const body: JsonObject = {
    model: 'm',
    input: 'Hello',
    instructions: 'Be brief.',
    stream: true,
    generate: true,
  };

  test('may ask for an answer as a stream', () => {
    expect(compactCodec.peek(body, {})).toEqual({ model: 'm', stream: true });
    expect(compactCodec.peek({ model: 'm' }, {})).toEqual({ model: 'm', stream: false });
  });

  test('is written for its provider on a path of its own, without what only a gateway reads', () => {
    const target = {
      model: 'n',
      stream: false,
      traits: {},
      headers: {},
      unsupported: 'refuse',
      drop: () => {},
    } as const;
    const encoded = compactCodec.encodeRequest(compactCodec.decodeRequest(body, {}), target);
    expect(encoded.path).toBe('/responses/compact');
    expect(encoded.body).toEqual({ model: 'n', input: 'Hello', instructions: 'Be brief.' });
    expect(compactCodec.passThrough('n', false, {}).path).toBe('/responses/compact');
  });

  test.each<[JsonObject, string]>([
    [{ input: 'x' }, 'model'],
    [{ model: 'm', input: 'x', stream: 'yes' }, 'stream'],
    [{ model: 'm', input: 'x', generate: 1 }, 'generate'],
    [{ model: 'm', input: 5 }, 'input'],
  ])('%j is refused by name', (wrong, param) => {
    expect(() => compactCodec.validate(wrong, {})).toThrow(expect.objectContaining({ status: 400, param }));
  });
});

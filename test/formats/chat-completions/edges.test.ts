import { describe, expect, it } from 'vitest';
import { errorTable, GatewayError, type ErrorCode } from '../../../core/sdk/errors.ts';
import chatCompletions from '../../../core/formats/chat-completions/index.ts';
import { readUsage } from '../../../core/formats/chat-completions/usage.ts';
import { codec, type JsonObject } from './support.ts';

function headers(code: ErrorCode, details = {}): Readonly<Record<string, string>> {
  return chatCompletions.errorReply(new GatewayError(code, 'x', details), 'r').headers;
}

function marked(data: string): boolean {
  return codec.marks.usage.some((mark) => data.includes(mark));
}

describe('an error before the first byte', () => {
  it.each(Object.keys(errorTable) as ErrorCode[])(
    '%s has the four fields, a string or null as code, and its status',
    (code) => {
      const reply = chatCompletions.errorReply(new GatewayError(code, 'It failed.', { param: 'x' }), 'req_1');
      expect(reply.status).toBe(errorTable[code].status);
      expect(reply.headers['x-request-id']).toBe('req_1');
      const { error } = reply.body as { readonly error: JsonObject };
      expect(Object.keys(error)).toEqual(['message', 'type', 'param', 'code']);
      expect(error).toMatchObject({ message: 'It failed.', param: 'x', type: expect.any(String) as string });
      expect(error.code === null || typeof error.code === 'string').toBe(true);
    },
  );

  it('is the golden one for a model outside the key’s list', () => {
    const error = new GatewayError('model_not_allowed', 'This API key has no access to model m.', {
      param: 'model',
    });
    expect(chatCompletions.errorReply(error, 'req_1')).toMatchObject({
      status: 403,
      body: {
        error: {
          message: 'This API key has no access to model m.',
          type: 'invalid_request_error',
          param: 'model',
          code: 'model_not_allowed',
        },
      },
    });
  });

  it.each<[ErrorCode, string, string | null]>([
    ['missing_api_key', 'invalid_request_error', null],
    ['invalid_api_key', 'invalid_request_error', 'invalid_api_key'],
    ['expired_api_key', 'invalid_request_error', 'invalid_api_key'],
    ['rate_limit_exceeded', 'rate_limit_error', 'rate_limit_exceeded'],
    ['insufficient_quota', 'insufficient_quota', 'insufficient_quota'],
    ['internal_error', 'server_error', 'internal_error'],
    ['no_available_channel', 'service_unavailable_error', 'no_available_channel'],
    ['upstream_timeout', 'server_error', 'upstream_timeout'],
  ])('%s is %s / %s', (code, type, word) => {
    expect(chatCompletions.errorReply(new GatewayError(code, 'x'), 'r').body).toMatchObject({
      error: { type, code: word },
    });
  });

  it('tells clients when to come back, or not to', () => {
    expect(headers('rate_limit_exceeded', { retryAfter: 7 })).toMatchObject({ 'retry-after': '7' });
    expect(headers('rate_limit_exceeded')).toMatchObject({ 'retry-after': '1' });
    expect(headers('insufficient_quota')).toMatchObject({ 'x-should-retry': 'false' });
    expect(headers('insufficient_quota')).not.toHaveProperty('retry-after');
    expect(headers('endpoint_not_supported')).toMatchObject({ 'x-should-retry': 'false' });
    expect(headers('invalid_value')).not.toHaveProperty('x-should-retry');
    expect(headers('method_not_allowed', { headers: { allow: 'POST' } })).toMatchObject({ allow: 'POST' });
  });
});

describe('usage', () => {
  it.each<[string, JsonObject, JsonObject]>([
    [
      'official',
      {
        prompt_tokens: 100,
        completion_tokens: 30,
        total_tokens: 130,
        prompt_tokens_details: { cached_tokens: 40, cache_write_tokens: 10 },
        completion_tokens_details: { reasoning_tokens: 20 },
      },
      { input: 100, output: 30, cacheRead: 40, cacheWrite: 10, reasoning: 20 },
    ],
    [
      'DeepSeek’s cache',
      { prompt_tokens: 100, completion_tokens: 3, total_tokens: 103, prompt_cache_hit_tokens: 64 },
      { input: 100, cacheRead: 64 },
    ],
    [
      'reasoning left out of the output',
      {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 35,
        completion_tokens_details: { reasoning_tokens: 20 },
      },
      { input: 10, output: 25, reasoning: 20 },
    ],
    [
      'the cache left out of the prompt',
      {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 55,
        prompt_tokens_details: { cached_tokens: 40 },
      },
      { input: 50, output: 5, cacheRead: 40 },
    ],
    [
      'details null',
      {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 15,
        prompt_tokens_details: null,
        completion_tokens_details: null,
      },
      { input: 10, output: 5, reasoning: 0 },
    ],
    ['numbers as text', { prompt_tokens: '10', completion_tokens: '5' }, { input: 10, output: 5 }],
    ['nothing', {}, { input: 0, output: 0 }],
    ['nonsense', { prompt_tokens: -5, completion_tokens: {} } as JsonObject, { input: 0, output: 0 }],
  ])('%s', (_what, raw, expected) => {
    expect(readUsage(raw)).toMatchObject({ ...expected, raw, format: 'chat-completions' });
  });

  it('is tapped from frames and whole replies, and nothing else', () => {
    const tap = codec.usageTap();
    expect(tap.read('{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}')).toMatchObject({
      input: 1,
      output: 2,
    });
    for (const data of ['[DONE]', '{"usage":null}', '{"choices":[]}', 'garbage', ''])
      expect(tap.read(data)).toBeUndefined();
  });

  it('is asked for when the client did not, and only then', () => {
    const body = { model: 'm', stream: true, stream_options: { include_obfuscation: false } };
    expect(codec.askUsage?.(body)).toEqual({
      stream_options: { include_obfuscation: false, include_usage: true },
    });
    const request = { stream: true, stream_options: { include_usage: true } };
    expect(codec.askUsage?.(request)).toBeUndefined();
    const whole = { stream: false };
    expect(codec.askUsage?.(whole)).toBeUndefined();
    expect(codec.isUsageOnly?.('{"id":"x","choices":[],"usage":{"prompt_tokens":1}}')).toBe(true);
    expect(codec.isUsageOnly?.('{"id":"x","choices":[],"usage":null}')).toBe(false);
    expect(codec.isUsageOnly?.('{"id":"x","choices":[{"index":0}],"usage":{"prompt_tokens":1}}')).toBe(false);
    expect(codec.isUsageOnly?.('[DONE]')).toBe(false);
  });

  it('that is null is not marked as usage', () => {
    expect(marked('data: {"choices":[],"usage":null}')).toBe(false);
    expect(marked('data: {"choices":[],"usage":{"prompt_tokens":1}}')).toBe(true);
    expect(marked('data: {"choices": [], "usage": {"prompt_tokens": 1}}')).toBe(true);
  });
});

describe('edits of a pass-through', () => {
  const body = { model: 'a', messages: [], x: 1 };

  it('change what they name and nothing else', () => {
    expect(codec.patch(body, { model: 'b' }, {})).toEqual({ ...body, model: 'b' });
    expect(Object.keys(codec.patch(body, { model: 'b' }, {}))).toEqual(['model', 'messages', 'x']);
    expect(codec.patch(body, { settings: { maxOutput: 5 } }, {})).toEqual({
      ...body,
      max_completion_tokens: 5,
    });
    expect(codec.patch(body, { settings: { maxOutput: 5 } }, { outputLimitField: 'max_tokens' })).toEqual({
      ...body,
      max_tokens: 5,
    });
    expect(codec.patch({ ...body, max_tokens: 9 }, { settings: { maxOutput: 5 } }, {})).toEqual({
      ...body,
      max_tokens: 5,
    });
    expect(
      codec.patch({ ...body, max_tokens: 9, max_completion_tokens: 8 }, { settings: { maxOutput: 5 } }, {}),
    ).toEqual({ ...body, max_tokens: 5, max_completion_tokens: 5 });
  });

  it('write the reasoning in the words of the model', () => {
    const edits = { settings: { reasoning: { effort: 'low' } } } as const;
    expect(codec.patch({ ...body, reasoning_effort: 'high' }, edits, {})).toEqual({
      ...body,
      reasoning_effort: 'low',
    });
    expect(
      codec.patch({ ...body, reasoning: { effort: 'high', x: 1, exclude: true } }, edits, {
        reasoning: 'object',
      }),
    ).toEqual({
      ...body,
      reasoning: { x: 1, effort: 'low', exclude: true },
    });
    expect(codec.patch(body, edits, { reasoning: 'thinking', efforts: ['low', 'high'] })).toEqual({
      ...body,
      thinking: { type: 'enabled' },
      reasoning_effort: 'low',
    });
  });
});

describe('the model list', () => {
  const model = { id: 'vendor/m', created: 5, ownedBy: 'acme', inputLimit: 9 };

  it('has the official shape', () => {
    expect(chatCompletions.models?.list([model], new URLSearchParams())).toEqual({
      object: 'list',
      data: [{ id: 'vendor/m', object: 'model', created: 5, owned_by: 'acme' }],
    });
    expect(chatCompletions.models?.one(model)).toEqual({
      id: 'vendor/m',
      object: 'model',
      created: 5,
      owned_by: 'acme',
    });
  });

  it('has no route here: headers decide who answers', () => {
    expect(chatCompletions.routes.map(({ path }) => path)).toEqual(['/v1/chat/completions']);
  });
});

describe('the client’s words for settings', () => {
  it.each([
    ['temperature', 'temperature'],
    ['topP', 'top_p'],
    ['maxOutput', 'max_completion_tokens'],
    ['choices', 'n'],
    ['reasoning', 'reasoning_effort'],
    ['parallelTools', 'parallel_tool_calls'],
    ['user', 'user'],
  ] as const)('%s is %s', (name, path) => {
    expect(codec.settingPath(name)).toBe(path);
  });
});

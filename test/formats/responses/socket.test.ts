import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { responsesSocket } from '../../../core/formats/responses/socket.ts';
import type { JsonObject } from '../../../core/model/json.ts';

const { read, write, failure } = responsesSocket;

describe('response.create', () => {
  test('is the body that a POST would have had, without what belongs to the socket', () => {
    const message = {
      type: 'response.create',
      event_id: 'event_1',
      stream_id: 'lane',
      model: 'm',
      input: 'hi',
      store: false,
      generate: true,
      stream: false,
      background: true,
      client_metadata: { turn: '1' },
    };
    expect(read(message)).toEqual({
      type: 'call',
      lane: 'lane',
      body: { model: 'm', input: 'hi', store: false, client_metadata: { turn: '1' }, stream: true },
    });
  });

  test('may have its fields under response, and keeps generate: false', () => {
    expect(read({ type: 'response.create', generate: false, response: { model: 'm', input: [] } })).toEqual({
      type: 'call',
      lane: '',
      body: { model: 'm', input: [], generate: false, stream: true },
    });
  });

  test('only prepares when the cache is to be warmed, whatever generate says', () => {
    const options = { prompt_cache_options: { prewarm: true } };
    expect(read({ type: 'response.create', model: 'm', generate: true, ...options })).toEqual({
      type: 'call',
      lane: '',
      body: { model: 'm', ...options, generate: false, stream: true },
    });
  });

  const nonsense: readonly (readonly [JsonObject, string, string])[] = [
    [{ type: 'response.create', generate: 'no' }, 'generate', ''],
    [{ type: 'response.create', response: 'm', stream_id: 'a' }, 'response', 'a'],
    [{ type: 'response.create', stream_id: 7 }, 'stream_id', ''],
    [{ type: 'response.create', stream_id: 'x'.repeat(257) }, 'stream_id', ''],
    [{ type: 'response.inject', stream_id: 'a', input: [] }, 'type', 'a'],
    [{ type: 'session.update' }, 'type', ''],
    [{ input: 'hi' }, 'type', ''],
  ];
  test.each(nonsense)('is answered with an error where it makes no sense: %j', (message, param, lane) => {
    expect(read(message)).toEqual({
      type: 'answer',
      message: {
        type: 'error',
        status: 400,
        error: {
          type: 'invalid_request_error',
          code: expect.any(String),
          message: expect.any(String),
          param,
        },
        ...(lane === '' ? {} : { stream_id: lane }),
      },
    });
  });
});

test('steering is refused in its own event, with the input given back', () => {
  const input = [{ role: 'user', content: 'Stop.' }];
  const answer = read({ type: 'response.steer', previous_response_id: 'resp_1', input });
  expect(answer).toMatchObject({
    type: 'answer',
    message: {
      type: 'response.steer.failed',
      error: { type: 'invalid_request_error', code: 'steering_not_supported' },
      steer: { previous_response_id: 'resp_1', input },
    },
  });
});

test('events carry the id of their stream, and nothing is sent for the end of a byte stream', () => {
  const event = '{"type":"response.completed","response":{"output":[]}}';
  expect(write(event, '')).toBe(event);
  expect(JSON.parse(write(event, 'a "b"') ?? '')).toEqual({
    ...(JSON.parse(event) as object),
    stream_id: 'a "b"',
  });
  expect(write('[DONE]', '')).toBeUndefined();
});

describe('a failure', () => {
  const error = new GatewayError('rate_limit_exceeded', 'Too many.', { retryAfter: 3 });
  const nested = {
    status: 429,
    error: {
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
      message: 'Too many.',
      param: null,
      headers: { 'retry-after': '3' },
    },
  };

  test('before a reply has status, error and when to try again', () => {
    expect(failure(error, 'a', [])).toEqual([{ type: 'error', ...nested, stream_id: 'a' }]);
  });

  test('of a reply that had begun is the flat event of streams and the same under error, then the failed response', () => {
    const flat = {
      type: 'error',
      code: 'rate_limit_exceeded',
      message: 'Too many.',
      param: null,
      sequence_number: 5,
    };
    const failed = { type: 'response.failed', response: {}, sequence_number: 6 };
    expect(failure(error, '', [{ event: 'error', json: flat }, { json: failed }])).toEqual([
      { ...flat, ...nested },
      failed,
    ]);
    expect(failure(error, 'a', [{ json: failed }])).toEqual([{ ...failed, stream_id: 'a' }]);
  });
});

import { describe, expect, it } from 'vitest';
import { errorTable, GatewayError, type ErrorCode } from '../../../core/sdk/errors.ts';
import messages from '../../../core/formats/messages/index.ts';
import { parseSse } from '../../../core/formats/_shared/sse.ts';
import { chat, fixture, fixtures, refusal } from './support.ts';

describe('an error', () => {
  it.each<[number, string]>([
    [400, 'invalid_request_error'],
    [401, 'authentication_error'],
    [402, 'billing_error'],
    [403, 'permission_error'],
    [404, 'not_found_error'],
    [405, 'invalid_request_error'],
    [408, 'invalid_request_error'],
    [409, 'conflict_error'],
    [413, 'request_too_large'],
    [415, 'invalid_request_error'],
    [422, 'invalid_request_error'],
    [429, 'rate_limit_error'],
    [499, 'invalid_request_error'],
    [500, 'api_error'],
    [502, 'api_error'],
    [503, 'api_error'],
    [504, 'timeout_error'],
    [529, 'overloaded_error'],
  ])('of status %i is %s', (status, type) => {
    const reply = messages.errorReply(new GatewayError('internal_error', 'Why.', { status }), 'req_1');
    expect(reply.status).toBe(status);
    expect(reply.body).toEqual({ type: 'error', error: { type, message: 'Why.' }, request_id: 'req_1' });
    expect(reply.headers).toMatchObject({ 'request-id': 'req_1', 'x-request-id': 'req_1' });
  });

  it.each(Object.keys(errorTable) as ErrorCode[])('%s tells the SDK truly whether to try again', (code) => {
    const error = new GatewayError(code, 'Why.');
    const { headers, status } = messages.errorReply(error, 'req_1');
    const retriedByDefault = status === 429 || status >= 500;
    expect(headers['x-should-retry']).toBe(retriedByDefault && !error.retryable ? 'false' : undefined);
    expect(headers['retry-after'] !== undefined).toBe((status === 429 || status === 503) && error.retryable);
  });

  it('is the golden example', () => {
    const error = new GatewayError('model_not_allowed', 'This API key has no access to model m.', {
      param: 'model',
    });
    expect(messages.errorReply(error, 'req_1').body).toEqual({
      type: 'error',
      error: { type: 'permission_error', message: 'This API key has no access to model m.' },
      request_id: 'req_1',
    });
  });

  it('of an overloaded upstream and of a spent quota have their own words', () => {
    const overloaded = messages.errorReply(
      new GatewayError('server_is_overloaded', 'x', { retryAfter: 2.4 }),
      'r',
    );
    expect([overloaded.body.error, overloaded.headers['retry-after']]).toEqual([
      { type: 'overloaded_error', message: 'x' },
      '3',
    ]);
    const quota = messages.errorReply(new GatewayError('insufficient_quota', 'x'), 'r');
    expect([quota.body.error, quota.headers['retry-after'], quota.headers['x-should-retry']]).toEqual([
      { type: 'rate_limit_error', message: 'x' },
      undefined,
      'false',
    ]);
  });

  it('carries its own headers', () => {
    expect(
      messages.errorReply(new GatewayError('method_not_allowed', 'x', { headers: { allow: 'POST' } }), 'r')
        .headers.allow,
    ).toBe('POST');
  });
});

describe('the model list', () => {
  const listed = [3, 1, 2].map((created) => ({ id: `m-${created}`, created, ownedBy: 'system' }));
  const list = (query: string) =>
    messages.models?.list(listed, new URLSearchParams(query)) as {
      data: { id: string }[];
      has_more: boolean;
      first_id: string | null;
      last_id: string | null;
    };
  const ids = (query: string) => [...list(query).data.map(({ id }) => id), list(query).has_more];

  it('has the newest first, in pages', () => {
    expect(ids('')).toEqual(['m-3', 'm-2', 'm-1', false]);
    expect(ids('limit=2')).toEqual(['m-3', 'm-2', true]);
    expect(ids('limit=2&after_id=m-2')).toEqual(['m-1', false]);
    expect(ids('limit=1&before_id=m-1')).toEqual(['m-2', true]);
    expect(ids('before_id=m-1&lifecycle[]=active')).toEqual(['m-3', 'm-2', false]);
    expect(list('limit=2')).toMatchObject({ first_id: 'm-3', last_id: 'm-2' });
    expect(messages.models?.list([], new URLSearchParams())).toEqual({
      data: [],
      has_more: false,
      first_id: null,
      last_id: null,
    });
  });

  it.each(['limit=0', 'limit=1001', 'limit=x', 'limit=1.5', 'after_id=nope', 'before_id=nope'])(
    '%s is refused',
    (query) => {
      expect(refusal(() => list(query)).param).toBe(query.split('=')[0]);
    },
  );

  it('describes a model as the SDK wants it', () => {
    expect(
      messages.models?.one({
        id: 'm',
        created: 1_777_593_600,
        ownedBy: 'x',
        inputLimit: 200_000,
        outputLimit: 64_000,
      }),
    ).toEqual({
      type: 'model',
      id: 'm',
      display_name: 'm',
      created_at: '2026-05-01T00:00:00Z',
      lifecycle: 'active',
      deprecated_at: null,
      retires_at: null,
      line: null,
      max_input_tokens: 200_000,
      max_tokens: 64_000,
      capabilities: null,
    });
    expect(messages.models?.one({ id: 'm', created: 0, ownedBy: 'x' }).created_at).toBe(
      '1970-01-01T00:00:00Z',
    );
    expect(messages.models?.one({ id: 'm', created: 1e99, ownedBy: 'x' }).created_at).toBe(
      '1970-01-01T00:00:00Z',
    );
  });
});

describe('a stream that passes through', () => {
  /** True when one of its frames is seen to end it. */
  const ends = (text: string): boolean =>
    parseSse(text).some(
      (frame) =>
        chat.marks.terminal.some((mark) => `${frame.event} ${frame.data}`.includes(mark)) &&
        chat.endsStream?.(frame) === true,
    );

  it.each(fixtures('streams', '.sse'))('%s is seen to end well', (name) => {
    const text = fixture('streams', `${name}.sse`);
    expect(ends(text)).toBe(true);
    expect(ends(text.replace(/event: message_stop[^]*/, ''))).toBe(false);
    expect(chat.marks.usage.some((mark) => text.includes(mark))).toBe(true);
  });

  it('that talks about endings has not ended', () => {
    const talk = {
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: 'event: error\n\ndata: {"type":"message_stop"}' },
      beam: { type: 'message_stop' },
    };
    expect(ends(`event: content_block_delta\ndata: ${JSON.stringify(talk)}\n\n`)).toBe(false);
  });

  it('that names its end before the data alone has ended', () => {
    expect(ends('event: message_stop\ndata: {}\n\n')).toBe(true);
    expect(ends('data: {"type": "message_stop"}\n\n')).toBe(true);
  });
});

import { describe, expect, it } from 'vitest';
import { redact } from '../../../core/formats/_shared/redact.ts';
import { upstreamError } from '../../../core/formats/_shared/upstream-error/index.ts';
import type { UpstreamFailure } from '../../../core/sdk/upstream-failure.ts';

const chat = (message: string, code: unknown, type = 'invalid_request_error'): string =>
  JSON.stringify({ error: { message, type, param: null, code } });

const retryInfo = (delay: unknown): string =>
  JSON.stringify({
    error: {
      code: 429,
      status: 'RESOURCE_EXHAUSTED',
      message: 'm',
      details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: delay }],
    },
  });

describe('the status that a client sees', () => {
  it.each([
    [400, 400, 'invalid_request', false],
    [422, 400, 'invalid_request', false],
    [401, 502, 'upstream_error', true],
    [403, 502, 'upstream_error', true],
    [402, 503, 'no_available_channel', true],
    [404, 503, 'no_available_channel', true],
    [408, 502, 'upstream_error', true],
    [409, 502, 'upstream_error', true],
    [425, 502, 'upstream_error', true],
    [413, 413, 'request_too_large', false],
    [429, 429, 'rate_limit_exceeded', true],
    [500, 502, 'upstream_error', true],
    [502, 502, 'upstream_error', true],
    [503, 503, 'server_is_overloaded', true],
    [529, 503, 'server_is_overloaded', true],
    [504, 504, 'upstream_timeout', true],
    [524, 504, 'upstream_timeout', true],
  ])('of an upstream %i is %i %s', (upstream, status, code, retryable) => {
    const error = upstreamError(upstream, chat('It failed.', null, 'x'));
    expect(error).toMatchObject({ status, code, retryable, origin: 'upstream' });
    expect((error.cause as UpstreamFailure).status).toBe(upstream);
  });

  it('is never a 401 or 403: the client’s own key is fine', () => {
    const error = upstreamError(401, chat('Incorrect API key provided: sk-abcd1234efgh.', 'invalid_api_key'));
    expect(error.status).toBe(502);
    expect(error.message).toBe('The upstream refused the credentials of the channel.');
    expect((error.cause as UpstreamFailure).fault).toBe('credentials');
  });
});

describe('what providers of sound and images say', () => {
  it.each([
    [
      401,
      { detail: { type: 'payment_required', code: 'quota_exceeded', message: 'You have no quota left.' } },
      'no_available_channel',
      /no credit left/,
    ],
    [
      422,
      {
        detail: [
          { loc: ['body', 'prompt'], msg: 'The content is refused.', type: 'content_policy_violation' },
        ],
      },
      'content_policy_violation',
      /body\.prompt: The content is refused\./,
    ],
    [
      403,
      { id: 'a', name: 'content_moderation', errors: ['Your request was flagged.'] },
      'content_policy_violation',
      /^Your request was flagged\.$/,
    ],
    [
      400,
      { err_code: 'Bad Request', err_msg: 'Failed to process audio.', request_id: 'r' },
      'invalid_request',
      /^Failed to process audio\.$/,
    ],
    [
      422,
      { title: 'Input validation failed', detail: 'prompt is required', status: 422 },
      'invalid_request',
      /^prompt is/,
    ],
  ])('with %i and %o is understood', (status, body, code, message) => {
    expect(upstreamError(status, JSON.stringify(body))).toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });
});

describe('a thread that the provider does not keep', () => {
  const refused = (status: number, code: string): ReturnType<typeof upstreamError> =>
    upstreamError(
      status,
      JSON.stringify({
        type: 'error',
        error: { type: 'x', message: 'No thread.', details: { error_code: code } },
      }),
    );

  it.each([
    [400, 'thread_unsupported_request', 'invalid_request'],
    [404, 'thread_not_found', 'not_found'],
    [409, 'thread_continue_in_flight', 'conflict'],
  ])(
    'is told with its status %i and its code %s, because the client knows what to do',
    (status, expectedStatus, code) => {
      expect(refused(status, expectedStatus)).toMatchObject({
        status,
        code,
        details: { error_code: expectedStatus },
        message: 'No thread.',
        retryable: false,
      });
    },
  );

  it('is no excuse for any other 404', () => {
    expect(refused(404, 'model_not_found')).toMatchObject({ status: 503, code: 'no_available_channel' });
  });
});

describe('the shapes of error bodies', () => {
  it.each([
    ['chat', chat('Bad colour.', 'invalid_value')],
    [
      'messages',
      '{"type":"error","error":{"type":"invalid_request_error","message":"Bad colour."},"request_id":"req_1"}',
    ],
    ['generateContent', '{"error":{"code":400,"message":"Bad colour.","status":"INVALID_ARGUMENT"}}'],
    ['an array around it', '[{"error":{"code":400,"message":"Bad colour.","status":"INVALID_ARGUMENT"}}]'],
    ['error as a string', '{"error":"Bad colour."}'],
    ['error as a word, with a message', '{"error":"bad_request","message":"Bad colour."}'],
    ['message', '{"message":"Bad colour."}'],
    ['msg', '{"code":1001,"msg":"Bad colour."}'],
    ['detail', '{"detail":"Bad colour."}'],
    ['errors', '{"success":false,"errors":[{"code":7003,"message":"Bad colour."}]}'],
    ['base_resp', '{"base_resp":{"status_code":1004,"status_msg":"Bad colour."}}'],
    ['object error', '{"object":"error","message":"Bad colour.","type":"BadRequestError","code":400}'],
    [
      'an error quoted as text',
      JSON.stringify({ error: { message: '{"error":{"message":"Bad colour."}}' } }),
    ],
    [
      'an aggregator’s quote',
      JSON.stringify({
        error: {
          message: 'Provider returned error',
          code: 400,
          metadata: { raw: '{"error":{"message":"Bad colour."}}' },
        },
      }),
    ],
    ['an event stream', 'event: error\ndata: {"error":{"message":"Bad colour."}}\n\n'],
    ['plain text', 'Bad colour.'],
    ['a JSON string', '"Bad colour."'],
  ])('%s', (_shape, body) => {
    expect(upstreamError(400, body)).toMatchObject({
      status: 400,
      code: 'invalid_request',
      message: 'Bad colour.',
    });
  });

  it('a validation list', () => {
    const error = upstreamError(
      422,
      '{"detail":[{"loc":["body","n"],"msg":"too large"},{"loc":["body","x"],"msg":"missing"}]}',
    );
    expect(error.message).toBe('body.n: too large; body.x: missing');
  });

  it('a page of HTML, nothing at all, and broken JSON give a sentence of ours', () => {
    for (const body of [
      '<!DOCTYPE html><html><h1>502 Bad Gateway nginx</h1></html>',
      '',
      '   ',
      '{"error":{"mess',
      'null',
      '[]',
      '{}',
    ]) {
      expect(upstreamError(502, body).message).toBe('The upstream failed.');
    }
  });

  it('strange bodies throw nothing', () => {
    const deep = '['.repeat(50_000) + ']'.repeat(50_000);
    for (const body of [
      deep,
      '{"error":{"message":{}}}',
      '{"error":[1]}',
      '{"error":true}',
      '{"errors":[[]]}',
      'x'.repeat(2_000_000),
    ]) {
      expect(upstreamError(500, body).code).toBe('upstream_error');
    }
  });
});

describe('an error inside status 200 goes by the code inside', () => {
  it.each([
    ['{"error":{"code":429,"message":"Slow.","status":"RESOURCE_EXHAUSTED"}}', 'rate_limit_exceeded'],
    ['{"error":{"code":"rate_limit_exceeded","message":"Slow."}}', 'rate_limit_exceeded'],
    ['{"type":"error","error":{"type":"overloaded_error","message":"Busy."}}', 'server_is_overloaded'],
    ['{"type":"error","error":{"type":"api_error","message":"Broken."}}', 'upstream_error'],
    ['{"type":"error","error":{"type":"invalid_request_error","message":"Bad."}}', 'invalid_request'],
    ['{"type":"error","error":{"type":"authentication_error","message":"No."}}', 'upstream_error'],
    ['{"error":{"code":504,"message":"Late.","status":"DEADLINE_EXCEEDED"}}', 'upstream_timeout'],
    ['{"type":"error","code":"server_error","message":"Broken.","param":null}', 'upstream_error'],
    [
      '{"type":"response.failed","response":{"error":{"code":"rate_limit_exceeded","message":"Slow."}}}',
      'rate_limit_exceeded',
    ],
    ['{"code":1201,"message":"Vendor failure"}', 'upstream_error'],
    ['{"error":{"message":"Provider returned error","code":"502"}}', 'upstream_error'],
  ])('%s', (body, code) => {
    expect(upstreamError(200, body).code).toBe(code);
  });
});

describe('what the client can mend, or cannot', () => {
  it.each([
    chat("This model's maximum context length is 8192 tokens.", 'context_length_exceeded'),
    chat('Input too long', 'string_above_max_length'),
    '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}',
    '{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}',
  ])('a prompt too long is told as such: %s', (body) => {
    expect(upstreamError(400, body)).toMatchObject({
      code: 'context_length_exceeded',
      status: 400,
      retryable: false,
    });
    expect(upstreamError(200, body).code).toBe('context_length_exceeded');
  });

  it.each([
    chat('Your request was rejected by our safety system.', 'content_policy_violation'),
    chat(
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      'content_filter',
    ),
    chat('Content Exists Risk', 'invalid_request_error'),
  ])('a refusal by policy is told as such: %s', (body) => {
    expect(upstreamError(400, body)).toMatchObject({ code: 'content_policy_violation', status: 400 });
  });

  it('a quota or balance used up is the operator’s affair, not the client’s rate', () => {
    for (const [status, body] of [
      [
        429,
        chat(
          'You exceeded your current quota, please check your plan.',
          'insufficient_quota',
          'insufficient_quota',
        ),
      ],
      [
        400,
        '{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}',
      ],
      [
        402,
        '{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}',
      ],
    ] as const) {
      const error = upstreamError(status, body);
      expect(error).toMatchObject({ status: 503, code: 'no_available_channel', retryable: true });
      expect(error.message).not.toMatch(/balance|quota/i);
    }
  });

  it('an ordinary rate limit that speaks of quota stays a rate limit', () => {
    const body =
      '{"error":{"code":429,"message":"You exceeded your current quota, please check your plan.","status":"RESOURCE_EXHAUSTED"}}';
    expect(upstreamError(429, body).code).toBe('rate_limit_exceeded');
  });

  it('a bad key under status 400 is a matter of the channel', () => {
    const body =
      '{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"x","reason":"API_KEY_INVALID"}]}}';
    expect(upstreamError(400, body)).toMatchObject({ status: 502, retryable: true });
  });

  it('names the field that the upstream named', () => {
    const body =
      '{"error":{"message":"Too many.","type":"invalid_request_error","param":"n","code":"invalid_value"}}';
    expect(upstreamError(400, body).param).toBe('n');
  });
});

describe('how long to wait', () => {
  it.each([
    [{ 'retry-after': '7' }, 7],
    [{ 'retry-after': '0' }, 0.02],
    [{ 'retry-after': '1.2' }, 1.2],
    [{ 'retry-after-ms': '20' }, 0.02],
    [{ 'retry-after-ms': '2500', 'retry-after': '9' }, 2.5],
    [{ 'retry-after': ['4', '5'] }, 4],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
    [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '1m2.5s' }, 62.5],
    [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '20ms' }, 0.02],
    [{ 'x-ratelimit-remaining-requests': '3', 'x-ratelimit-reset-requests': '6m0s' }, undefined],
    [
      {
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '5',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '9s',
      },
      9,
    ],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': 'never' }, undefined],
    [{ 'retry-after': '2', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' }, 2],
  ])('from the headers %j', (headers, seconds) => {
    expect(upstreamError(429, '', headers).retryAfter).toBe(seconds);
  });

  it('from a date', () => {
    const date = new Date(Date.now() + 30_000).toUTCString();
    expect(upstreamError(503, '', { 'retry-after': date }).retryAfter).toBeGreaterThanOrEqual(28);
    expect(upstreamError(503, '', { 'retry-after': new Date(0).toUTCString() }).retryAfter).toBe(1);
  });

  it('from when a limit that is used up is free again', () => {
    const soon = Date.now() + 30_000;
    for (const reset of [new Date(soon).toISOString(), String(soon), String(Math.round(soon / 1000))]) {
      const { retryAfter } = upstreamError(429, '', {
        'anthropic-ratelimit-tokens-remaining': '0',
        'anthropic-ratelimit-tokens-reset': reset,
      });
      expect(retryAfter).toBeGreaterThanOrEqual(28);
      expect(retryAfter).toBeLessThanOrEqual(31);
    }
  });

  it('from RetryInfo', () => {
    expect(upstreamError(429, retryInfo('34.07s')).retryAfter).toBe(34.07);
    expect(upstreamError(429, retryInfo({ seconds: '12' })).retryAfter).toBe(12);
    expect(upstreamError(429, retryInfo('?')).retryAfter).toBeUndefined();
  });

  it('is not told for what waiting does not help', () => {
    expect(upstreamError(400, '', { 'retry-after': '7' }).retryAfter).toBeUndefined();
  });
});

describe('nothing of the operator’s leaks', () => {
  it.each([
    ['Incorrect API key provided: sk-proj-abc***xyz.', /sk-/],
    ['Key AIzaSyA1234567890abcdefg is wrong', /AIza/],
    ['Authorization: Bearer abc.def.ghi failed', /abc\.def/],
    ['Rate limit reached for m in organization org-AbCd1234 on tokens', /org-AbCd/],
    ['Project proj_9f8e7d6c not found', /proj_9f/],
    ['Account acct_123456 is closed', /acct_1/],
    ['See https://platform.openai.com/account/limits?key=1', /platform/],
    ['Go to console.anthropic.com/settings for more', /console/],
    ['Permission denied on projects/my-secret-project', /my-secret/],
    ['arn:aws:bedrock:us-east-1:123456789012:model/x', /1234/],
    ['Ask admin@example.org', /admin@/],
    ['Could not reach 10.0.12.7:8443', /10\.0/],
    ['consumer project_number:4711', /4711/],
  ])('%s', (message, secret) => {
    const error = upstreamError(400, chat(message, 'invalid_value'));
    expect(error.message).not.toMatch(secret);
    expect(error.message.length).toBeGreaterThan(0);
  });

  it('leaves ordinary sentences alone', () => {
    const sentence =
      "Invalid 'messages[2].content[0].image_url': expected a base64 data URL with max_tokens 16 and top_p 0.5.";
    expect(redact(sentence)).toBe(sentence);
  });

  it('keeps the message short and on one line', () => {
    const { message } = upstreamError(400, chat(`a\n${'b'.repeat(5000)}`, null));
    expect(message.length).toBeLessThanOrEqual(1000);
    expect(message).not.toContain('\n');
  });

  it('cleans hostile text of a size at which more than one look at each character would never end', () => {
    for (const hostile of ['a.', 'sk-', `${'a'.repeat(60)}@`]) {
      const text = hostile.repeat(4_000_000 / hostile.length);
      expect(redact(text).length).toBeLessThanOrEqual(2 * text.length);
    }
  });
});

describe('a list of fields that a validator refuses', () => {
  const detail = [
    { type: 'extra_forbidden', loc: ['body', 'seed'], msg: 'Extra inputs are not permitted', input: 1 },
    { type: 'extra_forbidden', loc: ['body', 'user'], msg: 'Extra inputs are not permitted', input: 'x' },
  ];
  const list = 'body.seed: Extra inputs are not permitted; body.user: Extra inputs are not permitted';

  it.each([
    ['alone', { detail }],
    ['in a message', { object: 'error', message: { detail }, type: 'invalid_request_error', param: null }],
    ['in the text of a message', { object: 'error', message: JSON.stringify({ detail }), code: '1000' }],
    ['as the message', { object: 'Error', message: detail, type: 'invalid_request_error', code: 3001 }],
  ])('%s is read with the path of each', (_, body) => {
    expect(upstreamError(422, JSON.stringify(body)).message).toBe(list);
  });
});

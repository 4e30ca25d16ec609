import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { errorReply } from '../../../core/formats/_openai/errors.ts';

describe('an error before anything was sent', () => {
  it('has the envelope of chat completions, and the request id', () => {
    const error = new GatewayError('invalid_type', 'input must be a string.', { param: 'input' });
    expect(errorReply(error, 'req_1')).toMatchObject({
      status: 400,
      headers: { 'x-request-id': 'req_1' },
      body: {
        error: {
          message: 'input must be a string.',
          type: 'invalid_request_error',
          param: 'input',
          code: 'invalid_type',
        },
      },
    });
  });

  it('tells a client that a previous response is not known, so that it sends everything again', () => {
    const error = new GatewayError(
      'previous_response_not_found',
      "Previous response with id 'resp_x' not found.",
      {
        param: 'previous_response_id',
      },
    );
    expect(errorReply(error, 'req_1')).toMatchObject({
      status: 400,
      body: { error: { code: 'previous_response_not_found', param: 'previous_response_id' } },
    });
  });

  it('says whether trying again helps', () => {
    const quota = new GatewayError('insufficient_quota', 'No quota.');
    expect(errorReply(quota, 'req_1').headers).toMatchObject({ 'x-should-retry': 'false' });
    const limit = new GatewayError('rate_limit_exceeded', 'Slow down.', { retryAfter: 7 });
    expect(errorReply(limit, 'req_1').headers).toMatchObject({ 'retry-after': '7' });
  });
});

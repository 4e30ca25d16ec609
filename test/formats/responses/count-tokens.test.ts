import { describe, expect, it } from 'vitest';
import { countCodec, errorOf, foreign, target } from './support.ts';

const context = {
  model: 'm',
  body: {},
  requestId: 'req_1',
  created: 0,
  inputEstimate: 7,
  drop: () => undefined,
};

describe('counting the tokens of a request', () => {
  it('takes the body of a create request and never streams', () => {
    const body = { model: 'm', input: 'Hi', stream: true, max_output_tokens: 5 };
    expect(countCodec.peek(body, {})).toEqual({ model: 'm', stream: false });
    expect(countCodec.validate(body, {})).toMatchObject({ operation: 'count-tokens', stream: false });
    expect(errorOf(() => countCodec.validate({ model: 'm' }, {})).param).toBe('input');
  });

  it('sends only what weighs something', () => {
    const request = foreign({
      operation: 'count-tokens',
      system: [{ role: 'system', content: [{ type: 'text', text: 'A' }] }],
      settings: { maxOutput: 5, temperature: 1, stop: ['x'], reasoning: { effort: 'low' } },
    });
    const to = target();
    const { path, body } = countCodec.encodeRequest(request, to);
    expect(path).toBe('/responses/input_tokens');
    expect(body).toEqual({
      model: 'm',
      instructions: 'A',
      input: [{ type: 'message', role: 'user', content: 'Hi' }],
      reasoning: { effort: 'low' },
    });
    expect(to.losses).toEqual([]);
  });

  it('gives the count of a provider, with what stands beside it', () => {
    const encoder = countCodec.encodeWhole(context);
    const body = { object: 'response.input_tokens', input_tokens: 12, details: { text: 12 } };
    for (const event of countCodec.decodeWhole(body, {})) encoder.event(event);
    expect(encoder.end()).toEqual(body);
  });

  it('gives the count of another format', () => {
    const encoder = countCodec.encodeWhole(context);
    encoder.event({ type: 'result', value: { tokens: 3 } });
    expect(encoder.end()).toEqual({ object: 'response.input_tokens', input_tokens: 3 });
  });

  it('is an error of the provider where there is no count', () => {
    expect(errorOf(() => countCodec.decodeWhole({ object: 'x' }, {})).code).toBe('upstream_error');
    expect(errorOf(() => countCodec.decodeWhole({ error: { message: 'No.' } }, {})).origin).toBe('upstream');
  });
});

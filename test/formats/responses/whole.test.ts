import { describe, expect, it } from 'vitest';
import { decodeWhole } from '../../../core/formats/responses/whole.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { fixturesOf } from '../../support/fixtures.ts';
import { checkLegal } from '../../support/legal-responses.ts';
import { encode, outputOf, reply, text, whole } from './reply-support.ts';

const fixtures = fixturesOf('responses', 'replies', '.json');

describe('a whole reply', () => {
  it.each(fixtures)('$name comes back as it was', (fixture) => {
    const body = JSON.parse(fixture.text) as JsonObject;
    expect(whole(decodeWhole(body))).toEqual(body);
  });

  it.each(fixtures.filter(({ name }) => name !== 'minimal' && name !== 'no-usage'))(
    '$name can be told as a stream',
    (fixture) => {
      const body = JSON.parse(fixture.text) as JsonObject;
      const frames = encode(decodeWhole(body));
      expect(checkLegal(frames)).toEqual([]);
      expect(outputOf(frames)).toEqual(body.output);
    },
  );

  it('says the same as a stream of the same events', () => {
    const events = reply(text('Hello.'));
    expect(whole(events).output).toEqual(outputOf(encode(events)));
  });

  it('has the name that the client asked for', () => {
    const [fixture] = fixtures;
    const body = { ...(JSON.parse(fixture?.text ?? '{}') as JsonObject), model: 'up' };
    expect(whole(decodeWhole(body)).model).toBe('m');
  });
});

describe('a body that is no answer', () => {
  it.each<[string, JsonObject, string]>([
    ['an error', { error: { message: 'Slow down.', code: 'rate_limit_exceeded' } }, 'rate_limit_exceeded'],
    [
      'a failed response',
      { status: 'failed', output: [], error: { code: 'server_error', message: 'No.' } },
      'upstream_error',
    ],
    ['a response that has not begun', { status: 'queued', output: [] }, 'upstream_error'],
    ['a response that is not finished', { status: 'in_progress', output: [] }, 'upstream_error'],
    ['a response that was cancelled', { status: 'cancelled', output: [] }, 'upstream_error'],
    ['something else', { choices: [] }, 'upstream_error'],
    ['a bare message', { message: 'Prompt is too long' }, 'context_length_exceeded'],
  ])('is an error of the upstream: %s', (_, body, code) => {
    expect(() => decodeWhole(body)).toThrow(expect.objectContaining({ code, origin: 'upstream' }));
  });
});

import { lastValueFrom, of, toArray } from 'rxjs';
import { describe, expect, test } from 'vitest';
import type { GatewayEvent, Upstream } from 'sluice';
import { passedOn } from '../../../plugins/provider-objects/passed.ts';
import { forwardedParameters } from '../../../plugins/provider-objects/services.ts';
import { replyHeaders } from '../../../core/sdk/reply-headers.ts';
import { testCall } from '../../support/call.ts';

async function passed(headers: Upstream['headers']) {
  const { call } = testCall();
  const bytes = of(Buffer.from('a'), Buffer.from('b'));
  const events = await lastValueFrom(passedOn(call, { status: 206, headers, bytes }).pipe(toArray()));
  const [answer, ...rest] = events as [GatewayEvent & { headers: Record<string, string> }, ...GatewayEvent[]];
  return { answer, rest, added: call.get(replyHeaders) };
}

describe('a file of a provider', () => {
  test('comes with its status, length and bytes, and no browser guesses what it is', async () => {
    const { answer, rest, added } = await passed({
      'content-type': 'application/jsonl',
      'content-length': '2',
      'content-encoding': 'gzip',
      'set-cookie': ['a=b'],
      'content-disposition': 'inline',
    });
    expect(answer).toEqual({
      type: 'answer',
      status: 206,
      headers: { 'content-type': 'application/jsonl', 'content-length': '2', 'content-encoding': 'gzip' },
    });
    expect(rest).toEqual([
      { type: 'bytes', bytes: Buffer.from('a') },
      { type: 'bytes', bytes: Buffer.from('b') },
    ]);
    expect(added).toEqual({ 'x-content-type-options': 'nosniff' });
  });

  test('without a length has none', async () => {
    expect((await passed({ 'content-type': 'text/plain' })).answer.headers).toEqual({
      'content-type': 'text/plain',
    });
  });

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'APPLICATION/JSON',
    'application/jsonl',
    'application/x-jsonl',
    'application/x-json',
    'application/x-ndjson',
    'application/ndjson',
    'text/plain',
    'text/plain;charset=utf-8',
    'image/png',
    'image/vnd.microsoft.icon',
    'image/x-icon',
  ])('may be called %s', async (type) => {
    expect((await passed({ 'content-type': type })).answer.headers['content-type']).toBe(type);
  });

  test.each<[type: string | string[] | undefined]>([
    [undefined],
    [['text/plain', 'text/html']],
    [''],
    ['text/html'],
    ['text/plainer'],
    ['my-text/plain'],
    ['image/svg+xml'],
    ['IMAGE/SVG+XML'],
    ['image/'],
    ['application/javascript'],
    ['application/jsonx'],
    ['application/x-html'],
    ['application/xhtml+xml'],
    ['x-application/json'],
    ['audio/mpeg'],
  ])('that its provider calls %s is bytes', async (type) => {
    const { answer } = await passed(type === undefined ? {} : { 'content-type': type });
    expect(answer.headers['content-type']).toBe('application/octet-stream');
  });
});

describe('the words of a request for the provider', () => {
  const words = (query: string, headers: Record<string, string | string[]> = {}) => {
    const { call } = testCall();
    for (const [name, value] of new URLSearchParams(query)) call.wire.query.append(name, value);
    Object.assign(call.wire.headers, headers);
    return forwardedParameters(call);
  };

  test('are those of its query, without credentials and what is for the gateway alone', () => {
    const name = 'a'.repeat(100);
    expect(
      words(
        `limit=5&include%5B%5D=a.b&x-y.z=1&key=k&access_token=t&channel=c&${name}=1&${name}b=2&bad%20name=1&%C3%A4=2&=3`,
      ).query,
    ).toEqual({ limit: '5', 'include[]': 'a.b', 'x-y.z': '1', [name]: '1' });
  });

  test('are those of its headers by which versions are chosen', () => {
    expect(
      words('', {
        'anthropic-version': '2023-06-01',
        'anthropic-beta': 'files-api-2025-04-14',
        'openai-beta': 'assistants=v2',
        authorization: 'Bearer secret',
        'x-other': '1',
      }).headers,
    ).toEqual({
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'files-api-2025-04-14',
      'openai-beta': 'assistants=v2',
    });
    expect(words('', { 'openai-beta': ['a', 'b'] }).headers).toEqual({});
  });
});

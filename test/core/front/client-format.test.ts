import { describe, expect, test } from 'vitest';
import { errorFormat, errorFormatOfBytes, listFormat } from '../../../core/front/client-format.ts';

const signed = 'AWS4-HMAC-SHA256 Credential=k/20261101/us-east-1/bedrock/aws4_request, Signature=0';

describe('the format of a client', () => {
  test.each([
    ['messages', { 'anthropic-version': '2023-06-01' }, ''],
    ['messages', { 'a-version': '2023-06-01' }, ''],
    ['messages', { 'anthropic-version': '2023-06-01', 'x-goog-api-key': 'k' }, ''],
    ['generate-content', { 'x-goog-api-key': 'k' }, ''],
    ['generate-content', { 'x-g-api-key': 'k' }, ''],
    ['generate-content', {}, 'key=k'],
    ['chat-completions', { 'x-api-key': 'k' }, 'monkey=k'],
    ['chat-completions', { authorization: 'Bearer k' }, ''],
  ])('is %s for a list that is asked for with %j and %j', (format, headers, query) => {
    expect(listFormat(headers, new URLSearchParams(query))).toBe(format);
  });

  test.each([
    ['generate-content', '/v1beta/nothing'],
    ['generate-content', '/v1beta'],
    ['generate-content', '/v1/projects/p/nothing'],
    ['generate-content', '/v1/publishers/google/nothing'],
    ['generate-content', '/v1/models/m:generateContent'],
    ['generate-content', '/v1/anything?key=k'],
    ['chat-completions', '/v1/models/m'],
    ['chat-completions', '/v1/chat?a=/v1beta/'],
    ['chat-completions', '/x/v1beta/'],
    ['chat-completions', '/v1/x?a=b&monkey=k'],
    ['converse', '/model/m/nothing'],
    ['converse', '/foundation-models'],
    ['chat-completions', '/x/model/m'],
    ['messages', '/v1/messages/nothing'],
    ['chat-completions', '/x/v1/messages'],
  ])('is %s for an error at %s', (format, url) => {
    expect(errorFormat(url, {})).toBe(format);
    expect(errorFormatOfBytes(Buffer.from(`GET ${url} HTTP/1.1\r\nhost: x\r\n\r\n`))).toBe(format);
  });

  test('is told by its headers where the path tells nothing, and by the path before them', () => {
    expect(errorFormat('/v1/x', { authorization: signed })).toBe('converse');
    expect(errorFormat('/v1/x', { 'anthropic-version': '1' })).toBe('messages');
    expect(errorFormat('/v1/x', { 'x-goog-api-key': 'k' })).toBe('generate-content');
    expect(errorFormat('/v1/messages', { authorization: signed })).toBe('messages');
    expect(errorFormat('/v1beta/x', { 'anthropic-version': '1' })).toBe('generate-content');
  });

  test.each([
    ['messages', 'Anthropic-Version: 2023-06-01'],
    ['messages', 'a-version:2023-06-01'],
    ['generate-content', 'X-Goog-Api-Key: k'],
    ['generate-content', 'x-g-api-key: k'],
    ['converse', `Authorization: ${signed}`],
    ['converse', 'amz-sdk-invocation-id: 00000000-0000-4000-8000-000000000000\r\nauthorization: Bearer k'],
    ['chat-completions', 'authorization: Bearer k'],
    ['chat-completions', 'anthropic-version'],
    ['chat-completions', ': x-goog-api-key'],
    ['chat-completions', 'x: y\r\n\r\nanthropic-version: in the body'],
  ])('is %s where a request that could not be read has %j', (format, lines) => {
    expect(errorFormatOfBytes(Buffer.from(`GET /v1/x HTTP/1.1\r\n${lines}\r\n\r\n`))).toBe(format);
    // What comes may end in the middle.
    expect(errorFormatOfBytes(Buffer.from(`GET /v1/x HTTP/1.1\r\n${lines}`))).toBe(format);
  });

  test('is looked for in the first 64 KiB of what could not be read, and where nothing was read at all', () => {
    const padding = (bytes: number): Buffer =>
      Buffer.from(`GET /v1/x HTTP/1.1\r\nx: ${'y'.repeat(bytes)}\r\nanthropic-version: 1\r\n\r\n`);
    expect(errorFormatOfBytes(padding(60_000))).toBe('messages');
    expect(errorFormatOfBytes(padding(66_000))).toBe('chat-completions');
    for (const nothing of [undefined, Buffer.alloc(0), Buffer.from('GET'), Buffer.from('\u0016\u0003\u0001')])
      expect(errorFormatOfBytes(nothing)).toBe('chat-completions');
  });
});

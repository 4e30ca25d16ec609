import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ channels: [demo()], limits: { image: 2_000 } });
});
afterAll(() => gateway.close());

const sendChat = async (
  path: string,
  init: RequestInit = {},
): Promise<{ readonly status: number; readonly text: string; readonly headers: Headers }> => {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    body: '{}',
    ...init,
    headers: { 'content-type': 'application/json', ...(init.headers as Record<string, string>) },
  });
  return { status: response.status, text: await response.text(), headers: response.headers };
};
const withKey = () => ({ authorization: `Bearer ${gateway.key}` });

describe('two formats at one path', () => {
  test('are told apart by the headers of their clients', async () => {
    const plain = await sendChat('/rerank', { headers: { authorization: 'Bearer sk-wrong' } });
    const signed = await sendChat('/rerank', {
      headers: { authorization: 'AWS4-HMAC-SHA256 Credential=x/20261122/eu/bedrock/aws4_request' },
    });
    const sdk = await sendChat('/rerank', {
      headers: { authorization: 'Bearer sk-wrong', 'amz-sdk-invocation-id': '1' },
    });
    expect([plain.status, plain.headers.get('x-amzn-errortype')]).toEqual([401, null]);
    for (const { headers } of [signed, sdk]) expect(headers.get('x-amzn-errortype')).not.toBeNull();
  });

  test('are told apart by the query, whatever else stands in it', async () => {
    const submitted = async (query: string): Promise<boolean> => {
      const { text } = await sendChat(`/jimeng${query}`, { headers: withKey() });
      return text.includes('req_key');
    };
    expect(await submitted('?Action=CVSync2AsyncSubmitTask&Version=2022-08-31')).toBe(true);
    expect(await submitted('?Version=1&Action=CVSync2AsyncSubmitTask')).toBe(true);
    for (const query of ['', '?Action=', '?Action=CVSync2AsyncGetResult', '?action=CVSync2AsyncSubmitTask'])
      // oxlint-disable-next-line no-await-in-loop
      expect([query, await submitted(query)]).toEqual([query, false]);
  });
});

describe('the content type of a request', () => {
  test.each([
    ['/v1/audio/transcriptions', 'application/json', 415, 'multipart/form-data'],
    ['/v1/images/variations', 'application/json', 415, 'multipart/form-data'],
    ['/v1/images/edits', 'application/json', 400, ''],
    ['/v1/images/edits', 'text/plain', 415, 'application/json'],
    ['/v1/chat/completions', 'multipart/form-data; boundary=x', 415, 'application/json'],
    ['/v1/chat/completions', 'application/octet-stream', 415, 'application/json'],
  ])('of %s as %s is a %i', async (path, type, status, named) => {
    const got = await sendChat(path, { headers: { ...withKey(), 'content-type': type } });
    expect(got.status).toBe(status);
    expect(got.text).toContain(named);
  });

  test('of raw bytes is taken for JSON where clients send no other, and no further type is', async () => {
    const body = JSON.stringify({
      anthropic_version: 'bedrock-2023-05-31',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'hi' }],
    });
    const statusOf = async (type: string): Promise<number> =>
      (await sendChat('/model/demo/invoke', { headers: { ...withKey(), 'content-type': type }, body }))
        .status;
    expect(await statusOf('application/octet-stream')).toBe(200);
    expect(await statusOf('application/json')).toBe(200);
    expect(await statusOf('text/plain')).toBe(415);
  });
});

test('a file of a form is refused beyond the limit of its kind, with the name of its field, and read at the limit', async () => {
  for (const [size, status] of [
    [2_000, 400],
    [2_001, 413],
  ] as const) {
    const form = new FormData();
    form.append('model', 'none');
    form.append('prompt', 'A cat');
    form.append('image', new Blob([Buffer.alloc(size)], { type: 'image/png' }), 'cat.png');
    // oxlint-disable-next-line no-await-in-loop
    const response = await fetch(`${gateway.url}/v1/images/edits`, {
      method: 'POST',
      headers: withKey(),
      body: form,
    });
    // oxlint-disable-next-line no-await-in-loop
    const body = (await response.json()) as { error: { param?: string | null } };
    expect([size, response.status]).toEqual([size, status]);
    expect(body.error.param).toBe('image');
  }
});

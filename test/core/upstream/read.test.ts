import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { HttpClient } from '../../../core/sdk/http.ts';
import { createHttpClient } from '../../../core/upstream/send.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';

let server: ScriptedUpstream;
let http: HttpClient;
let answer: (response: ServerResponse) => void;

beforeAll(async () => {
  server = await startUpstream((_request, response) => answer(response));
  http = createHttpClient({
    connectTimeout: 5_000,
    idleTimeout: 5_000,
    headers: { set: { 'X-Team': 'blue' }, remove: ['X-Gone'] },
  });
});
afterAll(async () => {
  await http.close();
  await server.close();
});
beforeEach(() => {
  server.requests.length = 0;
  answer = (response) => void response.end('the document');
});

const read = (more: { readonly body?: string } = {}) =>
  http.read({ url: `${server.url}/list?a=1&b=2`, headers: { 'x-own': '1', 'x-gone': '2' }, ...more });
const failure = (): Promise<Error> =>
  read().then(
    () => Promise.reject(new Error('It was read.')),
    (error: unknown) => error as Error,
  );

describe('a document of a provider', () => {
  test('is asked for by GET, with the headers that the operator wants', async () => {
    expect((await read()).toString()).toBe('the document');
    const [seen] = server.requests;
    expect([seen?.method, seen?.url]).toEqual(['GET', '/list?a=1&b=2']);
    expect(seen?.headers).toMatchObject({ 'x-own': '1', 'x-team': 'blue' });
    expect(seen?.headers).not.toHaveProperty('x-gone');
  });

  test('is asked for by POST where there is a body', async () => {
    await read({ body: 'a=b' });
    expect([server.requests[0]?.method, String(server.requests[0]?.body)]).toEqual(['POST', 'a=b']);
  });

  test('has as many bytes as documents may have, and no more', async () => {
    const most = 4 * 1024 * 1024;
    answer = (response) => void response.end(Buffer.alloc(most));
    expect(await read()).toHaveLength(most);
    answer = (response) => void response.write(Buffer.alloc(most + 1));
    await expect(read()).rejects.toThrow(`more than ${most} bytes`);
    // It never ends: the connection is closed.
    await server.requests.at(-1)?.closed;
  });
});

describe('a document that is refused', () => {
  const says = (body: unknown, status = 403): void => {
    answer = (response) =>
      void response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body));
  };

  test.each([201, 204, 304, 403, 500])('with %i is told by its status', async (status) => {
    says('', status);
    const error = await failure();
    expect(error.message).toBe(`The response has the status ${status}.`);
    expect(error.cause).toBeUndefined();
  });

  test.each<[string, unknown, string | undefined]>([
    [
      'error_description',
      { error: 'invalid_client', error_description: 'Unknown client.' },
      'Unknown client.',
    ],
    ['errorMessage', { errorMessage: 'No such key.', errorCode: 'X' }, 'No such key.'],
    ['message', { message: 'Not here.', error: 'e' }, 'Not here.'],
    ['detail', { detail: 'Not you.', error: 'e' }, 'Not you.'],
    ['error', { error: 'invalid_grant' }, 'invalid_grant'],
    ['what is not empty', { error_description: '', message: 'Not here.' }, 'Not here.'],
    ['what is a text', { error_description: 7, message: { a: 1 }, error: 'invalid' }, 'invalid'],
    ['nothing, where no text is there', { error: { code: 1 } }, undefined],
    ['nothing, where it is no JSON', '<html>', undefined],
    ['nothing, where it is a list', ['error'], undefined],
  ])('may say why: %s', async (_, body, words) => {
    says(body);
    const { cause } = await failure();
    expect(cause instanceof Error ? cause.message : cause).toBe(words);
  });

  test('is quoted without keys', async () => {
    says({ message: 'The key sk-abcdefgh12345678 is wrong.' });
    const { cause } = await failure();
    expect((cause as Error).message).not.toContain('abcdefgh12345678');
    expect((cause as Error).message).toContain('is wrong.');
  });
});

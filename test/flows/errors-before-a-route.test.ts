import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { Bare, requestText } from './_socket.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ channels: [demo()] });
});
afterAll(() => gateway.close());

type Headers = Readonly<Record<string, string>>;
interface Client {
  readonly headers: Headers;
  /** Fits the errors that its SDK reads. */
  readonly error: object;
  readonly answer: object;
}

const message = expect.stringMatching(/./) as string;
const anthropic = { type: 'error', error: { type: message, message }, request_id: message };
const google = { error: { code: expect.any(Number) as number, message, status: message } };
const openai = { error: { message, type: message, code: message } };

/** Headers that the SDKs of each provider send with every request. */
const clients: Readonly<Record<string, Client>> = {
  anthropic: {
    headers: { 'x-api-key': 'k', 'anthropic-version': '2023-06-01' },
    error: anthropic,
    answer: {},
  },
  'anthropic with a bearer token': {
    headers: { authorization: 'Bearer k', 'Anthropic-Version': '2026-10-21' },
    error: anthropic,
    answer: {},
  },
  'google-genai': { headers: { 'x-goog-api-key': 'k' }, error: google, answer: {} },
  'aws, signed': {
    headers: {
      authorization: 'AWS4-HMAC-SHA256 Credential=k/20261101/us-east-1/bedrock/aws4_request, Signature=0',
    },
    error: { message },
    answer: { 'x-amzn-errortype': message },
  },
  'aws, with a bearer token': {
    headers: { authorization: 'Bearer k', 'amz-sdk-invocation-id': '00000000-0000-4000-8000-000000000000' },
    error: { message },
    answer: { 'x-amzn-errortype': message },
  },
  openai: { headers: { authorization: 'Bearer k' }, error: openai, answer: {} },
};

interface Seen {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/** Writes a request in pieces to a bare connection, and reads the one answer. */
async function answerTo(...pieces: readonly string[]): Promise<Seen> {
  const bare = await Bare.to(gateway.url);
  for (const piece of pieces) bare.write(piece);
  const text = await bare.until(/\r\n\r\n\{.*\}$/s);
  bare.socket.destroy();
  const [head = '', body = ''] = text.split('\r\n\r\n');
  const [line = '', ...lines] = head.split('\r\n');
  return {
    status: Number(line.split(' ')[1]),
    headers: Object.fromEntries(
      lines.map((one) => [one.split(': ')[0]?.toLowerCase() ?? '', one.slice(one.indexOf(': ') + 2)]),
    ),
    body: JSON.parse(body) as unknown,
  };
}

const failures: Readonly<
  Record<string, readonly [status: number, pieces: (headers: Headers) => readonly string[]]>
> = {
  'an unknown path': [404, (headers) => [requestText('GET', '/v1/nothing', headers)]],
  'an unknown path outside of all': [404, (headers) => [requestText('GET', '/nothing', headers)]],
  'a method that is not served': [405, (headers) => [requestText('DELETE', '/v1/embeddings', headers)]],
  'an unknown path with a large body': [
    404,
    (headers) => [requestText('POST', '/v1/nothing', { ...headers, 'content-length': String(10 ** 12) })],
  ],
  'a wish for another protocol': [
    404,
    (headers) => [requestText('GET', '/v1/nothing', { ...headers, connection: 'upgrade', upgrade: 'h2c' })],
  ],
  'a request line of another version': [
    505,
    (headers) => [requestText('GET', '/v1/nothing', headers).replace('HTTP/1.1', 'HTTP/2.0')],
  ],
  'a path without a slash': [400, (headers) => [requestText('GET', 'http://a/#b', headers)]],
  'an address of another protocol': [400, (headers) => [requestText('GET', 'ftp://a/b', headers)]],
  'a header that is none': [
    400,
    (headers) => [requestText('GET', '/v1/nothing', { ...headers, 'bad name': 'x' })],
  ],
  'a length that is no number': [
    400,
    (headers) => [requestText('POST', '/v1/nothing', { ...headers, 'content-length': 'x' })],
  ],
  'headers that are too large': [
    431,
    (headers) => [requestText('GET', '/v1/nothing', { ...headers, 'x-long': 'a'.repeat(70_000) })],
  ],
};

describe.each(Object.entries(clients))('a client of %s', (_name, { headers, error, answer }) => {
  test.each(Object.entries(failures))(
    'is told in its own words of %s',
    async (_failure, [status, pieces]) => {
      const seen = await answerTo(...pieces(headers));
      expect(seen.status).toBe(status);
      expect(seen.body).toMatchObject(error);
      expect(seen.headers).toMatchObject({ 'content-type': 'application/json', ...answer });
    },
  );
});

describe('a path that only one format has', () => {
  test.each([
    ['/v1beta/nothing', google],
    ['/v1beta1/nothing', google],
    ['/v1/models/m:nothing', google],
    ['/v1/messages/nothing', anthropic],
    ['/model/m/nothing', { message }],
  ])('decides, whatever the headers say: %s', async (path, error) => {
    for (const { headers } of Object.values(clients)) {
      // oxlint-disable-next-line no-await-in-loop
      expect((await answerTo(requestText('PATCH', path, headers))).body).toMatchObject(error);
    }
  });
});

test('a request of which nothing can be read is refused in the words of chat completions', async () => {
  expect(await answerTo('\0\0\0\r\n\r\n')).toMatchObject({ status: 400, body: openai });
});

test('the path of an error is the one that the client asked for, without its query', async () => {
  const path = '/openai/deployments/m/nothing';
  const { body } = await answerTo(requestText('GET', `${path}?api-version=1&key=secret`, {}));
  expect(body).toMatchObject({ error: { message: `Unknown endpoint: GET ${path}.` } });
});

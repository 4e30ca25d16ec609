import { createHash, createHmac } from 'node:crypto';
import { describe, expect, it, test } from 'vitest';
import doubao from '../../channels/doubao.ts';
import jimeng from '../../channels/jimeng/index.ts';
import kling from '../../channels/kling/index.ts';
import sora from '../../channels/sora.ts';
import vidu from '../../channels/vidu.ts';
import { jwt } from '../../channels/kling/jwt.ts';
import { volcHeaders } from '../../channels/jimeng/signature.ts';
import type { ChannelKind, ChannelTools } from '../../core/sdk/define.ts';
import { GatewayError } from '../../core/sdk/errors.ts';
import type { HttpRequest } from '../../core/sdk/http.ts';
import { createLog } from '../../core/log.ts';
import type { Target } from '../../core/sdk/call.ts';
import { testCall } from '../support/call.ts';

const log = createLog('silent', { write: () => {} });

/** Returns the request that a kind would send. */
async function sent(
  kind: Pick<ChannelKind, 'spec'>,
  keys: readonly string[],
  request: {
    readonly path: string;
    readonly query?: Readonly<Record<string, string>>;
    readonly body?: string;
  },
  index = 0,
): Promise<HttpRequest> {
  let seen: HttpRequest | undefined;
  const parts = kind.spec.setup({ keys }, {
    log,
    keys,
    http: {
      send: (_call, one) => {
        seen = one;
        return Promise.reject(new GatewayError('upstream_error', 'not today'));
      },
      read: () => Promise.reject(new GatewayError('upstream_error', 'not today')),
      close: () => Promise.resolve(),
    },
    sockets: undefined as never,
    download: undefined as never,
    format: () => undefined,
    onClose: () => {},
  } as ChannelTools);
  const call = testCall().call.with({ target: { key: { id: `${index}`, index } } as Target });
  await parts
    .open(call, {
      operation: 'create-video',
      format: '',
      model: 'm',
      stream: false,
      headers: {},
      query: {},
      body: '{"a":"b"}',
      ...request,
    })
    .catch(() => {});
  if (seen === undefined) throw new Error('Nothing was sent.');
  return seen;
}

describe('a signature of Volcengine', () => {
  // The worked example of the provider's documentation ("Signature V4 example").
  test('is that of the published example', () => {
    const headers = volcHeaders(
      {
        method: 'GET',
        url: new URL('https://iam.volcengineapi.com/?Version=2018-01-01&Offset=0&Limit=10&Action=ListUsers'),
        contentType: 'application/x-www-form-urlencoded; charset=utf-8',
        body: '',
      },
      {
        access: 'AKLTMjI2ODVlYzI3ZGY1NGU4ZjhjYWRjMTlmNTM5OTZkYzE',
        secret: 'TnpCak5XWXpZV1U0WkRaaE5ERmxaR0ZpTmpjeVkyUXlZek0wTWpJMU1qWQ==',
        region: 'cn-north-1',
        service: 'iam',
        at: new Date('2020-12-30T08:18:05Z'),
      },
    );
    expect(headers).toMatchObject({
      'x-date': '20201230T081805Z',
      'x-content-sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      authorization:
        'HMAC-SHA256 Credential=AKLTMjI2ODVlYzI3ZGY1NGU4ZjhjYWRjMTlmNTM5OTZkYzE/20201230/cn-north-1/iam/request, SignedHeaders=content-type;host;x-content-sha256;x-date, Signature=28eeabbbd726b87002e0fe58ad8c1c768e619b06e2646f35b6ad7ed029a6d8a7',
    });
  });

  test('covers what is sent: step by step as the documentation has it', async () => {
    const body = '{"req_key":"jimeng_t2v_v30","prompt":"\u6708"}';
    const request = await sent(jimeng, ['AK|SK'], {
      path: '/',
      query: { Action: 'CVSync2AsyncSubmitTask', Version: '2022-08-31' },
      body,
    });
    expect(request.url).toBe(
      'https://visual.volcengineapi.com/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31',
    );
    const date = request.headers['x-date'] ?? '';
    expect(date).toMatch(/^\d{8}T\d{6}Z$/);
    const hash = createHash('sha256').update(body, 'utf8').digest('hex');
    expect(request.headers['x-content-sha256']).toBe(hash);
    const canonical = `POST\n/\nAction=CVSync2AsyncSubmitTask&Version=2022-08-31\ncontent-type:application/json\nhost:visual.volcengineapi.com\nx-content-sha256:${hash}\nx-date:${date}\n\ncontent-type;host;x-content-sha256;x-date\n${hash}`;
    const day = date.slice(0, 8);
    const text = `HMAC-SHA256\n${date}\n${day}/cn-north-1/cv/request\n${createHash('sha256').update(canonical).digest('hex')}`;
    const hmac = (key: Buffer | string, value: string): Buffer =>
      createHmac('sha256', key).update(value).digest();
    const signing = hmac(hmac(hmac(hmac('SK', day), 'cn-north-1'), 'cv'), 'request');
    const signature = hmac(signing, text).toString('hex');
    expect(request.headers.authorization).toBe(
      `HMAC-SHA256 Credential=AK/${day}/cn-north-1/cv/request, SignedHeaders=content-type;host;x-content-sha256;x-date, Signature=${signature}`,
    );
  });
});

describe('a token', () => {
  test('is a JWT that its secret vouches for', async () => {
    const { headers, url } = await sent(
      kling,
      ['other|pair', 'access|se cret'],
      { path: '/v1/videos/text2video' },
      1,
    );
    expect(url).toBe('https://api-singapore.klingai.com/v1/videos/text2video');
    const [scheme, token = ''] = (headers.authorization ?? '').split(' ');
    expect(scheme).toBe('Bearer');
    const [head = '', claims = '', signature] = token.split('.');
    expect(JSON.parse(Buffer.from(head, 'base64url').toString())).toEqual({ alg: 'HS256', typ: 'JWT' });
    const now = Math.floor(Date.now() / 1000);
    const read = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, number | string>;
    expect(read.iss).toBe('access');
    expect(Math.abs(Number(read.exp) - now - 1800)).toBeLessThan(5);
    expect(Math.abs(Number(read.nbf) - now + 5)).toBeLessThan(5);
    expect(signature).toBe(createHmac('sha256', 'se cret').update(`${head}.${claims}`).digest('base64url'));
  });

  // RFC 7515, appendix A.1, has another header; this is the widely known example of the same algorithm.
  test('is that of the known example', () => {
    expect(jwt({ sub: '1234567890', name: 'John Doe', iat: 1_516_239_022 }, 'your-256-bit-secret')).toBe(
      'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c',
    );
  });
});

it.each([
  [sora, '/videos', 'https://api.openai.com/v1/videos', 'Bearer KEY'],
  [
    doubao,
    '/contents/generations/tasks',
    'https://ark.cn-beijing.volces.com/api/v3/contents/generations/tasks',
    'Bearer KEY',
  ],
  [vidu, '/text2video', 'https://api.vidu.com/ent/v2/text2video', 'Token KEY'],
] as const)('%o goes to its own provider with its key', async (kind, path, url, authorization) => {
  const request = await sent(kind, ['KEY'], { path });
  expect(request.url).toBe(url);
  expect(request.headers.authorization).toBe(authorization);
});

it.each([kling, jimeng])('%o says how its key is written', (kind) => {
  const tools = {
    log,
    keys: ['one-half'],
    http: undefined as never,
    sockets: undefined as never,
    download: undefined as never,
    format: () => undefined,
    onClose: () => {},
  };
  expect(() => kind.spec.setup({ key: 'one-half' }, tools)).toThrow('ACCESS|SECRET');
});

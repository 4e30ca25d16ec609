import { expect, test } from 'vitest';
import { awsHeaders } from '../../channels/_kit/identity/aws-signature.ts';

/** The published vectors of Signature Version 4: what is asked, and the signature. */
const vectors: readonly {
  readonly name: string;
  readonly method?: string;
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signed: string;
  readonly signature: string;
}[] = [
  {
    name: 'a plain request',
    target: '/',
    signed: 'host;x-amz-date',
    signature: '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  },
  {
    name: 'letters that need no escape',
    target: '/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz',
    signed: 'host;x-amz-date',
    signature: '07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f',
  },
  {
    name: 'slashes that say nothing',
    target: '//example//',
    signed: 'host;x-amz-date',
    signature: '9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84',
  },
  {
    name: 'parameters by their names',
    target: '/?Param2=value2&Param1=value1',
    signed: 'host;x-amz-date',
    signature: 'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  },
  {
    name: 'parameters by their values',
    target: '/?Param1=value2&Param1=value1',
    signed: 'host;x-amz-date',
    signature: '5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694',
  },
  {
    name: 'a parameter that is not ASCII',
    target: '/?\u{1234}=bar',
    signed: 'host;x-amz-date',
    signature: '2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04',
  },
  {
    name: 'blanks in headers',
    target: '/',
    headers: { 'my-header1': ' value1', 'my-header2': '"a   b   c"' },
    signed: 'host;my-header1;my-header2;x-amz-date',
    signature: 'acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736',
  },
  {
    name: 'a body',
    method: 'POST',
    target: '/',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'Param1=value1',
    signed: 'content-type;host;x-amz-date',
    signature: 'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  },
];

const credentials = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
};
const scope = {
  service: 'service',
  region: 'us-east-1',
  at: new Date('2015-08-30T12:36:00Z'),
  digest: false,
};

test.each(vectors)(
  '$name is signed as AWS says',
  async ({ method = 'GET', target, headers = {}, body = '', ...expected }) => {
    const url = new URL(`https://example.amazonaws.com${target}`);
    const { authorization } = await awsHeaders({ method, url, headers, body }, credentials, scope);
    expect(authorization).toBe(
      `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${expected.signed}, Signature=${expected.signature}`,
    );
  },
);

test('a session token is signed with the rest, and sent', async () => {
  const sessionToken = '6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267';
  const url = new URL('https://example.amazonaws.com/');
  const headers = await awsHeaders(
    { method: 'GET', url, headers: {}, body: '' },
    { ...credentials, sessionToken },
    scope,
  );
  expect(headers['x-amz-security-token']).toBe(sessionToken);
  expect(headers.authorization).toContain(
    'Signature=07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8',
  );
});

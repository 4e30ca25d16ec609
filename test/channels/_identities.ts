import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, vi } from 'vitest';

type Json = Record<string, unknown>;

/** Token endpoints of all clouds at one address. */
export interface Identities {
  readonly url: string;
  readonly requests: {
    readonly url: string;
    readonly headers: IncomingMessage['headers'];
    readonly body: string;
  }[];
  answer: { readonly status: number; readonly body: Json };
}

/** Response with a token that is valid for an hour, as most endpoints send it. */
export const ordinary = {
  status: 200,
  body: { access_token: 'token-1', expires_in: 3600, token_type: 'Bearer' },
};

/**
 * Starts them on this machine for the tests of one file; they answer everybody with `answer`. After each test they have forgotten what they
 * were asked, and variables of the environment are what they were.
 */
export async function startIdentities(): Promise<Identities> {
  const requests: Identities['requests'] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      requests.push({ url: request.url ?? '', headers: request.headers, body });
      response
        .writeHead(identities.answer.status, {
          'content-type': 'application/json',
          'metadata-flavor': 'Google',
        })
        .end(JSON.stringify(identities.answer.body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const identities: Identities = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answer: ordinary,
  };
  afterAll(() => server.close());
  afterEach(() => {
    vi.unstubAllEnvs();
    requests.length = 0;
    identities.answer = ordinary;
  });
  return identities;
}

import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

type Json = Record<string, unknown>;

/** The endpoints at which clouds give out tokens, all at one address. */
export interface Identities {
  readonly server: Server;
  readonly url: string;
  readonly asked: {
    readonly url: string;
    readonly headers: IncomingMessage['headers'];
    readonly body: string;
  }[];
  answer: { readonly status: number; readonly body: Json };
}

/** A token that is good for an hour, as most endpoints give it. */
export const ordinary = {
  status: 200,
  body: { access_token: 'token-1', expires_in: 3600, token_type: 'Bearer' },
};

/** Starts them on this machine; they answer everybody with `answer`. */
export async function startIdentities(): Promise<Identities> {
  const asked: Identities['asked'] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      asked.push({ url: request.url ?? '', headers: request.headers, body });
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
    server,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    answer: ordinary,
  };
  return identities;
}

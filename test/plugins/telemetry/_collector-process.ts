import { createServer } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { seenIn, type Seen } from './_otlp.ts';

/*
 * A receiver of OTLP/HTTP in a process of its own. It reports what it got to the process that started it, and answers as that tells it to.
 */

/** Behaviour of the receiver. */
export interface Behaviour {
  readonly status?: number;
  readonly retryAfter?: string;
  /** JSON body of the response. */
  readonly body?: string;
  /** Reads the request and never answers. */
  readonly hangs?: boolean;
}

/** Report of the receiver. */
export type Report =
  | { readonly type: 'listens'; readonly port: number }
  | { readonly type: 'behaves' }
  | { readonly type: 'answered' }
  | {
      readonly type: 'got';
      readonly seen: Seen;
      readonly headers: Readonly<Record<string, string | string[] | undefined>>;
      readonly taken: boolean;
    };

const report = (message: Report): void => void process.send?.(message);

let behaviour: Behaviour = JSON.parse(process.argv[3] ?? '{}') as Behaviour;
process.on('message', (next: Behaviour) => {
  behaviour = next;
  report({ type: 'behaves' });
});
process.on('disconnect', () => process.exit());

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { status = 200, retryAfter, hangs = false, body: answer } = behaviour;
  const { headers, url = '' } = request;
  const sent = Buffer.concat(chunks);
  const body = headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
  const signal = url.split('/').at(-1) as Seen['signal'];
  const seen = seenIn(signal, headers['content-type'] ?? '', body);
  report({ type: 'got', seen, headers, taken: !hangs && status === 200 });
  if (hangs) return;
  response.writeHead(status, retryAfter === undefined ? {} : { 'retry-after': retryAfter });
  response.end(answer, () => report({ type: 'answered' }));
});
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) report({ type: 'listens', port: address.port });
});

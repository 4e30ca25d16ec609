import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** The signing secret of webhooks in these tests. */
export const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`;

/** One alert of a webhook. */
export interface SeenAlert {
  readonly id: string;
  readonly kind: string;
  readonly subject: string;
  readonly severity: string;
  readonly state: string;
  readonly text: string;
  readonly link?: string;
}

/** One request that a receiver got. */
export interface Seen {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: {
    readonly type: string;
    readonly data: { readonly alerts: readonly SeenAlert[]; readonly more: number };
  };
}

/** A receiver of webhooks. */
export interface Receiver {
  readonly url: string;
  readonly seen: Seen[];
  /** All alerts of all requests, in order. */
  alerts(kind?: string): readonly SeenAlert[];
}

/** Status of an answer, with a `location` for a redirect; `hang` for no answer. */
type Answer = number | 'hang' | { readonly status: number; readonly location: string };

/** Starts a receiver. `answer` says what each request gets, by its index; 204 by default. */
export async function startReceiver(answer: (index: number) => Answer = () => 204): Promise<Receiver> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const text = Buffer.concat(pieces).toString();
      seen.push({ headers: request.headers, text, body: JSON.parse(text) as Seen['body'] });
      const given = answer(seen.length - 1);
      if (given === 'hang') return;
      if (typeof given === 'number') response.writeHead(given).end();
      else response.writeHead(given.status, { location: given.location }).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    seen,
    alerts: (kind) =>
      seen.flatMap(({ body }) => body.data.alerts).filter((one) => kind === undefined || one.kind === kind),
  };
}

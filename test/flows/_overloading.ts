/** Runs clients that call a gateway repeatedly and report refusals, in a thread of their own, because they would block together with the gateway's thread. */
import { Agent, request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

/** A call that clients make. */
export interface ClientCall {
  readonly format: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A call that was refused. */
export interface Refused {
  readonly format: string;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

const agent = new Agent({ keepAlive: true });
const calls = workerData as readonly ClientCall[];

async function callAgain(first: number): Promise<never> {
  for (let index = first; ; index += 1) {
    const one = calls[index % calls.length];
    if (one === undefined) throw new Error('There is nothing to ask.');
    const { format, url, headers, body } = one;
    const sent = request(url, { method: 'POST', agent, headers });
    sent.end(body);
    const answer = await new Promise<IncomingMessage>((resolve, reject) =>
      sent.once('response', resolve).once('error', reject),
    );
    const responseText = await text(answer);
    if (answer.statusCode !== 503) continue;
    const refused: Refused = { format, retryAfter: answer.headers['retry-after'], body: responseText };
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of threads has no origin
    parentPort?.postMessage(refused);
    await pause(20);
  }
}

for (let client = 0; client < 24; client += 1) void callAgain(client);

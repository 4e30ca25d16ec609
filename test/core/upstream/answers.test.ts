import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Exchange } from '../../../core/call/exchange.ts';
import type { Upstream } from '../../../core/sdk/channel.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { Gate } from '../../../core/sdk/gate.ts';
import type { HttpClient } from '../../../core/sdk/http.ts';
import { createHttpClient } from '../../../core/upstream/send.ts';
import { all, outcome } from '../../support/answer.ts';
import { testCall } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../../support/upstream.ts';
import { patience } from '../../support/patience.ts';

const requestBody = '{"model":"m","text":"h\u00e9llo \u{1F600}"}';
const wholeBody = '{"answer":"w\u00f6rld"}';
const frames = ['data: {"n":1}\n\n', 'data: {"n":2,"text":"\u{1F600}"}\n\n', 'data: [DONE]\n\n'];
const stream = { 'content-type': 'text/event-stream' };
const silent = (): void => {};

let upstream: ScriptedUpstream;
let http: HttpClient;
/** Gives a silent provider up, but none whose machine stands still for a moment. */
let brisk: HttpClient;
let script: (request: SeenRequest, response: ServerResponse) => void | Promise<void> = silent;
const exchanges: Exchange[] = [];

beforeAll(async () => {
  upstream = await startUpstream((request, response) => script(request, response));
  http = createHttpClient({ connectTimeout: patience.wait, idleTimeout: patience.wait });
  brisk = createHttpClient({ connectTimeout: patience.wait, idleTimeout: 1500 });
});
afterEach(() => {
  for (const exchange of exchanges.splice(0)) exchange.end();
  upstream.requests.length = 0;
});
afterAll(async () => {
  await http.close();
  await brisk.close();
  await upstream.close();
});

interface Begun {
  readonly answer: Promise<Upstream>;
  readonly gate: Gate;
  leave(): void;
}

function begin(url = upstream.url, client = http): Begun {
  const { call, exchange } = testCall();
  exchanges.push(exchange);
  const headers = { 'content-type': 'application/json', 'x-test-version': '7' };
  const answer = client.send(call, { url: `${url}/v1/chat`, headers, body: Buffer.from(requestBody) });
  return { answer, gate: call.gate, leave: () => exchange.end() };
}

/** Bytes of the answer that the gateway's side has taken. */
let taken = 0;

/** Writes an answer as fast as it is taken. */
const writing = (whole: Buffer) => async (_request: unknown, response: ServerResponse) => {
  taken = 0;
  const piece = 64 * 1024;
  for (let sent = 0; sent < whole.length; sent += piece) {
    // oxlint-disable-next-line no-await-in-loop
    if (!response.write(whole.subarray(sent, sent + piece))) await once(response, 'drain');
    taken = sent + piece;
  }
  response.end();
};

/** Waits until the provider can write no more. */
async function heldBack(): Promise<void> {
  let before = 0;
  await eventually(async () => {
    const earlier = before;
    before = taken;
    await setTimeout(50);
    return taken > 0 && taken === earlier;
  });
}

const send = (client = http): Promise<Upstream> => begin(upstream.url, client).answer;

describe('a provider', () => {
  it('gets the body as it is, and its answer comes as it is', async () => {
    script = (_, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(wholeBody);
    const answer = await send();
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
    expect((await all(answer)).toString()).toBe(wholeBody);
    const [seen] = upstream.requests;
    expect([seen?.method, seen?.url, seen?.body.toString()]).toEqual(['POST', '/v1/chat', requestBody]);
    expect(seen?.headers).toMatchObject({ 'x-test-version': '7' });
  });

  it('that streams is read as it writes', async () => {
    let finish: (() => void) | undefined;
    script = (_, response) => {
      response.writeHead(200, stream).write(frames[0]);
      finish = (): void => void response.end(frames.slice(1).join(''));
    };
    const answer = await send();
    const seen: string[] = [];
    await new Promise<void>((resolve, reject) => {
      answer.bytes.subscribe({
        next(bytes) {
          seen.push(bytes.toString());
          if (seen.length === 1) finish?.();
        },
        error: reject,
        complete: resolve,
      });
    });
    expect(seen[0]).toBe(frames[0]);
    expect(seen.join('')).toBe(frames.join(''));
  });

  it.each([429, 500])('that answers %i is heard with its headers and body', async (status) => {
    script = (_, response) =>
      void response.writeHead(status, { 'retry-after': '2' }).end('{"error":{"message":"no"}}');
    const answer = await send();
    expect([answer.status, answer.headers['retry-after']]).toEqual([status, '2']);
    expect((await all(answer)).toString()).toBe('{"error":{"message":"no"}}');
  });

  it('that tells of an error after a 200 is heard too', async () => {
    const failure = 'data: {"error":{"message":"overloaded"}}\n\n';
    script = (_, response) => void response.writeHead(200, stream).end(frames[0] + failure);
    expect((await all(await send())).toString()).toBe(frames[0] + failure);
  });

  it('that writes more than is held before anybody reads is held back, and then read to its end', async () => {
    const whole = Buffer.alloc(8 * 1024 * 1024, 'many words ');
    const { answer } = begin();
    script = writing(whole);
    const held = await answer;
    await heldBack();
    expect((await all(held)).equals(whole)).toBe(true);
  });

  it('that was held back before anybody read is not read while the client takes nothing', async () => {
    const whole = Buffer.alloc(8 * 1024 * 1024, 'many words ');
    const { answer, gate } = begin();
    script = writing(whole);
    const held = await answer;
    await heldBack();
    gate.close();
    let read = 0;
    let isOver = false;
    held.bytes.subscribe({ next: ({ length }) => void (read += length), complete: () => (isOver = true) });
    await setTimeout(100);
    expect(read).toBeLessThan(whole.length / 8);
    gate.open();
    await eventually(() => isOver);
    expect(read).toBe(whole.length);
  });

  it('that breaks off in the middle of a frame has not ended', async () => {
    script = (_, response) => {
      response.writeHead(200, stream).write(`${frames[0]}data: {"n`, () => response.destroy());
    };
    const { bytes, error } = await outcome(await send());
    expect(`${frames[0]}data: {"n`).toContain(bytes.toString());
    expect(error).toMatchObject({ code: 'upstream_cut', origin: 'upstream', retryable: true });
  });

  it('that stays silent is given up, before its answer and in the middle of it', async () => {
    script = silent;
    await expect(send(brisk)).rejects.toMatchObject({ code: 'upstream_timeout', origin: 'upstream' });
    script = (_, response) => void response.writeHead(200, stream).write(frames[0]);
    const { error } = await outcome(await send(brisk));
    expect(error).toMatchObject({ code: 'upstream_timeout', origin: 'upstream' });
  });

  it('that is not there is told of without its address', async () => {
    const failure: unknown = await begin('http://127.0.0.1:9').answer.catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(GatewayError);
    expect(failure).toMatchObject({ origin: 'upstream', retryable: true });
    expect((failure as GatewayError).message).not.toMatch(/127\.0\.0\.1/);
  });

  it('is let go of when the client leaves, in the middle of an answer and before there is one', async () => {
    script = (_, response) => void response.writeHead(200, stream).write(frames[0]);
    const answer = await send();
    await new Promise<void>((resolve) => {
      const subscription = answer.bytes.subscribe(() => {
        setImmediate(() => subscription.unsubscribe());
        resolve();
      });
    });
    await upstream.requests[0]?.closed;

    script = silent;
    const { answer: waiting, leave } = begin();
    await eventually(() => upstream.requests.length === 2);
    leave();
    await expect(waiting).rejects.toMatchObject({ code: 'client_closed_request' });
    await upstream.requests[1]?.closed;
  });
});

import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Observable, Subject, throwError } from 'rxjs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Reply } from '../../../core/front/reply.ts';
import { createLog } from '../../../core/log.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { Exchange } from '../../../core/call/exchange.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { makeCall, type CallOptions } from '../../../core/sdk/testing/call.ts';
import { eventually } from '../../support/eventually.ts';
import { Bare, requestText } from '../../flows/_socket.ts';

interface Stage {
  readonly exchange: Exchange;
  readonly response: ServerResponse;
  readonly reply: Reply;
  readonly events: Subject<GatewayEvent>;
  readonly client: Bare;
  readonly lines: Record<string, unknown>[];
  /** Errors that were reported after the end of the reply, with the id of the call. */
  readonly late: unknown[];
  /** Number of times that the reply reported its end. */
  readonly done: () => number;
}

/** A reply to a client that reads everything. Nothing is written yet. */
async function stage(options: CallOptions = {}, keepAlive = 1_000): Promise<Stage> {
  const made = await makeCall(options);
  made.read();
  const lines: Record<string, unknown>[] = [];
  const late: unknown[] = [];
  let done = 0;
  const arrived = Promise.withResolvers<ServerResponse>();
  const server = createServer((_request, response) => arrived.resolve(response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = await Bare.to(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  onTestFinished(async () => {
    client.socket.destroy();
    server.close();
    await once(server, 'close');
  });
  client.write(requestText('GET', '/', {}));
  const response = await arrived.promise;
  const log = createLog('debug', {
    write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>),
  });
  const endErrors = (error: unknown, id?: string): void => void late.push([id, error]);
  const reply = new Reply(
    made.exchange,
    response,
    { log, endErrors, keepAlive, stalled: 60_000 },
    () => (done += 1),
  );
  return {
    exchange: made.exchange,
    response,
    reply,
    events: new Subject(),
    client,
    lines,
    late,
    done: () => done,
  };
}

const text = (words: string): GatewayEvent => ({ type: 'text-delta', block: 0, choice: 0, text: words });
const bytes = (of: string): GatewayEvent => ({ type: 'bytes', bytes: Buffer.from(of) });
const answer = (headers: Record<string, string>): GatewayEvent => ({ type: 'answer', status: 200, headers });
const cut = new GatewayError('upstream_cut', 'The provider broke off.');

describe('a reply that fails', () => {
  test('before anything was written is one error with its status and length, and the connection is kept', async () => {
    const { reply, events, client, exchange, done } = await stage();
    reply.send(events);
    events.error(cut);
    const got = await client.until(/\r\n\r\n\{.*\}/s);
    expect(got).toMatch(/^HTTP\/1\.1 502 /);
    expect(got).toMatch(/content-type: application\/json\r\n/);
    expect(got).not.toMatch(/connection: close/i);
    const [, body = ''] = got.split('\r\n\r\n');
    expect(got).toContain(`content-length: ${Buffer.byteLength(body)}\r\n`);
    expect([exchange.failure, exchange.hasEnded, done()]).toEqual([cut, true, 1]);
  });

  test('behind events that a stream says nothing of has its status still', async () => {
    const { reply, events, client, response } = await stage({ stream: true });
    reply.send(events);
    events.next({ type: 'attempt' } as GatewayEvent);
    events.next({ type: 'usage', usage: { input: 1, output: 1 } } as GatewayEvent);
    expect(response.headersSent).toBe(false);
    events.error(cut);
    expect(await client.until(/\}$/)).toMatch(/^HTTP\/1\.1 502 /);
  });

  test('in the middle of a stream that passes through goes on with its numbers', async () => {
    const { reply, events, client } = await stage({ stream: true, format: 'responses' });
    reply.send(events);
    const passed = (frames: string): GatewayEvent => ({
      type: 'frames',
      format: 'responses',
      bytes: Buffer.from(frames),
    });
    events.next(passed('event: a\ndata: {"type":"a","sequence_number":6}\n\n'));
    events.next(passed(': nothing to count\n\n'));
    events.error(cut);
    expect(await client.until(/\r\n0\r\n\r\n$/)).toMatch(/"sequence_number":7/);
  });

  test('in the middle of a stream ends with the error event of its format', async () => {
    const { reply, events, client, exchange } = await stage({ stream: true });
    reply.send(events);
    events.next(text('Half'));
    events.error(cut);
    const got = await client.until(/\r\n0\r\n\r\n$/);
    expect(got).toMatch(/^HTTP\/1\.1 200 /);
    expect(got.indexOf('Half')).toBeLessThan(got.indexOf('The provider broke off.'));
    expect(exchange.failure).toBe(cut);
  });

  test('in the middle of the bytes of a file breaks the connection, and is done once', async () => {
    const { reply, events, client, exchange, done, lines } = await stage({ operation: 'state' });
    reply.send(events);
    events.next(answer({ 'content-length': '10' }));
    events.next(bytes('half'));
    await client.until(/half$/);
    events.error(cut);
    await client.closed;
    expect(client.text).toMatch(/\r\n\r\nhalf$/);
    expect([exchange.hasEnded, done(), lines]).toEqual([true, 1, []]);
  });

  test('because of a defect is a 500 without the reason, which the log has', async () => {
    const { reply, client, lines, exchange } = await stage();
    reply.send(throwError(() => new Error('the secret reason')));
    const got = await client.until(/\r\n\r\n\{.*\}/s);
    expect(got).toMatch(/^HTTP\/1\.1 500 /);
    expect(got).not.toContain('secret');
    expect(lines).toMatchObject([
      { id: exchange.id, msg: 'a call failed inside the gateway', error: { message: 'the secret reason' } },
    ]);
  });

  test('because an event cannot be encoded lets go of the provider at once', async () => {
    const { reply, client, exchange } = await stage({ stream: true });
    let isListening = true;
    let provider: { next(event: GatewayEvent): void } | undefined;
    reply.send(
      new Observable<GatewayEvent>((subscriber) => {
        provider = subscriber;
        return () => {
          isListening = false;
        };
      }),
    );
    provider?.next(text('Half'));
    provider?.next({ type: 'frames', format: 'chat-completions', bytes: undefined as unknown as Buffer });
    expect(isListening).toBe(false);
    expect(await client.until(/\r\n0\r\n\r\n$/)).toContain('Half');
    expect(exchange.failure?.code).toBe('internal_error');
  });

  test('and whose error cannot be encoded either breaks the connection, and the log says so', async () => {
    const { reply, client, exchange, lines, done } = await stage();
    Object.defineProperty(exchange, 'format', {
      value: {
        errorReply() {
          throw new Error('no words');
        },
      },
    });
    reply.fail(cut);
    await client.closed;
    expect(client.text).toBe('');
    expect(lines).toMatchObject([
      { id: exchange.id, msg: 'failed to send an error response', error: { message: 'no words' } },
    ]);
    expect([exchange.hasEnded, done()]).toEqual([true, 1]);
    reply.fail(cut);
    expect([lines.length, done()]).toEqual([1, 1]);
  });

  test('with a body of another length than its head says breaks the connection', async () => {
    const { reply, events, client, lines, exchange, done } = await stage({ operation: 'state' });
    reply.send(events);
    events.next(answer({ 'content-length': '10' }));
    events.next(bytes('short'));
    events.complete();
    await client.closed;
    expect(lines).toMatchObject([
      { id: exchange.id, msg: 'a response does not have the length of its content-length header' },
    ]);
    expect(lines[0]?.error).toBeDefined();
    expect(done()).toBe(1);
  });
});

describe('an error after the end of a reply', () => {
  test('is reported with the id of the call, but not a refusal', async () => {
    const { reply, events, late, exchange, client } = await stage();
    reply.send(events);
    events.error(cut);
    await client.until(/\}$/);
    const defect = new Error('too late');
    reply.fail(defect);
    reply.fail(cut);
    expect(late).toEqual([[exchange.id, defect]]);
  });

  test('is reported of a pipeline that answers for a client that has left, and its provider is let go of', async () => {
    const { reply, late, exchange, client, response, done } = await stage();
    client.socket.destroy();
    await eventually(() => response.destroyed && done() === 1);
    const defect = new Error('nobody is there');
    reply.send(throwError(() => defect));
    reply.send(throwError(() => cut));
    expect(late).toEqual([[exchange.id, defect]]);
    let subscriptions = 0;
    reply.send(
      new Observable(() => {
        subscriptions += 1;
        return () => (subscriptions -= 1);
      }),
    );
    expect([subscriptions, done()]).toEqual([0, 1]);
  });
});

describe('a reply of bytes', () => {
  test('that is short goes out whole with its head, and a longer one piece by piece', async () => {
    const { reply, events, client, response } = await stage({ operation: 'state' });
    reply.send(events);
    events.next(answer({ 'content-length': '4', 'content-type': 'text/csv', etag: '"1"', 'x-secret': 'no' }));
    events.next(bytes('a,b\n'));
    expect(response.headersSent).toBe(false);
    events.complete();
    const got = await client.until(/a,b\n$/);
    expect(got).toMatch(/^HTTP\/1\.1 200 /);
    expect(got).toMatch(/content-type: text\/csv\r\n/);
    expect(got).toMatch(/content-length: 4\r\n/);
    expect(got).toMatch(/etag: "1"\r\n/);
    expect(got).not.toContain('x-secret');
  });

  test('that is longer than was announced for its first piece is not lost: all pieces are sent in order', async () => {
    const { reply, events, client, exchange } = await stage({ operation: 'state' });
    reply.send(events);
    // The length of compressed bytes, which is that of the first unpacked piece by chance. It is not in the head.
    const head = { type: 'answer', status: 206, headers: {} } as const;
    events.next({ ...head, headers: { 'content-length': '4' } });
    events.next(bytes('1234'));
    events.next(head);
    events.next(bytes('5678'));
    events.complete();
    const got = await client.until(/\r\n0\r\n\r\n$/);
    expect(got).toMatch(/^HTTP\/1\.1 206 /);
    expect(got).toMatch(/1234[^]*5678/);
    expect(exchange.failure).toBeUndefined();
  });

  test('of a plugin that names no provider is a 200, with the length that it has', async () => {
    const { reply, events, client, exchange } = await stage({ operation: 'state' });
    reply.send(events);
    events.next(bytes('some'));
    events.complete();
    expect(await client.until(/\r\n0\r\n\r\n$/)).toMatch(/^HTTP\/1\.1 200 [^]*application\/json[^]*some/);
    expect(exchange.failure).toBeUndefined();
  });

  test('without a single byte has the status and headers of the provider', async () => {
    const { reply, events, client } = await stage({ operation: 'state' });
    reply.send(events);
    events.next({ type: 'answer', status: 416, headers: { 'content-range': 'bytes */9', vary: 'x' } });
    events.complete();
    const got = await client.until(/\r\n\r\n/);
    expect(got).toMatch(/^HTTP\/1\.1 416 /);
    expect(got).toMatch(/content-range: bytes \*\/9\r\n/);
    expect(got).not.toMatch(/vary/i);
  });
});

describe('a connection', () => {
  test('is closed behind a reply whose head is not sent yet, and kept behind one whose head is', async () => {
    const before = await stage({ stream: true });
    before.reply.closeAfterwards();
    before.reply.send(before.events);
    before.events.next(text('a'));
    before.events.complete();
    await before.client.closed;
    expect(before.client.text).toMatch(/connection: close\r\n/i);
    const after = await stage({ stream: true });
    after.reply.send(after.events);
    after.events.next(text('a'));
    after.reply.closeAfterwards();
    after.events.complete();
    expect(await after.client.until(/\r\n0\r\n\r\n$/)).not.toMatch(/connection: close/i);
  });

  test('on which nonsense follows gets the error where nothing was sent, and breaks in the middle of a reply', async () => {
    const refusal = new GatewayError('invalid_request', 'The request is not valid HTTP.');
    const silent = await stage({ stream: true });
    silent.reply.send(silent.events);
    silent.reply.breakOff(refusal);
    await silent.client.closed;
    expect(silent.client.text).toMatch(/^HTTP\/1\.1 400 [^]*connection: close[^]*not valid HTTP/i);
    const begun = await stage({ stream: true });
    begun.reply.send(begun.events);
    begun.events.next(text('Half'));
    await begun.client.until(/Half/);
    begun.reply.breakOff(refusal);
    await begun.client.closed;
    expect(begun.client.text).not.toContain('not valid HTTP');
  });
});

describe('silence in a stream', () => {
  test('is filled when it lasted as long as it may, and not again before it did', async () => {
    const { reply, events, client } = await stage({ stream: true }, 1_000);
    reply.send(events);
    const start = performance.now();
    reply.tick(start + 500);
    expect(client.text).toBe('');
    reply.tick(start + 2_000);
    const first = await client.until(/\r\n\r\n[^]+\n\n/);
    expect(first).toMatch(/^HTTP\/1\.1 200 [^]*text\/event-stream/);
    reply.tick(start + 2_999);
    events.next(text('word'));
    reply.tick(start + 3_100);
    reply.tick(start + 4_050);
    const between = await client.until(/word/);
    expect(between.match(/\n: |\n:\n|^:/gm) ?? []).toHaveLength(1);
    reply.tick(start + 4_100);
    events.complete();
    expect((await client.until(/\r\n0\r\n\r\n$/)).match(/^:/gm) ?? []).toHaveLength(2);
  });

  test('is left alone before a whole reply', async () => {
    const { reply, events, client } = await stage({}, 1_000);
    reply.send(events);
    reply.tick(performance.now() + 1_000_000);
    events.error(cut);
    expect(await client.until(/\}$/)).toMatch(/^HTTP\/1\.1 502 /);
  });

  test('is left alone behind the end of a reply', async () => {
    const { reply, events, client, done } = await stage({ stream: true }, 1_000);
    reply.send(events);
    events.next(text('a'));
    events.complete();
    const whole = await client.until(/\r\n0\r\n\r\n$/);
    reply.tick(performance.now() + 1_000_000);
    expect([client.text, done()]).toEqual([whole, 1]);
  });
});

test('a piece that the format of the client cannot carry is named in the head of the reply', async () => {
  const { reply, events, client, exchange } = await stage();
  reply.send(events);
  events.next({
    type: 'loss',
    loss: { path: 'content.0.thought', kind: 'response', from: 'generate-content', to: 'chat-completions' },
  });
  events.next(text('Hi'));
  events.complete();
  expect(await client.until(/\}$/)).toMatch(/x-sluice-loss: [^\r]*content\.0\.thought/);
  expect(exchange.failure).toBeUndefined();
});

import { Agent, request as send, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { modelOf, type Case, type Conduct } from './cases.ts';
import { bodyOf, dialects, tagOf, type Format } from './dialects.ts';
import type { Mode } from './faults.ts';
import { patience } from '../support/patience.ts';

/** Response as a client saw it. */
export interface Seen {
  /** 0 when there was no answer. */
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** False when the connection broke before the answer's end. */
  readonly ended: boolean;
  /** It left on purpose before the end. */
  readonly left: boolean;
  /** There was no end in a time that is long enough for every case. */
  readonly hung: boolean;
  /** The call's id in the usage log. */
  readonly id: string | undefined;
  readonly milliseconds: number;
}

/** One request, in a client's format. */
export interface Request {
  readonly client: Format;
  readonly mode: Mode;
  readonly model: string;
  readonly body: string;
  readonly conduct: Conduct;
  readonly leaveAfter?: number;
  readonly fresh?: boolean;
  /** Which of the API keys; a text is a key by itself. */
  readonly key?: number | string;
}

/** Clients that make the calls. */
export interface Clients {
  /** Makes the call of a case. */
  run(one: Case): Promise<Seen>;
  send(request: Request): Promise<Seen>;
  /** Closes what is kept alive. */
  close(): void;
}

/** Sips of a slow reader, and the pause between two. */
const sips = { count: 25, pause: 8 };

/** Clients of one gateway. A call that has not ended after `longest` milliseconds has hung. */
export function startClients(url: string, keys: readonly string[], longest = patience.wait): Clients {
  const kept = new Agent({ keepAlive: true, maxFreeSockets: 64 });
  const sendOne = (request: Request): Promise<Seen> => {
    const { key = 0 } = request;
    const secret = typeof key === 'string' ? key : (keys[key % keys.length] ?? '');
    return exchange(request, { url, secret, agent: request.fresh === true ? false : kept, longest });
  };
  return {
    run: (one) => sendOne({ ...one, model: modelOf(one), body: bodyOfCase(one) }),
    send: sendOne,
    close: () => kept.destroy(),
  };
}

function bodyOfCase(one: Case): string {
  const { client, mode } = one;
  const stream = mode === 'stream';
  const body = bodyOf(client, modelOf(one), stream, tagOf(one.number, one.size));
  if (!one.asksUsage || !stream || client !== 'chat-completions') return body;
  return `${body.slice(0, -1)},"stream_options":{"include_usage":true}}`;
}

interface Connection {
  readonly url: string;
  readonly secret: string;
  readonly agent: Agent | false;
  readonly longest: number;
}

function exchange(
  { client, mode, model, body, conduct, leaveAfter }: Request,
  { url, secret, agent, longest }: Connection,
): Promise<Seen> {
  const dialect = dialects[client];
  const startedAt = performance.now();
  return new Promise((resolve) => {
    let left = false;
    let hung = false;
    let answer: IncomingMessage | undefined;
    const chunks: Buffer[] = [];
    const request = send(new URL(dialect.path(model, mode === 'stream'), url), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        ...dialect.headers,
      },
      agent,
    });
    const leave = (): void => {
      left = true;
      request.destroy();
    };
    const timer = setTimeout(() => {
      hung = true;
      request.destroy();
    }, longest);
    let leaving: NodeJS.Timeout | undefined;
    if (conduct === 'leaves')
      request.once('finish', () => {
        leaving = setTimeout(leave, leaveAfter);
      });
    let settled = false;
    const settle = (): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      clearTimeout(leaving);
      const { 'x-request-id': id, 'request-id': other } = answer?.headers ?? {};
      resolve({
        status: answer?.statusCode ?? 0,
        headers: answer?.headers ?? {},
        text: Buffer.concat(chunks).toString(),
        ended: answer?.complete === true,
        left: left && answer?.complete !== true,
        hung,
        id: [id, other].flat().find((found) => found?.startsWith('req_')),
        milliseconds: performance.now() - startedAt,
      });
    };
    request.on('error', () => {
      if (answer === undefined) settle();
    });
    request.on('close', () => {
      if (answer === undefined) settle();
    });
    request.on('response', (response) => {
      answer = response;
      response.on('error', () => {});
      response.on('close', settle);
      if (conduct === 'slow') sipFrom(response, chunks);
      else response.on('data', (chunk: Buffer) => chunks.push(chunk));
    });
    request.end(body);
  });
}

/** Reads a little now and then, later all that is left. */
function sipFrom(response: IncomingMessage, chunks: Buffer[]): void {
  let sip = 0;
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    sip += 1;
    if (sip > sips.count) return;
    response.pause();
    void pause(sips.pause).then(() => response.resume());
  });
}

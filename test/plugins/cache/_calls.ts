import { once } from 'node:events';
import { Agent, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TestGateway } from '../../support/gateway.ts';

/** One socket for each call. */
const agent = new Agent({ keepAlive: false, maxSockets: Infinity });

/** A call in chat completions over a socket of its own, which may leave or read slowly. */
export interface RunningCall {
  /** Resolves with the head of the response. */
  readonly response: Promise<IncomingMessage>;
  /** Everything that was read so far. */
  readonly text: () => string;
  /** Resolves with the whole body, or with what came before it broke off. */
  readonly body: Promise<string>;
  leave(): void;
}

/** Input of a call. */
export interface CallInput {
  readonly text?: string;
  readonly stream?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly key?: string;
  readonly more?: object;
  /** Reads nothing until it is resumed. */
  readonly slowly?: boolean;
}

/** Sends a call. */
export function call(
  gateway: Pick<TestGateway, 'url' | 'key'>,
  {
    text = 'What is new?',
    stream = false,
    headers = {},
    key = gateway.key,
    more = {},
    slowly = false,
  }: CallInput = {},
): RunningCall {
  const request = send(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    agent,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
  });
  request.on('error', () => {});
  request.end(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: text }], stream, ...more }));
  let read = '';
  const response = once(request, 'response').then(([message]) => message as IncomingMessage);
  response.catch(() => {});
  const body = response.then(async (message) => {
    message.setEncoding('utf8');
    message.on('error', () => {});
    if (slowly) message.pause();
    else message.on('data', (chunk: string) => (read += chunk));
    await new Promise((resolve) => message.once('close', resolve));
    return read;
  });
  body.catch(() => {});
  return { response, text: () => read, body, leave: () => void request.destroy() };
}

/** A stream of chat completions that the test writes word by word. */
export class Tap {
  readonly #response: ServerResponse;
  closed = false;

  constructor(response: ServerResponse) {
    this.#response = response;
    response.once('close', () => (this.closed = true));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.#write({ delta: { role: 'assistant', content: '' } });
  }

  emit(content: string): boolean {
    return this.#write({ delta: { content } });
  }

  end(): void {
    this.#write({ delta: {}, finish_reason: 'stop' });
    this.#response.end('data: [DONE]\n\n');
  }

  /** Breaks the stream off. */
  cut(): void {
    this.#response.destroy();
  }

  #write(choice: object): boolean {
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' };
    const choices = [{ index: 0, finish_reason: null, ...choice }];
    return this.#response.write(`data: ${JSON.stringify({ ...chunk, choices })}\n\n`);
  }
}

/** The text that a stream of chat completions has said. */
export function wordsIn(stream: string): string {
  return stream
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => (JSON.parse(line.slice(6)) as Chunk).choices?.[0]?.delta.content ?? '')
    .join('');
}

interface Chunk {
  readonly choices?: readonly { readonly delta: { readonly content?: string } }[];
}

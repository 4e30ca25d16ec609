import { request as send, type IncomingMessage } from 'node:http';
import { key } from './gateway.ts';

type Json = Record<string, unknown>;

/** A public format as a client of streams knows it. */
interface Voice {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  body(words: string): Json;
  /** The text that a frame brings. */
  text(frame: Json): unknown;
  /** True for a frame that ends the reply, or reports its failure. */
  isEnd(frame: Json): boolean;
  isError(frame: Json): boolean;
}

const at = (value: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((inner, name) => (inner as Json | null | undefined)?.[name as string], value);

/** All formats in which streams are asked for. */
export const voices: readonly Voice[] = [
  {
    path: '/v1/chat/completions',
    headers: {},
    body: (content) => ({ model: 'demo', stream: true, messages: [{ role: 'user', content }] }),
    text: (frame) => at(frame, 'choices', 0, 'delta', 'content'),
    isEnd: (frame) => at(frame, 'choices', 0, 'finish_reason') === 'stop',
    isError: (frame) => at(frame, 'error', 'code') === 'server_is_overloaded',
  },
  {
    path: '/v1/messages',
    headers: { 'anthropic-version': '2023-06-01' },
    body: (content) => ({
      model: 'demo',
      max_tokens: 1000,
      stream: true,
      messages: [{ role: 'user', content }],
    }),
    text: (frame) => at(frame, 'delta', 'text'),
    isEnd: ({ type }) => type === 'message_stop',
    isError: ({ type, error }) => type === 'error' && at(error, 'type') === 'overloaded_error',
  },
  {
    path: '/v1/responses',
    headers: {},
    body: (input) => ({ model: 'demo', stream: true, input }),
    text: ({ type, delta }) => (type === 'response.output_text.delta' ? delta : undefined),
    isEnd: ({ type }) => type === 'response.completed',
    isError: ({ type }) => type === 'response.failed' || type === 'error',
  },
  {
    path: '/v1beta/models/demo:streamGenerateContent?alt=sse',
    headers: {},
    body: (text) => ({ contents: [{ role: 'user', parts: [{ text }] }] }),
    text: (frame) => at(frame, 'candidates', 0, 'content', 'parts', 0, 'text'),
    isEnd: (frame) => at(frame, 'candidates', 0, 'finishReason') === 'STOP',
    isError: (frame) => at(frame, 'error', 'status') === 'UNAVAILABLE',
  },
];

/** End of a stream: complete; with the format's error after valid frames; or broken, which is a fault. */
export type End = 'complete' | 'error' | 'broken';

/** A stream of the numbers from 1 to `count` that a client reads. */
export class NumberStream {
  readonly end: Promise<End>;
  /** Resolves with the first bytes of text. */
  readonly begun: Promise<void>;
  /** Reason why the stream is broken. */
  why = '';
  /** Times of `performance.now()`. */
  endedAt = 0;
  readonly #voice: Voice;
  readonly #count: number;
  #text = '';
  #rest = '';
  #isComplete = false;
  #isError = false;
  #begin: () => void = () => {};

  constructor(url: string, voice: Voice, count: number) {
    this.#voice = voice;
    this.#count = count;
    this.begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
    this.end = this.#run(url).then((end) => {
      this.endedAt = performance.now();
      this.#begin();
      return end;
    });
  }

  async #run(url: string): Promise<End> {
    const { path, headers, body } = this.#voice;
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        send(url + path, {
          method: 'POST',
          agent: false,
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        })
          .once('response', resolve)
          .once('error', reject)
          .end(JSON.stringify(body(`!chunks=${this.#count}`)));
      });
      if (response.statusCode !== 200) return this.#broken(`status ${response.statusCode}`);
      response.setEncoding('utf8');
      for await (const chunk of response) this.#read(chunk as string);
    } catch (error) {
      return this.#broken(error instanceof Error ? error.message : String(error));
    }
    const numbers = this.#text.split(/\s+/).filter((word) => word !== '');
    const isInOrder = numbers.every((word, index) => word === String(index + 1));
    if (!isInOrder) return this.#broken(`not the numbers in their order: ${this.#text.slice(-100)}`);
    if (this.#isComplete && numbers.length === this.#count) return 'complete';
    if (this.#isError) return 'error';
    return this.#broken(`ended after ${numbers.length} of ${this.#count} without a word`);
  }

  #read(chunk: string): void {
    this.#rest += chunk;
    const frames = this.#rest.split('\n\n');
    this.#rest = frames.pop() ?? '';
    for (const frame of frames) {
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      if (data === undefined || data === '[DONE]') continue;
      const json = JSON.parse(data) as Json;
      const text = this.#voice.text(json);
      if (typeof text === 'string' && text !== '') {
        this.#text += text;
        this.#begin();
      }
      this.#isComplete ||= this.#voice.isEnd(json);
      this.#isError ||= this.#voice.isError(json);
    }
  }

  #broken(why: string): End {
    this.why = why;
    return 'broken';
  }
}

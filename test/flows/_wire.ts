import { request as send, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { ChannelEntry } from 'sluice';
import anthropic from '../../channels/anthropic.ts';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';

/** The three public formats, with requests of clients and responses of providers. */
export type FormatName = 'chat-completions' | 'messages' | 'generate-content';
export const formatNames: readonly FormatName[] = ['chat-completions', 'messages', 'generate-content'];

type Json = Record<string, unknown>;

/** Requests, responses and decoders of a format. */
export interface Voice {
  /** Model of the channel that has this format. */
  readonly model: string;
  channel(baseUrl: string, options?: Json): ChannelEntry;
  path(model: string, stream: boolean): string;
  readonly headers: Readonly<Record<string, string>>;
  body(model: string, stream: boolean): Json;
  /** Returns a provider's non-streamed reply. */
  whole(text: string, model?: string): Json;
  /** A provider's stream, frame by frame, the end included. */
  frames(words: readonly string[], model?: string): string[];
  /** Number of frames at the end that complete the stream. */
  readonly ending: number;
  errorBody(kind: 'overloaded' | 'rate-limit'): Json;
  errorFrame(kind: 'overloaded' | 'rate-limit'): string;
  /** Decodes a non-streamed reply as a client does. */
  readWhole(body: Json): Read;
  readFrames(frames: readonly { readonly event?: string; readonly data: string }[]): Read;
  /** True when the body is this format's error envelope. */
  isEnvelope(body: Json, status: number): boolean;
}

/** Reply as the client decodes it. */
export interface Read {
  readonly text: string;
  readonly models: readonly string[];
  /** True when the reply is marked as complete. */
  readonly complete: boolean;
  readonly error?: Json | undefined;
  readonly output?: number | undefined;
}

const sse = (value: Json): string => `data: ${JSON.stringify(value)}\n\n`;
const named = (value: Json): string => `event: ${String(value.type)}\ndata: ${JSON.stringify(value)}\n\n`;
const parse = (data: string): Json => JSON.parse(data) as Json;
const at = (value: unknown, ...path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Json | undefined)?.[key as string], value);

const chatUsage = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };
const messagesUsage = { input_tokens: 5, output_tokens: 7 };
const contentUsage = { promptTokenCount: 5, candidatesTokenCount: 7, totalTokenCount: 12 };

export const voices: Readonly<Record<FormatName, Voice>> = {
  'chat-completions': {
    model: 'via-chat',
    channel: (baseUrl, options) =>
      openai({ key: 'sk-upstream', baseUrl: `${baseUrl}/v1`, models: ['via-chat'], id: 'chat', ...options }),
    path: () => '/v1/chat/completions',
    headers: {},
    body: (model, stream) => ({ model, stream, messages: [{ role: 'user', content: 'hi' }] }),
    whole: (text, model = 'via-chat') => ({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      usage: chatUsage,
    }),
    frames(words, model = 'via-chat') {
      const chunk = (delta: Json, finish_reason: string | null = null) =>
        sse({
          id: 'chatcmpl-1',
          object: 'chat.completion.chunk',
          created: 1,
          model,
          choices: [{ index: 0, delta, finish_reason }],
        });
      return [
        chunk({ role: 'assistant', content: '' }),
        ...words.map((content) => chunk({ content })),
        chunk({}, 'stop'),
        sse({
          id: 'chatcmpl-1',
          object: 'chat.completion.chunk',
          created: 1,
          model,
          choices: [],
          usage: chatUsage,
        }),
        'data: [DONE]\n\n',
      ];
    },
    ending: 3,
    errorBody: (kind) => ({
      error:
        kind === 'overloaded'
          ? { message: 'Try later.', type: 'service_unavailable_error', code: 'server_is_overloaded' }
          : { message: 'Slow down.', type: 'requests', code: 'rate_limit_exceeded' },
    }),
    errorFrame: (kind) => sse(voices['chat-completions'].errorBody(kind)),
    readWhole: (body) => ({
      text: String(at(body, 'choices', 0, 'message', 'content') ?? ''),
      models: [String(body.model)],
      complete: at(body, 'choices', 0, 'finish_reason') === 'stop',
      error: undefined,
      output: at(body, 'usage', 'completion_tokens') as number,
    }),
    readFrames(frames) {
      const chunks = frames.filter(({ data }) => data !== '[DONE]').map(({ data }) => parse(data));
      return {
        text: chunks.map((chunk) => String(at(chunk, 'choices', 0, 'delta', 'content') ?? '')).join(''),
        models: chunks.flatMap(({ model }) => (typeof model === 'string' ? [model] : [])),
        complete:
          frames.at(-1)?.data === '[DONE]' &&
          chunks.some((chunk) => at(chunk, 'choices', 0, 'finish_reason') === 'stop'),
        error: chunks.find(({ error }) => error !== undefined && error !== null),
        output: chunks
          .map((chunk) => at(chunk, 'usage', 'completion_tokens'))
          .findLast((count) => count !== undefined) as number,
      };
    },
    isEnvelope(body) {
      const error = body.error as Json | undefined;
      if (error === undefined) return false;
      return (
        typeof error.message === 'string' &&
        typeof error.type === 'string' &&
        (error.param === null || typeof error.param === 'string') &&
        (error.code === null || typeof error.code === 'string')
      );
    },
  },

  messages: {
    model: 'via-messages',
    channel: (baseUrl, options) =>
      anthropic({
        key: 'sk-upstream',
        baseUrl: `${baseUrl}/v1`,
        models: ['via-messages'],
        id: 'messages',
        ...options,
      }),
    path: () => '/v1/messages',
    headers: { 'anthropic-version': '2023-06-01' },
    body: (model, stream) => ({
      model,
      stream,
      max_tokens: 100,
      messages: [{ role: 'user', content: 'hi' }],
    }),
    whole: (text, model = 'via-messages') => ({
      id: 'msg_01',
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: messagesUsage,
    }),
    frames(words, model = 'via-messages') {
      const message = {
        id: 'msg_01',
        type: 'message',
        role: 'assistant',
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
      };
      return [
        named({
          type: 'message_start',
          message: { ...message, usage: { input_tokens: 5, output_tokens: 1 } },
        }),
        named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
        ...words.map((text) =>
          named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
        ),
        named({ type: 'content_block_stop', index: 0 }),
        named({
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: { output_tokens: 7 },
        }),
        named({ type: 'message_stop' }),
      ];
    },
    ending: 3,
    errorBody: (kind) => ({
      type: 'error',
      error:
        kind === 'overloaded'
          ? { type: 'overloaded_error', message: 'Try later.' }
          : { type: 'rate_limit_error', message: 'Slow down.' },
    }),
    errorFrame: (kind) => named(voices.messages.errorBody(kind)),
    readWhole: (body) => ({
      text: String(at(body, 'content', 0, 'text') ?? ''),
      models: [String(body.model)],
      complete: body.stop_reason === 'end_turn',
      error: undefined,
      output: at(body, 'usage', 'output_tokens') as number,
    }),
    readFrames(frames) {
      const events = frames.map(({ data }) => parse(data));
      for (const [index, { event }] of frames.entries()) {
        if (event !== events[index]?.type)
          throw new Error(`The event line says ${event}, its data ${String(events[index]?.type)}.`);
      }
      return {
        text: events.map((event) => String(at(event, 'delta', 'text') ?? '')).join(''),
        models: events.flatMap((event) =>
          event.type === 'message_start' ? [String(at(event, 'message', 'model'))] : [],
        ),
        complete:
          events.at(-1)?.type === 'message_stop' &&
          events.some((event) => at(event, 'delta', 'stop_reason') === 'end_turn'),
        error: events.find(({ type }) => type === 'error'),
        output: events
          .map((event) => at(event, 'usage', 'output_tokens'))
          .findLast((count) => count !== undefined) as number,
      };
    },
    isEnvelope(body) {
      const error = body.error as Json | undefined;
      return (
        body.type === 'error' &&
        typeof error?.type === 'string' &&
        typeof error.message === 'string' &&
        typeof body.request_id === 'string'
      );
    },
  },

  'generate-content': {
    model: 'via-content',
    channel: (baseUrl, options) =>
      gemini({
        key: 'sk-upstream',
        baseUrl: `${baseUrl}/v1beta`,
        models: ['via-content'],
        id: 'content',
        ...options,
      }),
    path: (model, stream) =>
      `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    headers: {},
    body: () => ({ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }),
    whole: (text, modelVersion = 'via-content') => ({
      candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP', index: 0 }],
      usageMetadata: contentUsage,
      modelVersion,
      responseId: 'r1',
    }),
    frames(words, modelVersion = 'via-content') {
      const chunk = (text: string, rest: Json = {}) =>
        sse({
          candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...rest }],
          modelVersion,
          responseId: 'r1',
          usageMetadata: contentUsage,
        });
      return [...words.map((word) => chunk(word)), chunk('', { finishReason: 'STOP' })];
    },
    ending: 1,
    errorBody: (kind) => ({
      error:
        kind === 'overloaded'
          ? { code: 503, message: 'Try later.', status: 'UNAVAILABLE' }
          : { code: 429, message: 'Slow down.', status: 'RESOURCE_EXHAUSTED' },
    }),
    errorFrame: (kind) => sse(voices['generate-content'].errorBody(kind)),
    readWhole: (body) => ({
      text: String(at(body, 'candidates', 0, 'content', 'parts', 0, 'text') ?? ''),
      models: [String(body.modelVersion)],
      complete: at(body, 'candidates', 0, 'finishReason') === 'STOP',
      error: undefined,
      output: at(body, 'usageMetadata', 'candidatesTokenCount') as number,
    }),
    readFrames(frames) {
      const chunks = frames.map(({ data }) => parse(data));
      return {
        text: chunks
          .map((chunk) => String(at(chunk, 'candidates', 0, 'content', 'parts', 0, 'text') ?? ''))
          .join(''),
        models: chunks.flatMap(({ modelVersion }) =>
          typeof modelVersion === 'string' ? [modelVersion] : [],
        ),
        complete:
          chunks.at(-1)?.error === undefined &&
          chunks.some((chunk) => at(chunk, 'candidates', 0, 'finishReason') === 'STOP'),
        error: chunks.find(({ error }) => error !== undefined),
        output: chunks
          .map((chunk) => at(chunk, 'usageMetadata', 'candidatesTokenCount'))
          .findLast((count) => count !== undefined) as number,
      };
    },
    isEnvelope(body, status) {
      const error = body.error as Json | undefined;
      return (
        error?.code === status && typeof error.message === 'string' && /^[A-Z_]+$/.test(String(error.status))
      );
    },
  },
};

/** A short reply of each format, whole. */
export const wholeReplies: Readonly<Record<FormatName | 'responses' | 'text-completions', Json>> = {
  'chat-completions': voices['chat-completions'].whole('fine'),
  messages: voices.messages.whole('fine'),
  'generate-content': voices['generate-content'].whole('fine'),
  responses: {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm',
    output: [
      { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'fine' }] },
    ],
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  },
  'text-completions': {
    id: 'cmpl-1',
    object: 'text_completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, text: 'fine', finish_reason: 'stop', logprobs: null }],
  },
};

/** Response as received over the socket. */
export interface Answer {
  /** HTTP status; 0 when the connection closed before the response. */
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  /** False when the connection closed before the end of the response. */
  readonly ended: boolean;
}

export interface CallOptions {
  /** Called at the first bytes of the response. */
  readonly begun?: () => void;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body?: Json | string | Buffer;
}

/** URL and API key of a gateway. */
export interface Access {
  readonly url: string;
  readonly key: string;
}

/** Sends a request over a new connection. Resolves when the response has ended in any way. */
export function fetchRaw(
  { url, key }: Access,
  path: string,
  { method, headers = {}, body, begun }: CallOptions = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const bytes =
      body === undefined
        ? undefined
        : Buffer.isBuffer(body) || typeof body === 'string'
          ? body
          : JSON.stringify(body);
    const all = {
      authorization: `Bearer ${key}`,
      ...(bytes === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    };
    const given = Object.fromEntries(
      Object.entries(all).filter(([, value]) => value !== undefined),
    ) as Record<string, string | string[]>;
    const request = send(new URL(path, url), {
      method: method ?? (bytes === undefined ? 'GET' : 'POST'),
      headers: given,
      agent: false,
    });
    let answered = false;
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (answered) return;
      if (error.code === 'ECONNRESET')
        resolve({ status: 0, headers: {}, bytes: Buffer.alloc(0), text: '', ended: false });
      else reject(error);
    });
    request.on('response', (response: IncomingMessage) => {
      answered = true;
      const chunks: Buffer[] = [];
      if (begun !== undefined) response.once('data', begun);
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', () => {});
      response.on('close', () => {
        const whole = Buffer.concat(chunks);
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          bytes: whole,
          text: whole.toString(),
          ended: response.complete,
        });
      });
    });
    request.end(bytes);
  });
}

/** Sends a call in a client's format. */
export function call(
  access: Access,
  format: FormatName,
  model: string,
  stream: boolean,
  options: CallOptions = {},
): Promise<Answer> {
  const voice = voices[format];
  return fetchRaw(access, voice.path(model, stream), {
    body: voice.body(model, stream),
    ...options,
    headers: { ...voice.headers, ...options.headers },
  });
}

/** Decodes a response with status 200 as a client does. Throws when it violates the format. */
export function read(format: FormatName, stream: boolean, answer: Answer): Read {
  if (!stream) return voices[format].readWhole(JSON.parse(answer.text) as Json);
  const type = answer.headers['content-type'];
  if (type !== 'text/event-stream') throw new Error(`The content type of the stream is ${String(type)}.`);
  if (answer.text !== '' && !/(\r\n\r\n|\n\n|\r\r)$/.test(answer.text))
    throw new Error(`The stream ends inside a frame: ${answer.text.slice(-200)}`);
  return voices[format].readFrames(parseSse(answer.text));
}

/** Returns the error code of a response. Throws unless it is an error in the format's envelope. */
export function readError(
  format: FormatName,
  answer: Answer,
): { readonly status: number; readonly message: string } {
  const body = JSON.parse(answer.text) as Json;
  if (answer.headers['content-type'] !== 'application/json')
    throw new Error(`The content type of the error is ${String(answer.headers['content-type'])}.`);
  if (!voices[format].isEnvelope(body, answer.status))
    throw new Error(`Not the envelope of ${format}: ${answer.text}`);
  return { status: answer.status, message: String(at(body, 'error', 'message')) };
}

import type { ServerResponse } from 'node:http';
import Anthropic, * as messagesErrors from '@anthropic-ai/sdk';
import { ApiError } from '@google/genai';
import * as chatErrors from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import anthropicChannel from '../../channels/anthropic.ts';
import geminiChannel from '../../channels/gemini.ts';
import openaiChannel from '../../channels/openai.ts';
import { definePlugin, GatewayError, type ErrorCode } from '../../core/sdk/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { anthropic, formats, genai, openai, Recorder, type FormatName } from './sdks.ts';
import { cases, type Case, type Request, type Seen } from './error-cases.ts';

/** The sentence of a provider that has no such model. */
const unknownModel =
  '{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","code":"model_not_found"}}';

/** A plugin that fails: by a bug of its own, or by a refusal that only later plugins make. */
const failing = definePlugin({
  name: 'failing',
  stage: 'shape',
  setup() {
    return function fails(call, next) {
      const refusal = /^refused-by-(\w+)$/.exec(call.model)?.[1];
      if (refusal !== undefined) throw new GatewayError(refusal as ErrorCode, `Refused with ${refusal}.`);
      if (call.model === 'broken') throw new TypeError('secret detail of a bug');
      return next(call);
    };
  },
});

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let script: (response: ServerResponse) => void;
let limited: string;

beforeAll(async () => {
  upstream = await startUpstream((_request, response) => script(response));
  const endpointFor = (format: FormatName) => ({
    id: `scripted-${format}`,
    key: 'channel-key',
    models: [`scripted-${format}`],
    baseUrl: `${upstream.url}/v1`,
    // A busy machine has begun its reply by then.
    timeouts: { idle: 1500 },
  });
  gateway = await startGateway({
    // Channels fail in most of the tests: none is about what follows from that.
    health: { enabled: false },
    limits: { body: 64 * 1024 },
    plugins: [failing()],
    channels: [
      ...formats.map((format) =>
        demo({ id: format, speaks: [format], models: { [`via-${format}`]: 'demo' } }),
      ),
      openaiChannel(endpointFor('chat-completions')),
      anthropicChannel(endpointFor('messages')),
      geminiChannel(endpointFor('generate-content')),
      openaiChannel({ ...endpointFor('responses'), traits: { '*': { formats: ['responses'] } } }),
      demo({
        id: 'odd',
        models: {
          'refused-by-insufficient_quota': 'demo',
          'refused-by-endpoint_not_supported': 'demo',
          broken: 'demo',
        },
      }),
    ],
  });
  limited = (await gateway.apiKeys.create({ name: 'limited', models: ['via-messages'] })).value;
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** An error as an SDK raises it, in words common to all three. */
interface Raised {
  readonly error: unknown;
  readonly status: number | undefined;
  readonly type: string | null | undefined;
  readonly code: string | null | undefined;
  readonly message: string;
  readonly param: string | null | undefined;
  readonly requestId: string | null | undefined;
  /** The messages format says it in the body too. */
  readonly idInBody: string | undefined;
  readonly headers: Headers;
  /** Text before the error in a stream. */
  readonly text: string;
}

type Fail = (request: Request) => Promise<Raised>;

/** Runs a request that must fail, through the SDK of each format. */
const fails: Readonly<Record<FormatName, Fail>> = {
  async 'chat-completions'({ model, text = 'Hi', stream = false, access = gateway, headers, wrong }) {
    const recorder = new Recorder();
    const client = openai(access, { recorder });
    const options = headers === undefined ? {} : { headers };
    const body = { model, messages: [{ role: 'user' as const, content: text }], ...wrong };
    let seen = '';
    const error = await raised(async () => {
      if (!stream) return client.chat.completions.create(body, options);
      for await (const chunk of await client.chat.completions.create({ ...body, stream: true }, options))
        seen += chunk.choices[0]?.delta.content ?? '';
    });
    expect(error).toBeInstanceOf(chatErrors.APIError);
    const { status, type, code, param, message, requestID } = error as InstanceType<
      typeof chatErrors.APIError
    >;
    return {
      error,
      status,
      type,
      code,
      param,
      message,
      requestId: requestID,
      idInBody: undefined,
      headers: recorder.last.headers,
      text: seen,
    };
  },
  async messages({ model, text = 'Hi', stream = false, access = gateway, headers, wrong }) {
    const recorder = new Recorder();
    const client = anthropic(access, { recorder });
    const options = headers === undefined ? {} : { headers };
    const body = { model, max_tokens: 1000, messages: [{ role: 'user' as const, content: text }], ...wrong };
    let seen = '';
    const error = await raised(async () => {
      if (!stream) return client.messages.create(body, options);
      const running = client.messages.stream(body, options);
      running.on('text', (delta) => {
        seen += delta;
      });
      return running.finalMessage();
    });
    expect(error).toBeInstanceOf(messagesErrors.APIError);
    const { status, type, apiMessage, requestID } = error as InstanceType<typeof messagesErrors.APIError>;
    const { request_id: idInBody } = ((error as { error?: unknown }).error ?? {}) as { request_id?: string };
    return {
      error,
      status,
      type,
      code: undefined,
      param: undefined,
      message: apiMessage ?? '',
      requestId: requestID,
      idInBody,
      headers: recorder.last.headers,
      text: seen,
    };
  },
  async 'generate-content'({ model, text = 'Hi', stream = false, access = gateway, headers, wrong }) {
    const recorder = new Recorder();
    const client = genai(access, { recorder, ...(headers === undefined ? {} : { headers }) });
    const request = {
      model,
      contents: text,
      ...(wrong === undefined ? {} : { config: { httpOptions: { extraBody: wrong } } }),
    };
    let seen = '';
    const error = await raised(async () => {
      if (!stream) return client.models.generateContent(request);
      for await (const chunk of await client.models.generateContentStream(request)) seen += chunk.text ?? '';
    });
    expect(error).toBeInstanceOf(ApiError);
    const { status, message } = error as ApiError;
    const envelope = JSON.parse(message.slice(message.indexOf('{'))) as {
      error: { code: number; message: string; status: string };
    };
    expect(envelope.error.code).toBe(status);
    return {
      error,
      status,
      type: envelope.error.status,
      code: undefined,
      param: undefined,
      message: envelope.error.message,
      requestId: undefined,
      idInBody: undefined,
      headers: recorder.last.headers,
      text: seen,
    };
  },
  async responses({ model, text = 'Hi', stream = false, access = gateway, headers, wrong }) {
    const recorder = new Recorder();
    const client = openai(access, { recorder });
    const options = headers === undefined ? {} : { headers };
    const body = { model, input: text, ...wrong };
    let seen = '';
    const error = await raised(async () => {
      if (!stream) return client.responses.create(body, options);
      const running = client.responses.stream({ ...body, stream: true }, options);
      running.on('response.output_text.delta', ({ delta }) => {
        seen += delta;
      });
      return running.finalResponse();
    });
    expect(error).toBeInstanceOf(chatErrors.APIError);
    const { status, type, code, param, message, requestID } = error as InstanceType<
      typeof chatErrors.APIError
    >;
    return {
      error,
      status,
      type,
      code,
      param,
      message,
      requestId: requestID,
      idInBody: undefined,
      headers: recorder.last.headers,
      text: seen,
    };
  },
};

/** A whole answer, or whatever the SDK throws. */
const sendByFormat: Readonly<Record<FormatName, (model: string, text: string) => Promise<unknown>>> = {
  'chat-completions': (model, content) =>
    openai(gateway).chat.completions.create({ model, messages: [{ role: 'user', content }] }),
  messages: (model, content) =>
    anthropic(gateway).messages.create({ model, max_tokens: 100, messages: [{ role: 'user', content }] }),
  'generate-content': (model, contents) => genai(gateway).models.generateContent({ model, contents }),
  responses: (model, input) => openai(gateway).responses.create({ model, input }),
};

async function raised(run: () => Promise<unknown>): Promise<unknown> {
  try {
    await run();
  } catch (error) {
    return error;
  }
  throw new Error('The SDK raised nothing.');
}

/** Returns the error that the SDK of this format must throw for a case. */
function seenBy(format: FormatName, { chat, messages, generateContent }: Case): Seen {
  return {
    'chat-completions': chat,
    messages,
    'generate-content': { class: ApiError, type: generateContent },
    responses: chat,
  }[format];
}

/** The id of a request, where this SDK looks for one. */
const requestIds: Readonly<Record<FormatName, unknown>> = {
  'chat-completions': expect.stringMatching(/^req_/),
  messages: expect.stringMatching(/^req_/),
  'generate-content': undefined,
  responses: expect.stringMatching(/^req_/),
};

describe.each(formats)('before an answer, in %s', (format) => {
  describe.each([
    { how: 'whole', stream: false },
    { how: 'streamed', stream: true },
  ])('asked for $how', ({ stream }) => {
    test.each(cases)('$status: $name', async (one) => {
      const request =
        typeof one.request === 'function' ? one.request({ url: gateway.url, limited }) : one.request;
      const wrong = one.wrong?.[format];
      const got = await fails[format]({ ...request, stream, ...(wrong === undefined ? {} : { wrong }) });
      const { class: kind, ...fields } = seenBy(format, one);
      expect(got.error).toBeInstanceOf(kind);
      expect(got).toMatchObject({
        ...fields,
        status: one.status,
        message: expect.stringMatching(one.message) as string,
        text: '',
      });
      expect(got.requestId).toEqual(requestIds[format]);
      expect(got.headers.get('x-request-id')).toBe(got.idInBody ?? got.headers.get('x-request-id'));
      expect(got.headers.get('content-type')).toMatch(/^application\/json/);
      expect(got.headers.get('retry-after')).toBe(one.retryAfter ?? null);
      expect(got.headers.get('x-should-retry')).toBe(one.shouldRetry ?? null);
    });
  });

  test('404: a path that does not exist', async () => {
    const recorder = new Recorder();
    const error = await raised(async () => {
      if (format === 'chat-completions' || format === 'responses')
        return openai(gateway, { recorder }).get('/nowhere');
      if (format === 'messages') return anthropic(gateway, { recorder }).get('/v1/messages/nowhere/else');
      return genai(gateway, { recorder, apiVersion: 'v1beta' }).authTokens.create({});
    });
    expect(error).toMatchObject({ status: 404 });
    expect(await recorder.last.body.then(String)).toMatch(
      {
        'chat-completions': /"code":"unknown_url"/,
        messages: /"type":"not_found_error"/,
        'generate-content': /"status":"NOT_FOUND"/,
        responses: /"code":"unknown_url"/,
      }[format],
    );
  });

  test('the provider’s own 400 comes back as 400 with its sentence, from a channel of every format', async () => {
    for (const channel of formats) {
      const got = await fails[format]({ model: `via-${channel}`, text: '!status=400' });
      expect(got.status).toBe(400);
      expect(got.message).toMatch(/answers 400, as you asked/);
    }
  });

  test('what the provider says is shown without its keys, addresses and accounts', async () => {
    script = (response) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({
          error: {
            message:
              'Bad tool schema for org-AbC123xyz at https://internal.example.com with sk-abcdefgh12345678',
            type: 'invalid_request_error',
            code: null,
            param: null,
          },
        }),
      );
    };
    const got = await fails[format]({ model: 'scripted-chat-completions' });
    expect(got.status).toBe(400);
    expect(got.message).toContain('Bad tool schema');
    expect(got.message).not.toMatch(/AbC123xyz|internal\.example|abcdefgh/);
  });
});

describe.each(formats)('a provider that says nothing, in %s', (format) => {
  test('504 when it sends no headers in time', async () => {
    script = () => {};
    const got = await fails[format]({ model: `scripted-${format}` });
    expect(got.status).toBe(504);
    expect(got.message).toMatch(/sent no data within/);
  });

  test('an error inside the stream when it falls silent after it began', async () => {
    const first: Readonly<Record<FormatName, string>> = {
      'chat-completions': `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Once"},"finish_reason":null}]}\n\n`,
      messages:
        'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}\n\n' +
        'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n' +
        'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Once"}}\n\n',
      'generate-content':
        'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Once"}]},"index":0}]}\n\n',
      responses:
        'event: response.created\ndata: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"m","output":[],"tools":[]}}\n\n' +
        'event: response.output_item.added\ndata: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}\n\n' +
        'event: response.content_part.added\ndata: {"type":"response.content_part.added","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}\n\n' +
        'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Once","logprobs":[]}\n\n',
    };
    script = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(first[format]);
    };
    const got = await fails[format]({ model: `scripted-${format}`, stream: true });
    expect(got.text).toBe('Once');
    expect(got.message).toMatch(/sent no data within/);
    expect(got.status).toBe(format === 'generate-content' ? 504 : undefined);
    expect(got.type).toBe(
      {
        'chat-completions': 'server_error',
        messages: 'timeout_error',
        'generate-content': 'DEADLINE_EXCEEDED',
        responses: 'error',
      }[format],
    );
  });
});

describe.each(formats.flatMap((format) => formats.map((channel) => ({ format, channel }))))(
  '$format client, $channel channel',
  ({ format, channel }) => {
    const model = `via-${channel}`;
    const overloaded = {
      'chat-completions': 'service_unavailable_error',
      messages: 'overloaded_error',
      'generate-content': 'UNAVAILABLE',
      responses: 'service_unavailable_error',
    }[format];
    const failed = {
      'chat-completions': 'server_error',
      messages: 'api_error',
      'generate-content': 'UNAVAILABLE',
      responses: 'error',
    }[format];

    test('an error that comes with a 200 but before the first word is still a status', async () => {
      for (const stream of [false, true]) {
        const got = await fails[format]({ model, text: '!200-error', stream });
        expect(got.status).toBe(503);
        expect(got.type).toBe(overloaded);
        expect(got.message).toMatch(/overloaded, as you asked/);
        expect(got.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      }
    });

    test('an error in the middle of a stream raises, after the words that came before it', async () => {
      const got = await fails[format]({
        model,
        text: '!error-after=6 one two three four five six',
        stream: true,
      });
      expect(got.text).toMatch(/^You said/);
      // The event of this format is flat: its own type stands where the others have the error's.
      expect(got.type).toBe(format === 'responses' ? 'error' : overloaded);
      expect(got.message).toMatch(/overloaded, as you asked/);
      const coded = format === 'chat-completions' || format === 'responses';
      expect(got.code).toBe(coded ? 'server_is_overloaded' : undefined);
      expect(got.status).toBe(format === 'generate-content' ? 503 : undefined);
      if (format !== 'responses') expect(got.requestId).toEqual(requestIds[format]);
    });

    test.each(['!cut-after=6', '!end-after=6'])(
      'a stream that breaks off is never a clean end: %s',
      async (word) => {
        const got = await fails[format]({ model, text: `${word} one two three four five six`, stream: true });
        expect(got.text).toMatch(/^You said/);
        expect(got.type).toBe(failed);
        expect(got.message).toMatch(/closed the connection before the response was complete/);
      },
    );
  },
);

const broken = ['!garbage', '!end-after=1'];

/** Where its first bytes are with the client when the end turns out to be missing only a broken connection can say so; else it is a 502. */
describe.each(formats)(
  'a whole answer that breaks off, or is no JSON, from a channel of the client’s own format: %s',
  (format) => {
    test.each(broken)('is never taken for an answer: %s', async (word) => {
      await expect(sendByFormat[format](`via-${format}`, word)).rejects.toThrow(
        /connection error|fetch failed|terminated|\b502\b/i,
      );
    });
  },
);

describe.each(
  formats.flatMap((format) =>
    formats.filter((one) => one !== format).map((channel) => ({ format, channel })),
  ),
)('a translated answer, $format client, $channel channel', ({ format, channel }) => {
  const failed = {
    'chat-completions': 'server_error',
    messages: 'api_error',
    'generate-content': 'UNAVAILABLE',
    responses: 'server_error',
  }[format];

  test.each(broken)('that breaks off, or is no JSON, is a 502: %s', async (word) => {
    const got = await fails[format]({ model: `via-${channel}`, text: word });
    expect(got).toMatchObject({ status: 502, type: failed });
  });

  // A frame of the client's own format goes through unread: there its SDK is the judge.
  test('with garbage in the middle of the stream raises', async () => {
    const got = await fails[format]({
      model: `via-${channel}`,
      text: '!garbage one two three',
      stream: true,
    });
    expect(got.type).toBe(format === 'responses' ? 'error' : failed);
  });
});

describe('retries', () => {
  /** Number of requests that an SDK makes with its default retries. */
  const tries: Readonly<Record<FormatName, (model: string, recorder: Recorder) => Promise<unknown>>> = {
    'chat-completions': (model, recorder) =>
      openai(gateway, { recorder, retries: 2 }).chat.completions.create({
        model,
        messages: [{ role: 'user', content: 'Hi' }],
      }),
    messages: (model, recorder) =>
      anthropic(gateway, { recorder, retries: 2 }).messages.create({
        model,
        max_tokens: 9,
        messages: [{ role: 'user', content: 'Hi' }],
      }),
    'generate-content': (model, recorder) =>
      genai(gateway, { recorder }).models.generateContent({ model, contents: 'Hi' }),
    responses: (model, recorder) =>
      openai(gateway, { recorder, retries: 2 }).responses.create({ model, input: 'Hi' }),
  };

  test.each(formats)('%s: a model that is misspelt is asked for once', async (format) => {
    const recorder = new Recorder();
    await expect(tries[format]('nobody-serves-this', recorder)).rejects.toMatchObject({ status: 503 });
    expect(recorder.exchanges).toHaveLength(1);
    expect(recorder.last.headers.get('retry-after')).toBeNull();
  });

  test.each(formats)('%s: so is one that only the provider could have known', async (format) => {
    script = (response) =>
      void response.writeHead(404, { 'content-type': 'application/json' }).end(unknownModel);
    const recorder = new Recorder();
    await expect(tries[format]('scripted-chat-completions', recorder)).rejects.toMatchObject({ status: 503 });
    expect(recorder.exchanges).toHaveLength(1);
    expect(recorder.last.headers.get('retry-after')).toBeNull();
  });

  test.each(['chat-completions', 'messages', 'responses'] as const)(
    '%s: a channel that is down is asked again',
    async (format) => {
      script = (response) => void response.writeHead(503).end();
      const recorder = new Recorder();
      await expect(tries[format]('scripted-chat-completions', recorder)).rejects.toMatchObject({
        status: 503,
      });
      expect(recorder.exchanges).toHaveLength(3);
      for (const { headers } of recorder.exchanges) {
        expect(headers.get('retry-after')).toMatch(/^[1-9]/);
        expect(headers.get('x-should-retry')).toBeNull();
      }
    },
  );

  test.each(['chat-completions', 'messages'] as const)(
    '%s: what no retry mends is asked once',
    async (format) => {
      for (const model of ['refused-by-insufficient_quota', 'refused-by-endpoint_not_supported']) {
        const recorder = new Recorder();
        await expect(tries[format](model, recorder)).rejects.toThrow(/Refused with/);
        expect(recorder.exchanges).toHaveLength(1);
      }
    },
  );

  test.each(['chat-completions', 'messages'] as const)(
    '%s: a passing limit is waited for, as long as the provider says, and then answered',
    async (format) => {
      let count = 0;
      script = (response) => {
        count += 1;
        if (count === 1) {
          response.writeHead(429, { 'content-type': 'application/json', 'retry-after-ms': '1400' });
          response.end(
            '{"error":{"message":"Slow down","type":"requests","code":"rate_limit_exceeded","param":null}}',
          );
          return;
        }
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(
          format === 'messages'
            ? '{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}'
            : '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}',
        );
      };
      const recorder = new Recorder();
      const started = performance.now();
      await tries[format](`scripted-${format}`, recorder);
      expect(recorder.exchanges.map(({ status }) => status)).toEqual([429, 200]);
      expect(recorder.exchanges[0]?.headers.get('retry-after')).toBe('2');
      expect(performance.now() - started).toBeGreaterThan(1300);
    },
  );
});

describe('request ids', () => {
  test('every answer and every error has one of its own, where the SDK looks for it', async () => {
    const ids = new Set<string>();
    const chat = await openai(gateway)
      .chat.completions.create({ model: 'via-messages', messages: [{ role: 'user', content: 'Hi' }] })
      .withResponse();
    const message = await anthropic(gateway)
      .messages.create({ model: 'via-messages', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] })
      .withResponse();
    for (const id of [chat.request_id, message.request_id]) {
      expect(id).toMatch(/^req_\w{16,}$/);
      ids.add(id ?? '');
    }
    for (const format of formats) {
      const got = await fails[format]({ model: 'nobody-serves-this' });
      const id = got.headers.get('x-request-id');
      expect(id).toMatch(/^req_\w{16,}$/);
      ids.add(id ?? '');
    }
    expect(ids.size).toBe(formats.length + 2);
  });

  test('the id of an answer stands in the log line of its call', async () => {
    const recorder = new Recorder();
    await genai(gateway, { recorder }).models.generateContent({ model: 'via-messages', contents: 'Hi' });
    const id = recorder.last.headers.get('x-request-id');
    await expect
      .poll(() => gateway.lines.some((line) => JSON.stringify(line).includes(String(id))))
      .toBe(true);
  });
});

describe('a version header that is missing or no date', () => {
  test.each([null, 'tomorrow', '2023-05-31'])('messages: %s is a 400 that names it', async (version) => {
    const client = new Anthropic({
      baseURL: gateway.url,
      apiKey: gateway.key,
      maxRetries: 0,
      defaultHeaders: { 'anthropic-version': version },
    });
    const error = await raised(() =>
      client.messages.create({
        model: 'via-messages',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'Hi' }],
      }),
    );
    expect(error).toBeInstanceOf(messagesErrors.BadRequestError);
    expect(error).toMatchObject({
      type: 'invalid_request_error',
      apiMessage: expect.stringContaining('anthropic-version') as string,
    });
  });
});

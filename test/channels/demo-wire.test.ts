import { describe, expect, it } from 'vitest';
import chatCompletions from '../../core/formats/chat-completions/index.ts';
import generateContent from '../../core/formats/generate-content/index.ts';
import messages from '../../core/formats/messages/index.ts';
import type { ChannelTools } from '../../core/sdk/define.ts';
import type { Format, Frame } from '../../core/sdk/format.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import { parseObject } from '../../core/json/parse.ts';
import { isObject, type JsonObject } from '../../core/model/json.ts';
import demo from '../../channels/demo/index.ts';
import { outcome } from '../support/answer.ts';
import { testCall } from '../support/call.ts';

const formats: readonly Format[] = [chatCompletions, messages, generateContent];

interface Answered {
  readonly status: number;
  readonly type: unknown;
  readonly text: string;
  readonly json: JsonObject;
  readonly frames: readonly Frame[];
  readonly error?: unknown;
}

interface Ways {
  readonly stream?: boolean;
  readonly model?: string;
  readonly operation?: 'chat' | 'count-tokens';
}

async function sendRequest(format: string, body: JsonObject, ways: Ways = {}): Promise<Answered> {
  const { stream = false, model = 'demo', operation = 'chat' } = ways;
  const parts = demo.spec.setup(
    demo.spec.options?.parse({}) as never,
    {
      log: undefined as never,
      http: undefined as never,
      sockets: undefined as never,
      download: undefined as never,
      keys: [],
      format: (name: string) => formats.find((one) => one.name === name),
      onClose: () => {},
    } as ChannelTools,
  );
  const named = format === 'generate-content' ? body : { model, ...(stream ? { stream } : {}), ...body };
  const bytes = Buffer.from(JSON.stringify(named));
  const upstream = await parts.open(testCall().call, {
    operation,
    format,
    model,
    stream,
    path: '/x',
    query: {},
    headers: {},
    body: bytes,
  });
  const answer = await outcome(upstream);
  const type = upstream.headers['content-type'];
  return {
    status: upstream.status,
    type,
    text: answer.bytes.toString(),
    json: parseObject(answer.bytes.toString()) ?? {},
    frames: type === 'text/event-stream' ? parseSse(answer.bytes) : [],
    ...(answer.error === undefined ? {} : { error: answer.error }),
  };
}

/** The value at a dotted path; undefined when a step is missing. */
function at(document: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((found, step) => {
    if (Array.isArray(found)) return found.at(Number(step));
    return isObject(found) ? found[step] : undefined;
  }, document);
}

/** Requests and paths of a format. */
interface Dialect {
  readonly format: string;
  /** A request with one user turn and one tool. */
  request(text: string): JsonObject;
  readonly thinking: JsonObject;
  /** The request after the assistant's turn came back with a result for its first call. */
  next(request: JsonObject, answer: JsonObject, change: (turn: JsonObject) => JsonObject): JsonObject;
  readonly textPath: string;
  readonly finishPath: string;
  readonly errorPath: string;
  readonly stopped: string;
  readonly output: { readonly path: string; readonly value: number };
}

const schema = {
  type: 'object',
  properties: { zone: { type: 'string', enum: ['UTC'] } },
  required: ['zone'],
};

const dialects: readonly Dialect[] = [
  {
    format: 'chat-completions',
    request: (text) => ({
      messages: [{ role: 'user', content: text }],
      tools: [{ type: 'function', function: { name: 'get_time', parameters: schema } }],
    }),
    thinking: { reasoning_effort: 'high' },
    next: (request, answer, change) => {
      const turn = change(at(answer, 'choices.0.message') as JsonObject);
      const result = {
        role: 'tool',
        tool_call_id: String(at(answer, 'choices.0.message.tool_calls.0.id')),
        content: '12:00',
      };
      return { ...request, messages: [...(request.messages as JsonObject[]), turn, result] };
    },
    textPath: 'choices.0.message.content',
    finishPath: 'choices.0.finish_reason',
    errorPath: 'error.type',
    stopped: 'stop',
    output: { path: 'usage.completion_tokens', value: 4 },
  },
  {
    format: 'messages',
    request: (text) => ({
      max_tokens: 4096,
      messages: [{ role: 'user', content: text }],
      tools: [{ name: 'get_time', input_schema: schema }],
    }),
    thinking: { thinking: { type: 'enabled', budget_tokens: 2048 } },
    next: (request, answer, change) => {
      const { content } = change({ content: at(answer, 'content') as JsonObject[] });
      const result = {
        type: 'tool_result',
        tool_use_id: String(at(answer, 'content.-1.id')),
        content: '12:00',
      };
      return {
        ...request,
        messages: [
          ...(request.messages as JsonObject[]),
          { role: 'assistant', ...(content === undefined ? {} : { content }) },
          { role: 'user', content: [result] },
        ],
      };
    },
    textPath: 'content.0.text',
    finishPath: 'stop_reason',
    errorPath: 'error.type',
    stopped: 'end_turn',
    output: { path: 'usage.output_tokens', value: 4 },
  },
  {
    format: 'generate-content',
    request: (text) => ({
      contents: [{ role: 'user', parts: [{ text }] }],
      tools: [{ functionDeclarations: [{ name: 'get_time', parametersJsonSchema: schema }] }],
    }),
    thinking: { generationConfig: { thinkingConfig: { thinkingLevel: 'HIGH', includeThoughts: true } } },
    next: (request, answer, change) => {
      const turn = change(at(answer, 'candidates.0.content') as JsonObject);
      const id = at(answer, 'candidates.0.content.parts.-1.functionCall.id');
      const response = {
        name: 'get_time',
        ...(typeof id === 'string' ? { id } : {}),
        response: { output: '12:00' },
      };
      return {
        ...request,
        contents: [
          ...(request.contents as JsonObject[]),
          turn,
          { role: 'user', parts: [{ functionResponse: response }] },
        ],
      };
    },
    textPath: 'candidates.0.content.parts.0.text',
    finishPath: 'candidates.0.finishReason',
    errorPath: 'error.status',
    stopped: 'STOP',
    output: { path: 'usageMetadata.candidatesTokenCount', value: 4 },
  },
];

/** The texts of all parts of a stream, in the words of its decoder. */
function decodeFrames(
  format: string,
  frames: readonly Frame[],
): { text: string; reasoning: string; finish: unknown; output: unknown } {
  const decoder = formats.find(({ name }) => name === format)?.codecs.chat?.decodeStream?.({});
  if (decoder === undefined) throw new Error(`no stream in ${format}`);
  const events = [...frames.flatMap((frame) => decoder.frame(frame)), ...decoder.end()];
  return {
    text: events.map((event) => (event.type === 'text-delta' ? event.text : '')).join(''),
    reasoning: events.map((event) => (event.type === 'reasoning-delta' ? event.text : '')).join(''),
    finish: events.find((event) => event.type === 'finish')?.reason,
    output: events.findLast((event) => event.type === 'usage')?.usage.output,
  };
}

async function broken({ format, request }: Dialect, word: string): Promise<unknown> {
  const { frames } = await sendRequest(format, request(word), { stream: true });
  return decodeFrames(format, frames);
}

describe.each(dialects)('the demo in $format', (dialect) => {
  const { format } = dialect;

  it('answers whole', async () => {
    const { status, type, json } = await sendRequest(format, dialect.request('hello'));
    expect([status, type]).toEqual([200, 'application/json']);
    expect(at(json, dialect.textPath)).toBe('You said: hello');
    expect(at(json, dialect.finishPath)).toBe(dialect.stopped);
    expect(at(json, dialect.output.path)).toBe(dialect.output.value);
  });

  it('answers as a stream that its own decoder finds complete', async () => {
    const body = format === 'chat-completions' ? { stream_options: { include_usage: true } } : {};
    const { frames } = await sendRequest(format, { ...dialect.request('hello'), ...body }, { stream: true });
    expect(decodeFrames(format, frames)).toEqual({
      text: 'You said: hello',
      reasoning: '',
      finish: 'stop',
      output: 4,
    });
  });

  it('thinks aloud', async () => {
    const { frames } = await sendRequest(
      format,
      { ...dialect.request('hello'), ...dialect.thinking },
      { stream: true },
    );
    expect(decodeFrames(format, frames).reasoning).toMatch(/^The user wrote: hello\nI think with /);
  });

  it('goes through a tool loop, thinking, when everything comes back', async () => {
    const request = { ...dialect.request('call get_time'), ...dialect.thinking };
    const { json, status } = await sendRequest(format, request);
    expect(status).toBe(200);
    const next = await sendRequest(
      format,
      dialect.next(request, json, (turn) => turn),
    );
    expect(next.text).toContain('get_time returned: 12:00');
    expect(next.status).toBe(200);
  });

  it('notices one altered character of its reasoning or signature', async () => {
    const request = { ...dialect.request('call get_time'), ...dialect.thinking };
    const { json } = await sendRequest(format, request);
    const field = {
      'chat-completions': 'reasoning_content',
      messages: 'signature',
      'generate-content': 'thoughtSignature',
    }[format];
    const alter = (turn: JsonObject): JsonObject =>
      JSON.parse(
        JSON.stringify(turn).replace(
          new RegExp(`("${field}":")(.)`),
          (_, name, first) => name + (first === 'A' ? 'B' : 'A'),
        ),
      ) as JsonObject;
    expect(alter({ [String(field)]: 'A' })).toEqual({ [String(field)]: 'B' });
    const next = await sendRequest(format, dialect.next(request, json, alter));
    expect(next.status).toBe(400);
    expect(at(next.json, dialect.errorPath)).toMatch(/invalid/i);
  });

  it('refuses in the words of the format', async () => {
    const { status, json } = await sendRequest(format, dialect.request('!status=429 retry-after=2'));
    expect(status).toBe(429);
    expect(at(json, dialect.errorPath)).toMatch(/rate_limit|RESOURCE_EXHAUSTED/);
  });

  it('breaks its stream so that the decoder notices', async () => {
    await expect(broken(dialect, 'a b c !error-after=3')).rejects.toMatchObject({ origin: 'upstream' });
    await expect(broken(dialect, '!200-error')).rejects.toMatchObject({ origin: 'upstream' });
    await expect(broken(dialect, 'a b c !end-after=3')).rejects.toMatchObject({ code: 'upstream_cut' });
    await expect(broken(dialect, '!garbage')).rejects.toMatchObject({ origin: 'upstream' });
  });

  it('sends an event of the future that a decoder passes over', async () => {
    const { frames, text } = await sendRequest(format, dialect.request('hi !unknown-event'), {
      stream: true,
    });
    expect(text).toMatch(/demo_?unknown/i);
    expect(decodeFrames(format, frames)).toMatchObject({
      text: 'You said: hi !unknown-event',
      finish: 'stop',
    });
  });

  it('declines', async () => {
    const { frames } = await sendRequest(format, dialect.request('!content-filter'), { stream: true });
    expect(decodeFrames(format, frames).finish).toMatch(/content-filter|refusal/);
  });
});

it.each([
  ['messages', 'input_tokens'],
  ['generate-content', 'totalTokens'],
])('the demo counts tokens in %s', async (format, path) => {
  const dialect = dialects.find((one) => one.format === format);
  const { max_tokens: _, ...body } = dialect?.request('one two three') ?? {};
  const { json } = await sendRequest(format, body, { operation: 'count-tokens' });
  expect(at(json, path)).toBeGreaterThan(3);
});

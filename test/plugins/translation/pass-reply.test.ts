/* oxlint-disable vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import { from, type Observable } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { GatewayError, parseObject, type GatewayEvent, type JsonObject, type Usage } from 'sluice';
import type { Codec, Frame } from 'sluice/channel-kit';
import type { Call, Target } from 'sluice/internal';
import { chatCodec } from '../../../core/formats/chat-completions/codec.ts';
import { chatCodec as messagesCodec } from '../../../core/formats/messages/codec.ts';
import { passReply } from '../../../plugins/translation/pass-reply.ts';

const chat = {
  format: 'chat-completions',
  marks: { usage: ['"usage":{'], terminal: ['[DONE]', '"finish_reason":"'] },
  endsStream: (frame: Frame) => chatCodec.endsStream?.(frame),
  usageTap: () => ({ read: (data: string) => parseObject(data)?.usage as unknown as Usage | undefined }),
  isUsageOnly: (data: string) => data.includes('"choices":[]'),
} as unknown as Codec;

const messages = {
  ...chat,
  format: 'messages',
  marks: messagesCodec.marks,
  endsStream: (frame: Frame) => messagesCodec.endsStream?.(frame),
} as unknown as Codec;

interface Passed {
  readonly events: GatewayEvent[];
  readonly text: string;
  readonly usage: Usage[];
  readonly error: GatewayError | undefined;
}

interface Options {
  readonly codec?: Codec;
  readonly stream?: boolean;
  readonly requestedModel?: string;
  readonly swallow?: boolean;
  readonly headers?: Record<string, string>;
}

/** Returns the response that the client receives for these pieces. */
async function passed(
  pieces: readonly string[],
  { codec = chat, stream = true, requestedModel = 'm', swallow = false, headers = {} }: Options = {},
): Promise<Passed> {
  const source: Observable<GatewayEvent> = from([
    { type: 'answer', status: 200, headers },
    ...pieces.map((piece): GatewayEvent => ({ type: 'bytes', bytes: Buffer.from(piece) })),
  ] satisfies GatewayEvent[]);
  const call = { codec, stream, askedModel: requestedModel } as Call;
  const target = { model: 'm', traits: {} } as Target;
  const events: GatewayEvent[] = [];
  let error: unknown;
  const reply = passReply(source, { call, target, swallowUsage: swallow });
  await new Promise<void>((done) => {
    reply.subscribe({
      next: (event) => events.push(event),
      error: (thrown: unknown) => {
        error = thrown;
        done();
      },
      complete: done,
    });
  });
  const bytes = events.flatMap((event) =>
    event.type === 'frames' || event.type === 'bytes' ? [event.bytes] : [],
  );
  return {
    events,
    text: Buffer.concat(bytes).toString(),
    usage: events.flatMap((event) => (event.type === 'usage' ? [event.usage] : [])),
    error: error instanceof GatewayError ? error : undefined,
  };
}

const chunk = (content: string, rest: JsonObject = {}) =>
  `data: ${JSON.stringify({ model: 'm', choices: [{ delta: { content } }], ...rest })}\n\n`;
const done = 'data: [DONE]\n\n';

describe('a stream that passes through', () => {
  test('is the same bytes, comments and odd fields and line ends included', async () => {
    const stream = `: hello\n\nid: 1\nretry: 5\ndata: {"x":1.0,  "big":12345678901234567890}\r\n\r\nevent: e\ndata:y\r\r${done}`;
    for (let at = 1; at < stream.length; at += 1) {
      const { text, error } = await passed([stream.slice(0, at), stream.slice(at)]);
      expect(text, `cut at ${at}`).toBe(stream);
      expect(error).toBeUndefined();
    }
  });

  test('keeps what came before an error event, and tells the provider’s own words', async () => {
    const failed = 'data: {"error":{"message":"the model fell over","type":"server_error"}}\n\n';
    const { text, error } = await passed([chunk('a') + chunk('b') + failed]);
    expect(text).toBe(chunk('a') + chunk('b'));
    expect(error?.message).toBe('the model fell over');
    const messagesFailed =
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"too busy"}}\n\n';
    const other = await passed([`event: ping\ndata: {}\n\n${messagesFailed}`], { codec: messages });
    expect(other.text).toBe('event: ping\ndata: {}\n\n');
    expect(other.error?.message).toBe('too busy');
    const unnamed = await passed(
      ['event: ping\ndata: {}\n\ndata: {"type":"error","error":{"message":"no name"}}\n\n'],
      { codec: messages },
    );
    expect(unnamed.text).toBe('event: ping\ndata: {}\n\n');
    expect(unnamed.error?.message).toBe('no name');
  });

  test('may speak of errors, ends and usage without being taken at its word', async () => {
    const words = ['event: error', '{"error":{"message":"x"}}', '\ndata: {"error":1}\n\n', '"usage":{"a":1}'];
    for (const word of words) {
      const stream = chunk(word) + chunk('rest', { nested: { error: { code: 1 } } }) + done;
      const { text, error, usage } = await passed([stream]);
      expect(error, word).toBeUndefined();
      expect(text).toBe(stream);
      expect(usage).toEqual([]);
    }
    const body = `event: content_block_delta\ndata: {"text":"event: error"}\n\nevent: message_stop\ndata: {}\n\n`;
    expect((await passed([body], { codec: messages })).error).toBeUndefined();
  });

  test('that only speaks of its end and is then cut is an error, not an end', async () => {
    for (const word of ['[DONE]', 'data: [DONE]', '"finish_reason":"stop"']) {
      const { error } = await passed([chunk(`it ends with ${word}`)]);
      expect(error?.code, word).toBe('upstream_cut');
    }
    const { error } = await passed(['event: x\ndata: {"text":"event: message_stop"}\n\n'], {
      codec: messages,
    });
    expect(error?.code).toBe('upstream_cut');
  });

  test('notices an error event that stands behind an innocent mention of one', async () => {
    const { text, error } = await passed([
      `${chunk('a', { nested: { error: null } })}data: {"error":{"message":"really"}}\n\n`,
    ]);
    expect(error?.message).toBe('really');
    expect(text).toBe(chunk('a', { nested: { error: null } }));
  });

  test('carries the client’s model name in every frame', async () => {
    const stream = chunk('a') + chunk('"model":"m"') + chunk('c') + done;
    const { text } = await passed([stream], { requestedModel: 'mine' });
    expect(text).toBe(stream.replaceAll('{"model":"m"', '{"model":"mine"'));
  });

  test('tells its usage, and loses the frame that only the gateway asked for', async () => {
    const last = 'data: {"choices":[],"usage":{"prompt_tokens":3}}\n\n';
    const kept = await passed([chunk('a') + last + done]);
    expect(kept.usage).toEqual([{ prompt_tokens: 3 }]);
    expect(kept.text).toBe(chunk('a') + last + done);
    const swallowed = await passed([`: note\n\n${chunk('a')}${last}${done}`], { swallow: true });
    expect(swallowed.usage).toEqual([{ prompt_tokens: 3 }]);
    expect(swallowed.text).toBe(`: note\n\n${chunk('a')}${done}`);
  });

  test('that ends without its last blank line is complete when its last frame is', async () => {
    expect(await passed([chunk('a'), 'data: [DONE]'])).toMatchObject({
      text: chunk('a') + done,
      error: undefined,
    });
    expect(await passed([chunk('a'), 'data: [DO'])).toMatchObject({
      text: chunk('a'),
      error: { code: 'upstream_cut' },
    });
    expect(await passed([chunk('a'), 'data: {"finish_reason":"stop"'])).toMatchObject({
      text: chunk('a'),
      error: { code: 'upstream_cut' },
    });
  });

  test('is complete when only something harmless is cut behind its end', async () => {
    expect(await passed([chunk('a') + done, ': bye'])).toMatchObject({ error: undefined });
  });
});

describe('a whole reply that passes through', () => {
  const whole = { stream: false } as const;

  test('is the same bytes, white space before it included', async () => {
    const { text, error } = await passed(['\n', ' \r\n', '{"model":"m",', '"choices":[]}\n'], whole);
    expect(error).toBeUndefined();
    expect(text).toBe('\n \r\n{"model":"m","choices":[]}\n');
  });

  test('does not announce the provider’s length when its model is renamed', async () => {
    const body = '{"model":"m","choices":[]}';
    const headers = { 'content-length': String(body.length) };
    const lengths = ({ events }: Passed) =>
      events.flatMap((event) => (event.type === 'answer' ? [event.headers['content-length']] : []));
    expect(lengths(await passed([body], { ...whole, headers }))).toEqual([String(body.length)]);
    const renamed = await passed([body], { ...whole, headers, requestedModel: 'a longer name' });
    expect(renamed.text).toBe('{"model":"a longer name","choices":[]}');
    expect(lengths(renamed).filter((length) => length !== undefined)).toEqual([]);
  });

  test('gets the client’s model name wherever it is cut, also far behind the content', async () => {
    const body = JSON.stringify({
      choices: [{ message: { content: '"model":"m"'.repeat(20_000) } }],
      model: 'm',
    });
    const renamed = body.replace('"model":"m"}', '"model":"mine"}');
    for (const at of [1, 12, 1000, body.length - 14, body.length - 10, body.length - 5, body.length - 2]) {
      const { text } = await passed([body.slice(0, at), body.slice(at)], {
        ...whole,
        requestedModel: 'mine',
      });
      expect(text === renamed, `cut at ${at}`).toBe(true);
    }
  });

  test('tells its usage, whether it stands before or behind a long answer', async () => {
    const choices = [{ message: { content: 'x'.repeat(100_000) } }];
    const usage = { prompt_tokens: 3 };
    for (const body of [
      { usage, choices },
      { choices, usage },
    ]) {
      const json = JSON.stringify(body);
      const pieces = [json.slice(0, 10), json.slice(10, 60_000), json.slice(60_000)];
      expect((await passed(pieces, whole)).usage).toEqual([usage]);
    }
  });

  test('that stops in the middle is cut, even where the connection does not tell', async () => {
    for (const body of [
      '{"model":"m","choices":[{"message":{"content":"it was',
      '{"model":"m","choices":[{}]',
      '{',
    ]) {
      expect((await passed([body], whole)).error?.code, body).toBe('upstream_cut');
      expect((await passed([...body], { ...whole, requestedModel: 'mine' })).error?.code, body).toBe(
        'upstream_cut',
      );
    }
  });

  test('that is an error under status 200 is one', async () => {
    for (const body of [
      '{"error":{"message":"no such luck"}}',
      ' {\n  "error": {"message":"no such luck"}}',
    ]) {
      expect((await passed([body], whole)).error?.message).toBe('no such luck');
    }
  });
});

describe('what is no answer at all', () => {
  test.each([
    ['a web page', '<!doctype html><p>Bad gateway'],
    ['words', 'upstream connect error'],
    ['nothing', ''],
    ['white space', ' \n '],
  ])('%s is told as the provider’s failure', async (_name, body) => {
    for (const stream of [true, false]) {
      const { error, events } = await passed(body === '' ? [] : [body], { stream });
      expect(error).toMatchObject({ code: 'upstream_error', origin: 'upstream', retryable: true });
      expect(events).toEqual([]);
    }
  });
});

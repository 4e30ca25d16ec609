import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { eventProblems, responseProblems } from '../support/open-responses.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { SocketClient } from '../support/websocket.ts';

/** Runs the acceptance tests of https://www.openresponses.org over a channel of each chat format. */
const formats = ['responses', 'chat-completions', 'messages', 'generate-content', 'converse'] as const;

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    channels: formats.map((format) =>
      demo({ id: format, speaks: [format], models: [format, `${format}!*`] }),
    ),
  });
});
afterAll(() => gateway.close());

const headers = (): Record<string, string> => ({ authorization: `Bearer ${gateway.key}` });
const post = (path: string, body: object): Promise<Response> =>
  fetch(`${gateway.url}/v1${path}`, {
    method: 'POST',
    headers: { ...headers(), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const messageItem = (role: string, content: unknown): object => ({ type: 'message', role, content });
const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'Get the current weather for a location',
  parameters: {
    type: 'object',
    properties: { location: { type: 'string', description: 'The city and state, e.g. San Francisco, CA' } },
    required: ['location'],
  },
};
const image =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

interface Answer extends JsonObject {
  readonly id: string;
  readonly status: string;
  readonly output: readonly JsonObject[];
}

/** A whole answer that obeys the schema. */
async function answer(body: object): Promise<Answer> {
  const response = await post('/responses', body);
  const json = (await response.json()) as Answer;
  expect({ status: response.status, json }).toMatchObject({ status: 200 });
  expect(responseProblems(json)).toEqual([]);
  return json;
}

/** The events of a stream, each obeying the schema, ended by `[DONE]`. */
async function events(body: object): Promise<JsonObject[]> {
  const response = await post('/responses', { ...body, stream: true });
  const frames = parseSse(await response.text());
  expect(frames.pop()?.data).toBe('[DONE]');
  const parsed = frames.map(({ data }) => JSON.parse(data) as JsonObject);
  expect(parsed.flatMap(eventProblems)).toEqual([]);
  return parsed;
}

const open = (): Promise<SocketClient> =>
  SocketClient.open(`${gateway.url}/v1/responses`, { headers: headers() });
const last = /^(response\.(completed|incomplete|failed)|error)$/;

/** The last event of a turn over a socket; all of its events obey the schema of the stream. */
async function runTurn(client: SocketClient, body: object): Promise<JsonObject & { response: Answer }> {
  const from = client.messages.length;
  const before = client.messages.filter(({ type }) => last.test(String(type))).length;
  client.send({ type: 'response.create', store: false, ...body });
  const ends = await client.until(({ type }) => last.test(String(type)), before + 1);
  const end = ends.at(-1) as JsonObject & { response: Answer };
  if (end.type !== 'error')
    expect((client.messages.slice(from) as JsonObject[]).flatMap(eventProblems)).toEqual([]);
  return end;
}

const completed = { type: 'response.completed', response: { status: 'completed' } };
const unknown = { type: 'error', error: { code: 'previous_response_not_found' } };

describe.each(formats)('Open Responses over a channel of the format %s', (model) => {
  test('a message is answered, whole and as a stream', async () => {
    const whole = await answer({ model, input: [messageItem('user', 'Say hello in exactly 3 words.')] });
    expect(whole).toMatchObject({ status: 'completed', output: [{ type: 'message' }] });
    const stream = await events({ model, input: [messageItem('user', 'Count from 1 to 5.')] });
    expect(stream.at(-1)).toMatchObject(completed);
  });

  test('a system message, earlier turns with a phase, and an image are taken', async () => {
    const inputs = [
      [
        messageItem('system', 'You are a pirate. Always respond in pirate speak.'),
        messageItem('user', 'Say hello.'),
      ],
      [
        messageItem('user', 'My name is Alice.'),
        { ...messageItem('assistant', 'Hello Alice! Nice to meet you.'), phase: 'commentary' },
        messageItem('user', 'What is my name?'),
      ],
      [
        messageItem('user', [
          { type: 'input_text', text: 'What do you see in this image?' },
          { type: 'input_image', image_url: image },
        ]),
      ],
    ];
    for (const input of inputs) expect((await answer({ model, input })).status).toBe('completed');
  });

  test('a tool that fits is called, whole and as a stream', async () => {
    const body = {
      model,
      input: [messageItem('user', "What's the weather like in San Francisco?")],
      tools: [weather],
    };
    const { output } = await answer(body);
    expect(output.some(({ type }) => type === 'function_call')).toBe(true);
    const types = (await events(body)).map(({ type }) => type);
    expect(types).toContain('response.function_call_arguments.delta');
    expect(types).toContain('response.function_call_arguments.done');
  });

  test('thinking and settings are told as the schema has them', async () => {
    const body = {
      model,
      input: 'Think about it.',
      reasoning: { effort: 'high', summary: 'auto' },
      presence_penalty: 0.5,
      max_output_tokens: 2000,
      metadata: { a: 'b' },
    };
    expect(await answer(body)).toMatchObject({ presence_penalty: 0.5, frequency_penalty: 0 });
    expect((await events(body)).at(-1)).toMatchObject(completed);
  });

  test('thinking comes in events that the schema knows, also where no summary was asked for', async () => {
    const body = { model, input: 'Think about it.', reasoning: { effort: 'high' } };
    const types = (await events(body)).map(({ type }) => String(type));
    expect(types).toContain('response.reasoning_summary_text.delta');
    expect((await answer(body)).output[0]).toMatchObject({ type: 'reasoning' });
  });

  test('a conversation is compacted, and goes on over a socket', async () => {
    const response = await post('/responses/compact', {
      model,
      input: [messageItem('user', 'Remember the code word: ember.'), messageItem('assistant', 'OK.')],
    });
    const compacted = (await response.json()) as Answer;
    expect(compacted).toMatchObject({ object: 'response.compaction', output: expect.any(Array) });
    const client = await open();
    const input = [...compacted.output, messageItem('user', 'What is the code word?')];
    expect(await runTurn(client, { model, input })).toMatchObject(completed);
    client.vanish();
  });

  test('turns follow each other over one socket', async () => {
    const client = await open();
    const first = await runTurn(client, { model, input: [messageItem('user', 'The code word is ember.')] });
    expect(first).toMatchObject(completed);
    const second = await runTurn(client, { model, input: [messageItem('user', 'Say OK.')] });
    expect(second).toMatchObject(completed);
    const follows = { model, previous_response_id: first.response.id };
    const third = await runTurn(client, { ...follows, input: [messageItem('user', 'And now?')] });
    expect(third).toMatchObject({ ...completed, response: { previous_response_id: first.response.id } });
    client.vanish();
    // What was not stored is known to its own connection alone.
    const other = await open();
    const again = { ...follows, input: [messageItem('user', 'Go on.')] };
    expect(await runTurn(other, again)).toMatchObject(unknown);
    expect(await runTurn(other, { model, input: [messageItem('user', 'From the start.')] })).toMatchObject(
      completed,
    );
    other.vanish();
  });

  test('a turn that fails makes the connection forget what it followed', async () => {
    const client = await open();
    const first = await runTurn(client, { model, input: [messageItem('user', 'The code word is ember.')] });
    const follows = { model, previous_response_id: first.response.id };
    const orphan = { type: 'function_call_output', call_id: 'call_that_was_never_made', output: 'x' };
    expect(await runTurn(client, { ...follows, input: [orphan] })).toMatchObject({ type: 'error' });
    expect(await runTurn(client, { ...follows, input: [messageItem('user', 'Go on.')] })).toMatchObject(
      unknown,
    );
    client.vanish();
  });

  test('a turn that a provider breaks makes the connection forget what it followed', async () => {
    const client = await open();
    const first = await runTurn(client, { model, input: [messageItem('user', 'The code word is ember.')] });
    const follows = { previous_response_id: first.response.id };
    const broken = await runTurn(client, {
      ...follows,
      model: `${model}!status=400`,
      input: [messageItem('user', 'Go on.')],
    });
    expect(broken.type).not.toBe('response.completed');
    const next = { ...follows, model, input: [messageItem('user', 'Go on.')] };
    expect(await runTurn(client, next)).toMatchObject(unknown);
    client.vanish();
  });
});

test('a compaction without a model is refused', async () => {
  const response = await post('/responses/compact', { input: [messageItem('user', 'hi')] });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { param: 'model' } });
});

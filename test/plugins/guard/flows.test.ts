import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import anthropicChannel from '../../../channels/anthropic.ts';
import geminiChannel from '../../../channels/gemini.ts';
import openaiChannel from '../../../channels/openai.ts';
import guard from '../../../plugins/guard/index.ts';
import { anthropic, formats, genai, openai, type Access, type FormatName } from '../../clients/sdks.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { streamOf, wholeOf, type Answer } from '../../support/provider-replies.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../../support/upstream.ts';

const address = 'ada@example.org';
const question = `Write to ${address}, "${address}".`;

/** In which format a request came. */
function formatOf({ url }: SeenRequest): FormatName {
  if (url.includes('/messages')) return 'messages';
  if (url.includes('/responses')) return 'responses';
  return url.includes('enerateContent') ? 'generate-content' : 'chat-completions';
}

/** Says back the placeholder that it was sent, in text, reasoning and the arguments of a tool. */
function answerTo(body: string): Answer {
  const [placeholder = 'none'] = /\[EMAIL_\w+\]/.exec(body) ?? [];
  return {
    parts: [
      { kind: 'reasoning', text: `They want ${placeholder}.` },
      { kind: 'text', text: `Done: ${placeholder}, own@model.example.` },
      { kind: 'call', name: 'mail', input: JSON.stringify({ to: [placeholder], note: 'a "quote"' }) },
    ],
    end: 'stop',
    usageReport: 'all',
    pieces: 60,
    streamsArguments: false,
  };
}

function provide(request: SeenRequest, response: ServerResponse): void {
  const raw = request.body.toString();
  if (request.url.includes('/moderations')) {
    const { input } = JSON.parse(raw) as { input: readonly string[] };
    if (input.includes('silence')) return;
    const results = input.map((text) => ({
      flagged: text.includes('bomb'),
      categories: { violence: text.includes('bomb') },
      category_scores: { violence: text.includes('bomb') ? 0.9 : 0.3 },
    }));
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ id: 'modr-1', model: 'm', results }));
    return;
  }
  const format = formatOf(request);
  if (raw.includes('silence')) return;
  const isJudge = raw.includes('You judge a');
  const reply = isJudge
    ? `{"verdict":"${raw.includes('lawsuit') ? 'refuse' : 'pass'}","category":"legal"}`
    : undefined;
  const answer: Answer =
    reply === undefined
      ? answerTo(raw)
      : { parts: [{ kind: 'text', text: reply }], end: 'stop', usageReport: 'all' };
  const streams =
    format === 'generate-content' ? request.url.includes('stream') : /"stream":\s*true/.test(raw);
  response.setHeader('content-type', streams ? 'text/event-stream' : 'application/json');
  response.end(
    streams
      ? streamOf(format, answer)
          .map((event) => `${event}\n\n`)
          .join('')
      : JSON.stringify(wholeOf(format, answer)),
  );
}

interface Got {
  readonly text: string;
  readonly args: unknown;
  readonly all: string;
}

const tool = {
  name: 'mail',
  description: 'Sends mail.',
  schema: { type: 'object', properties: {} },
} as const;

/** Asks with the official SDK of a format. */
const clients: Readonly<
  Record<FormatName, (access: Access, model: string, stream: boolean) => Promise<Got>>
> = {
  async 'chat-completions'(access, model, stream) {
    const request = {
      model,
      messages: [{ role: 'user' as const, content: question }],
      tools: [{ type: 'function' as const, function: { name: tool.name, parameters: tool.schema } }],
    };
    if (!stream) {
      const whole = await openai(access).chat.completions.create(request);
      const [choice] = whole.choices;
      const call = choice?.message.tool_calls?.[0];
      return {
        text: choice?.message.content ?? '',
        args: JSON.parse(call?.type === 'function' ? call.function.arguments : 'null'),
        all: JSON.stringify(whole),
      };
    }
    let text = '';
    let args = '';
    let all = '';
    for await (const chunk of await openai(access).chat.completions.create({ ...request, stream: true })) {
      const delta = chunk.choices[0]?.delta;
      text += delta?.content ?? '';
      args += delta?.tool_calls?.[0]?.function?.arguments ?? '';
      all += JSON.stringify(chunk);
    }
    return { text, args: JSON.parse(args), all };
  },
  async responses(access, model, stream) {
    const request = {
      model,
      input: question,
      tools: [{ type: 'function' as const, name: tool.name, parameters: tool.schema, strict: false }],
    };
    const client = openai(access);
    const response = stream
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request);
    const call = response.output.find((item) => item.type === 'function_call');
    return {
      text: response.output_text,
      args: JSON.parse(call?.type === 'function_call' ? call.arguments : 'null'),
      all: JSON.stringify(response.output),
    };
  },
  async messages(access, model, stream) {
    const request = {
      model,
      max_tokens: 100,
      messages: [{ role: 'user' as const, content: question }],
      tools: [{ name: tool.name, input_schema: tool.schema }],
    };
    const client = anthropic(access);
    const message = stream
      ? await client.messages.stream(request).finalMessage()
      : await client.messages.create(request);
    const text = message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    const call = message.content.find((block) => block.type === 'tool_use');
    return { text, args: call?.input, all: JSON.stringify(message) };
  },
  async 'generate-content'(access, model, stream) {
    const request = {
      model,
      contents: question,
      config: { tools: [{ functionDeclarations: [{ name: tool.name, description: tool.description }] }] },
    };
    const client = genai(access, { apiVersion: 'v1beta' });
    const replies = [];
    if (stream)
      for await (const chunk of await client.models.generateContentStream(request)) replies.push(chunk);
    else replies.push(await client.models.generateContent(request));
    const parts = replies.flatMap((reply) => reply.candidates?.[0]?.content?.parts ?? []);
    return {
      text: parts.map((part) => (part.thought === true ? '' : (part.text ?? ''))).join(''),
      args: parts.find((part) => part.functionCall !== undefined)?.functionCall?.args,
      all: JSON.stringify(parts),
    };
  },
};

let upstream: ScriptedUpstream;

beforeAll(async () => {
  upstream = await startUpstream(provide);
});
afterAll(() => upstream.close());

async function guardedGateway(
  options: Parameters<typeof guard>[0],
  more: Parameters<typeof startGateway>[0] = {},
): Promise<TestGateway> {
  const channelOptions = (id: string) => ({ id, key: 'channel-key-0123456789', models: [`at-${id}`] });
  const gateway = await startGateway({
    ...more,
    plugins: [guard(options)],
    channels: [
      openaiChannel({
        ...channelOptions('chat-completions'),
        baseUrl: `${upstream.url}/v1`,
        traits: { '*': { formats: ['chat-completions'] } },
      }),
      openaiChannel({
        ...channelOptions('responses'),
        models: ['at-responses', 'moderator'],
        baseUrl: `${upstream.url}/v1`,
        traits: { 'at-responses': { formats: ['responses'] } },
      }),
      anthropicChannel({ ...channelOptions('messages'), baseUrl: `${upstream.url}/v1` }),
      geminiChannel({ ...channelOptions('generate-content'), baseUrl: `${upstream.url}/v1beta` }),
    ],
  });
  upstream.requests.length = 0;
  return gateway;
}

describe('masks are restored for the official SDKs', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await guardedGateway({
      checks: [{ name: 'pii', kind: 'entities', entities: ['email'], action: 'mask', restore: true }],
    });
  });
  afterAll(() => gateway.close());

  test.each(
    formats.flatMap((client) =>
      formats.flatMap((provider) => [true, false].map((stream) => [client, provider, stream] as const)),
    ),
  )('of %s, by a provider of %s, stream %s', async (client, provider, stream) => {
    const got = await clients[client](gateway, `at-${provider}`, stream);
    const sent = upstream.requests.at(-1);
    expect(formatOf(sent as SeenRequest)).toBe(provider);
    expect(sent?.body.toString()).not.toContain(address);
    expect(got.text).toMatch(new RegExp(`^Done: ${address}, \\[EMAIL_\\w+\\]\\.$`));
    expect(got.args).toEqual({ to: [address], note: 'a "quote"' });
    expect(got.all).not.toContain('own@model.example');
  });
});

test('what nothing is found in passes through as the bytes that came', async () => {
  const gateway = await guardedGateway({
    checks: [
      { name: 'pii', kind: 'entities', entities: ['card'], action: 'mask', restore: true, on: 'request' },
      { name: 'words', kind: 'words', words: ['moonshine'], action: 'refuse', on: 'request' },
    ],
  });
  onTestFinished(() => gateway.close());
  const body = '{"model" : "at-chat-completions",  "messages":[{"role":"user","content":"Hello"}]}';
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body,
  });
  expect(answer.status).toBe(200);
  await eventually(() =>
    expect(gateway.lines).toContainEqual(expect.objectContaining({ passThrough: true })),
  );
  expect(upstream.requests[0]?.body.toString()).toBe(body);
});

describe('checks by models of the channels', () => {
  const sendChat = async (gateway: TestGateway, content: string) => {
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'at-chat-completions', messages: [{ role: 'user', content }] }),
    });
    return { status: answer.status, body: (await answer.json()) as { error?: { code?: string } } };
  };

  test('a moderation refuses what it flags, and its scores have thresholds', async () => {
    const gateway = await guardedGateway({
      checks: [
        { name: 'moderated', kind: 'moderation', model: 'moderator', action: 'refuse', on: 'request' },
      ],
    });
    onTestFinished(() => gateway.close());
    expect((await sendChat(gateway, 'Hello')).status).toBe(200);
    expect(await sendChat(gateway, 'a bomb')).toMatchObject({
      status: 400,
      body: { error: { code: 'content_policy_violation' } },
    });
    const strict = await guardedGateway({
      checks: [
        {
          name: 'moderated',
          kind: 'moderation',
          model: 'moderator',
          thresholds: { violence: 0.2 },
          action: 'refuse',
          on: 'request',
        },
      ],
    });
    onTestFinished(() => strict.close());
    expect((await sendChat(strict, 'Hello')).status).toBe(400);
  });

  test('a judge refuses requests and responses by its instructions, and meets no guard itself', async () => {
    const gateway = await guardedGateway({
      checks: [
        {
          name: 'judged',
          kind: 'judge',
          model: 'at-messages',
          instructions: 'No legal advice.',
          action: 'refuse',
          chargeTo: 'operator',
        },
      ],
    });
    onTestFinished(() => gateway.close());
    expect((await sendChat(gateway, 'Hello')).status).toBe(200);
    expect(upstream.requests.map(formatOf)).toEqual(['messages', 'chat-completions', 'messages']);
    expect((await sendChat(gateway, 'Draft my lawsuit')).status).toBe(400);
  });

  test('a model tells about a response whose call has ended', async () => {
    const gateway = await guardedGateway({
      checks: [
        {
          name: 'moderated',
          kind: 'moderation',
          model: 'moderator',
          thresholds: { violence: 0.2 },
          action: 'alert',
        },
        {
          name: 'judged',
          kind: 'judge',
          model: 'at-messages',
          instructions: 'No lawsuit.',
          action: 'tag',
          on: 'response',
        },
      ],
      alerts: { every: 0 },
    });
    onTestFinished(() => gateway.close());
    expect((await sendChat(gateway, 'Draft my lawsuit')).status).toBe(200);
    await eventually(() => {
      const found = gateway.lines.filter(({ msg }) => /^guard: (?:alert|tagged)$/.test(String(msg)));
      expect(found.map(({ check, side }) => `${check} ${side}`).toSorted()).toEqual([
        'judged response',
        'moderated request',
        'moderated response',
      ]);
    });
    // Each of them is recorded, as a call of its own.
    await eventually(() =>
      expect(
        gateway.lines.filter(({ parent, status }) => parent !== undefined && status === 200),
      ).toHaveLength(3),
    );
  });

  test('a caller without budget for a check that only tags is not refused', async () => {
    const gateway = await guardedGateway(
      {
        checks: [{ name: 'moderated', kind: 'moderation', model: 'moderator', action: 'tag', on: 'request' }],
      },
      {
        prices: {
          moderator: { input: 1_000_000, output: 0 },
          'at-chat-completions': { input: 1, output: 1 },
        },
      },
    );
    onTestFinished(() => gateway.close());
    const budgets = [{ unit: 'micro-dollar', period: 'total', amount: 100_000 }] as const;
    const { value } = await gateway.apiKeys.create({ name: 'small', budgets: [...budgets] });
    const content = 'word '.repeat(100);
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'at-chat-completions',
        max_tokens: 10,
        messages: [{ role: 'user', content }],
      }),
    });
    expect(answer.status).toBe(200);
    expect(gateway.lines).toContainEqual(
      expect.objectContaining({ msg: 'guard: a check did not respond', reason: 'insufficient_quota' }),
    );
  });

  test.each(['moderation', 'judge'] as const)(
    'a %s that does not answer in time is no answer',
    async (kind) => {
      const model = {
        moderation: { model: 'moderator' },
        judge: { model: 'moderator', instructions: 'None.' },
      }[kind];
      const gateway = await guardedGateway({
        checks: [
          {
            name: 'asked',
            kind,
            ...model,
            timeout: 100,
            action: 'refuse',
            on: 'request',
          } as never,
        ],
      });
      onTestFinished(() => gateway.close());
      expect((await sendChat(gateway, 'silence')).status).toBe(503);
      expect(gateway.lines).toContainEqual(
        expect.objectContaining({
          msg: 'guard: a check did not respond',
          reason: expect.stringMatching(/100 ms/),
        }),
      );
    },
  );

  test('a model that nobody serves is no answer', async () => {
    const gateway = await guardedGateway({
      checks: [{ name: 'moderated', kind: 'moderation', model: 'nobody', action: 'refuse', on: 'request' }],
    });
    onTestFinished(() => gateway.close());
    expect((await sendChat(gateway, 'Hello')).status).toBe(503);
  });
});

test('a tag is in the head of the response, that of a whole response in front of it, too', async () => {
  const gateway = await guardedGateway({
    checks: [
      { name: 'greeting', kind: 'words', words: ['hello'], action: 'tag', on: 'request' },
      { name: 'done', kind: 'words', words: ['done'], action: 'tag', on: 'response' },
    ],
  });
  onTestFinished(() => gateway.close());
  const tagsOf = async (stream: boolean): Promise<string | null> => {
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'at-messages', stream, messages: [{ role: 'user', content: 'Hello' }] }),
    });
    await answer.text();
    return answer.headers.get('x-sluice-guard');
  };
  expect(await tagsOf(true)).toBe('greeting');
  expect(await tagsOf(false)).toBe('greeting, done');
});

test('a request of 15 MB is masked in time that grows as it does', async () => {
  const gateway = await guardedGateway({
    checks: [{ name: 'pii', kind: 'entities', entities: ['all'], action: 'mask', on: 'request' }],
  });
  onTestFinished(() => gateway.close());
  const content = `${'The quick brown fox, 12 of them, wrote to nobody. '.repeat(300_000)}${address}`;
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'at-chat-completions', messages: [{ role: 'user', content }] }),
  });
  expect(answer.status).toBe(200);
  const sent = upstream.requests[0]?.body.toString() ?? '';
  expect(sent.length).toBeGreaterThan(15_000_000);
  expect(sent).not.toContain(address);
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { selectRotating } from '../support/tries.ts';
import { chatClient } from './chat-client.ts';
import { citySchema, described, type ChatInput, type Client, type ToolSpec } from './conversation.ts';
import { bedrock, converseClient } from './converse-client.ts';
import { generateContentClient } from './generate-content-client.ts';
import { messagesClient } from './messages-client.ts';
import { responsesClient } from './responses-client.ts';
import {
  anthropic,
  anthropicVertex,
  azureOpenai,
  formats as watched,
  genai,
  olderAnthropic,
  openai,
  vertexGenai,
  type ChatFormatName,
} from './sdks.ts';

const formats: readonly ChatFormatName[] = [...watched, 'converse'];
/** Formats that tell which stop sequence ended an answer, and not how much of it was reasoning. */
const tellsStops: ReadonlySet<ChatFormatName> = new Set(['messages', 'converse']);

/** Every official client, as it comes and as older ones of its kind do. */
const clients: Readonly<Record<string, (gateway: TestGateway) => Client>> = {
  openai: (gateway) => chatClient(openai(gateway)),
  anthropic: (gateway) => messagesClient(anthropic(gateway), 'adaptive'),
  'anthropic 2023': (gateway) => messagesClient(olderAnthropic(gateway), 'budget'),
  genai: (gateway) => generateContentClient(genai(gateway), 'level'),
  'genai v1beta': (gateway) => generateContentClient(genai(gateway, { apiVersion: 'v1beta' }), 'budget'),
  responses: (gateway) => responsesClient(openai(gateway), 'items'),
  'responses stored': (gateway) => responsesClient(openai(gateway), 'stored'),
  bedrock: (gateway) => converseClient(bedrock(gateway)),
  'bedrock signed': (gateway) => converseClient(bedrock(gateway, 'signed')),
  // The same APIs at the addresses of clouds.
  azure: (gateway) => chatClient(azureOpenai(gateway)),
  'azure responses': (gateway) => responsesClient(azureOpenai(gateway), 'items'),
  'genai vertex': (gateway) => generateContentClient(vertexGenai(gateway, 'project'), 'level'),
  'genai express': (gateway) => generateContentClient(vertexGenai(gateway, 'express'), 'budget'),
  'anthropic vertex': (gateway) => messagesClient(anthropicVertex(gateway), 'adaptive'),
};

/** Capabilities that a client's format lacks: Responses has no stop sequences, and a history that the gateway stores cannot be changed. */
const wordless: Readonly<Record<string, readonly string[]>> = {
  responses: ['stop'],
  'azure responses': ['stop'],
  'responses stored': ['stop', 'proof changed'],
};

const weather: ToolSpec = {
  name: 'get_weather',
  description: 'The weather in a city',
  schema: {
    type: 'object',
    properties: {
      city: { type: 'string', description: 'Its name' },
      unit: { type: 'string', enum: ['celsius', 'fahrenheit'] },
    },
    required: ['city', 'unit'],
  },
  result: '21 degrees',
};
const time: ToolSpec = {
  name: 'get_time',
  description: 'The time in a zone',
  schema: { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] },
  result: 'noon',
};
const weatherInput = { city: 'demo city', unit: 'celsius' };
const timeInput = { zone: 'demo zone' };

/** One red pixel. */
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';

interface Pair {
  readonly client: Client;
  readonly channel: ChatFormatName;
  readonly model: string;
}

/** Capabilities of every pair of client and channel: column of the table, visible effect, and test. */
const capabilities: readonly (readonly [
  column: string,
  sentence: string,
  check: (pair: Pair) => Promise<void>,
])[] = [
  [
    'text',
    'an answer comes whole, in the name of the model that was asked for',
    async ({ client, model }) => {
      const result = await client.whole({ model, text: 'Hello there' });
      expect(result).toMatchObject({
        text: 'You said: Hello there',
        thinking: '',
        model,
        stop: client.words.done,
      });
    },
  ],
  [
    'stream',
    'an answer comes piece by piece and adds up to the whole one',
    async ({ client, model }) => {
      const result = await client.stream({ model, text: 'Grüße, 世界 🌍, and so on' });
      expect(result).toMatchObject({
        text: 'You said: Grüße, 世界 🌍, and so on',
        thinking: '',
        model,
        stop: client.words.done,
      });
      expect(result.pieces).toBeGreaterThan(3);
    },
  ],
  [
    'turns',
    'instructions and earlier turns reach the provider in their roles and order',
    async ({ client, channel, model }) => {
      const result = await client.whole({
        model,
        system: 'Answer in French.',
        history: [
          { role: 'user', text: 'My name is Ada.' },
          { role: 'assistant', text: 'Bonjour Ada.' },
        ],
        text: '!request What is my name?',
      });
      const { format, body } = JSON.parse(result.text) as { format: string; body: Record<string, unknown> };
      expect(format).toBe(channel);
      expect(turnsOf(channel, body)).toEqual([
        ['system', 'Answer in French.'],
        ['user', 'My name is Ada.'],
        ['assistant', 'Bonjour Ada.'],
        ['user', '!request What is my name?'],
      ]);
    },
  ],
  [
    'length',
    'an answer that reached its limit says so, whole and streamed',
    async ({ client, model }) => {
      // No provider of Responses takes a limit below 16.
      const input: ChatInput = { model, text: `${'a '.repeat(30)}long story`, maxTokens: 17 };
      const cut = { text: `You said:${' a'.repeat(14)}`, stop: client.words.length, tokens: { output: 17 } };
      expect(await client.whole(input)).toMatchObject(cut);
      expect(await client.stream(input)).toMatchObject(cut);
    },
  ],
  [
    'stop',
    'a stop sequence ends the answer before it',
    async ({ client, channel, model }) => {
      const result = await client.stream({ model, text: 'one two three four', stop: ['three'] });
      // A Responses provider knows no stop sequences: the loss is reported (losses.test.ts).
      expect(result.text).toBe(
        channel === 'responses' ? 'You said: one two three four' : 'You said: one two ',
      );
      const knows = tellsStops.has(client.format) && tellsStops.has(channel);
      expect(result.stop).toBe(knows ? 'stop_sequence' : client.words.done);
    },
  ],
  [
    'usage',
    'the tokens counted are the same whichever client asked, whole and streamed',
    async ({ client, model }) => {
      const input: ChatInput = { model, system: 'Be brief.', text: 'one two three' };
      const tokens = { input: 6, output: 6, reasoning: 0, cacheRead: 0 };
      expect((await client.whole(input)).tokens).toEqual(tokens);
      expect((await client.stream(input)).tokens).toEqual(tokens);
    },
  ],
  [
    'vision',
    'every byte of a picture reaches the model',
    async ({ client, model }) => {
      const result = await client.whole({ model, text: 'What is this?', image: png });
      expect(result.text).toBe(
        `You said: What is this?\nI received 1 attachment: ${described('image', 'image/png', png)}`,
      );
    },
  ],
  [
    'tools',
    'a tool is called, and the answer quotes its result',
    async ({ client, model }) => {
      const loop = await client.loop(
        { model, text: 'Please call get_weather' },
        { tools: [weather, time], stream: false },
      );
      expect(loop.calls.map(({ name, input }) => ({ name, input }))).toEqual([
        { name: 'get_weather', input: weatherInput },
      ]);
      expect(loop.stop).toBe(client.words.tools);
      expect(loop.final).toMatchObject({ text: 'get_weather returned: 21 degrees', stop: client.words.done });
    },
  ],
  [
    'tools stream',
    'the same while both answers are streamed',
    async ({ client, model }) => {
      const loop = await client.loop(
        { model, text: 'Please call get_weather' },
        { tools: [weather, time], stream: true },
      );
      expect(loop.calls.map(({ name, input }) => ({ name, input }))).toEqual([
        { name: 'get_weather', input: weatherInput },
      ]);
      expect(loop.stop).toBe(client.words.tools);
      expect(loop.final).toMatchObject({ text: 'get_weather returned: 21 degrees', stop: client.words.done });
    },
  ],
  [
    'parallel',
    'two tools are called at once, and both results are quoted in order',
    async ({ client, model }) => {
      const loop = await client.loop(
        { model, text: 'Please call get_weather and get_time' },
        { tools: [weather, time], stream: false },
      );
      expectBothCalls(loop.calls);
      expect(loop.final.text).toBe('get_weather returned: 21 degrees\nget_time returned: noon');
    },
  ],
  [
    'interleaved',
    'parallel calls whose arguments arrive in turns do not get mixed up',
    async ({ client, model }) => {
      const loop = await client.loop(
        { model, text: '!interleave Please call get_weather and get_time' },
        { tools: [weather, time], stream: true },
      );
      expectBothCalls(loop.calls);
      expect(loop.final.text).toBe('get_weather returned: 21 degrees\nget_time returned: noon');
    },
  ],
  [
    'runner',
    'the tool runner of the SDK finishes its loop',
    async ({ client, model }) => {
      const text = await client.runner({ model, text: 'Please call get_weather then get_time' }, [
        weather,
        time,
      ]);
      expect(text).toBe('get_time returned: noon');
    },
  ],
  [
    'thinking',
    'reasoning is shown apart from the answer and counted, whole and streamed alike',
    async ({ client, channel, model }) => {
      const input: ChatInput = { model, text: 'Why is the sky blue?', thinking: true };
      const whole = await client.whole(input);
      expect(whole.text).toBe('You said: Why is the sky blue?');
      expect(whole.thinking).toMatch(/^The user wrote: Why is the sky blue\?\nI think with .+\.$/);
      // Converse counts reasoning among the rest.
      const counted = client.format !== 'converse' && channel !== 'converse';
      expect(whole.tokens.reasoning).toBeGreaterThan(counted ? 5 : -1);
      if (counted) expect(whole.tokens.output).toBe(whole.tokens.reasoning + 9);
      else expect(whole.tokens.output).toBeGreaterThan(14);
      const streamed = await client.stream(input);
      expect({ ...streamed, pieces: 1 }).toEqual(whole);
    },
  ],
  [
    'proof',
    'reasoning survives a tool loop: the provider gets back what it signed',
    async ({ client, model }) => {
      const input: ChatInput = { model, text: 'Please call get_weather', thinking: true };
      const loop = await client.loop(input, { tools: [weather], stream: false });
      expect(loop.thinking).toContain('The user wrote: Please call get_weather');
      expect(loop.final.text).toBe('get_weather returned: 21 degrees');
    },
  ],
  [
    'proof stream',
    'the same while both answers are streamed',
    async ({ client, model }) => {
      const input: ChatInput = { model, text: 'Please call get_weather', thinking: true };
      const loop = await client.loop(input, { tools: [weather], stream: true });
      expect(loop.thinking).toContain('The user wrote: Please call get_weather');
      expect(loop.final.text).toBe('get_weather returned: 21 degrees');
    },
  ],
  [
    'proof changed',
    'reasoning that was tampered with reaches the provider as it is, and is refused there',
    async ({ client, channel, model }) => {
      const input: ChatInput = { model, text: 'Please call get_weather', thinking: true };
      const spoil = channel === 'chat-completions' ? 'words' : 'proof';
      const broken = client.loop(input, { tools: [weather], stream: false, spoil });
      await expect(broken).rejects.toMatchObject({
        status: 400,
        message: expect.stringMatching(
          /invalid signature in|reasoning_content is not the reasoning of this turn/,
        ) as string,
      });
    },
  ],
  [
    'json',
    'structured output satisfies its schema',
    async ({ client, model }) => {
      const parsed = citySchema.parse(await client.structured({ model, text: 'Tell me about a city' }));
      expect(parsed).toMatchObject({
        city: 'demo city',
        climate: 'dry',
        districts: [{ name: 'demo name', central: true }],
      });
    },
  ],
];

function expectBothCalls(
  calls: readonly { readonly id: string | undefined; readonly name: string; readonly input: unknown }[],
): void {
  expect(calls.map(({ name, input }) => ({ name, input }))).toEqual([
    { name: 'get_weather', input: weatherInput },
    { name: 'get_time', input: timeInput },
  ]);
  for (const { id } of calls) expect(id).toMatch(/./);
  expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
}

/** The words of a string or of a list of parts. */
const words = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : (content as { text?: string }[]).map(({ text }) => text ?? '').join('');

/** Roles and words of a provider's request body. */
function turnsOf(format: ChatFormatName, body: Record<string, unknown>): [string, string][] {
  if (format === 'generate-content') {
    const { systemInstruction, contents } = body as {
      systemInstruction: { parts: unknown };
      contents: { role: string; parts: unknown }[];
    };
    return [
      ['system', words(systemInstruction.parts)],
      ...contents.map(({ role, parts }): [string, string] => [
        role === 'model' ? 'assistant' : role,
        words(parts),
      ]),
    ];
  }
  if (format === 'responses') {
    const { instructions, input } = body as {
      instructions: string;
      input: { role: string; content: unknown }[];
    };
    return [
      ['system', instructions],
      ...input.map(({ role, content }): [string, string] => [role, words(content)]),
    ];
  }
  const messages = body.messages as { role: string; content: unknown }[];
  if (format === 'converse')
    return [
      ['system', words(body.system)],
      ...messages.map(({ role, content }): [string, string] => [role, words(content)]),
    ];
  const turns = messages.map(({ role, content }): [string, string] => [role, words(content)]);
  return format === 'messages' ? [['system', words(body.system)], ...turns] : turns;
}

let gateway: TestGateway;
const outcomes = new Map<string, Map<string, boolean>>();

beforeAll(async () => {
  gateway = await startGateway({
    channels: formats.map((format) =>
      demo({ id: format, speaks: [format], strict: true, models: { [`via-${format}`]: 'demo' } }),
    ),
  });
});

afterAll(async () => {
  process.stdout.write(table());
  await gateway.close();
});

const pairs = Object.entries(clients).flatMap(([name, make]) =>
  formats.map((channel) => ({ name, make, channel })),
);

describe.each(pairs)('$name → $channel', ({ name, make, channel }) => {
  const supported = capabilities.filter(([column]) => wordless[name]?.includes(column) !== true);
  const offset = Object.keys(clients).indexOf(name) + formats.indexOf(channel);
  test.each(selectRotating(supported, offset, 2))('%s: %s', async (column, _sentence, check) => {
    const row = `${name} → ${channel}`;
    const cells = outcomes.get(row) ?? new Map<string, boolean>();
    outcomes.set(row, cells.set(column, false));
    expect.hasAssertions();
    await check({ client: make(gateway), channel, model: `via-${channel}` });
    cells.set(column, true);
  });
});

describe('a client that forgets the reasoning of a tool loop', () => {
  const forgetful: readonly (readonly [client: string, channel: ChatFormatName])[] = [
    ['openai', 'messages'],
    ['openai', 'generate-content'],
    ['anthropic', 'generate-content'],
    ['anthropic 2023', 'generate-content'],
    ['genai', 'messages'],
    ['genai v1beta', 'messages'],
  ];

  test.each(forgetful)('%s on a %s channel still gets its answer', async (name, channel) => {
    const client = clients[name]?.(gateway);
    const loop = await client?.loop(
      { model: `via-${channel}`, text: 'Please call get_weather and get_time', thinking: true },
      { tools: [weather, time], stream: true, spoil: 'forget' },
    );
    expect(loop?.thinking).toContain('The user wrote:');
    expect(loop?.final.text).toBe('get_weather returned: 21 degrees\nget_time returned: noon');
  });
});

describe('the conversation helper of genai, which keeps each chunk as a content of its own', () => {
  test.each(formats)('thinks through a streamed tool loop on a %s channel', async (channel) => {
    const chat = genai(gateway).chats.create({
      model: `via-${channel}`,
      config: {
        thinkingConfig: { includeThoughts: true, thinkingBudget: 2048 },
        tools: [
          {
            functionDeclarations: [
              { name: weather.name, description: weather.description, parametersJsonSchema: weather.schema },
            ],
          },
        ],
      },
    });
    const calls: { id?: string; name?: string }[] = [];
    for await (const chunk of await chat.sendMessageStream({ message: 'Please call get_weather' }))
      calls.push(...(chunk.functionCalls ?? []));
    expect(calls.map(({ name }) => name)).toEqual(['get_weather']);
    const [{ id, name } = {}] = calls;
    let text = '';
    const answer = await chat.sendMessageStream({
      message: [
        {
          functionResponse: {
            ...(id === undefined ? {} : { id }),
            name: name ?? '',
            response: { output: weather.result },
          },
        },
      ],
    });
    for await (const chunk of answer) text += chunk.text ?? '';
    expect(text).toBe('get_weather returned: 21 degrees');
    let again = '';
    for await (const chunk of await chat.sendMessageStream({ message: 'Thank you' }))
      again += chunk.text ?? '';
    expect(again).toBe('You said: Thank you');
  });
});

/** Pair × capability, for the reader of the log. */
function table(): string {
  const rows = [...outcomes].filter(([, cells]) => cells.size > 0);
  const width = Math.max(...rows.map(([row]) => row.length), 0);
  const columns = capabilities.map(([column]) => column);
  const lines = rows.map(
    ([row, cells]) =>
      `${row.padEnd(width)}  ${columns.map((column) => (cells.get(column) === undefined ? '·' : cells.get(column) ? '✓' : '✗').padEnd(column.length)).join('  ')}`,
  );
  return `\n${' '.repeat(width)}  ${columns.join('  ')}\n${lines.join('\n')}\n\n`;
}

import { afterEach, describe, expect, test } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import { definePlugin } from 'sluice';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { generator, pick, prose } from '../bench/texts.ts';
import { idStyles, type IdStyle } from '../bench/tool-ids.ts';

const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

type Json = Readonly<Record<string, unknown>>;

/** Answers of the provider: each thinks and calls tools with these ids. */
type Answers = readonly (readonly string[])[];

const signatureOf = (answer: number): string => `Sig${answer}+/${'n'.repeat(40)}==`;
const toolNames = ['find', 'read', 'save'];
const nameOf = (index: number): string => toolNames[index % toolNames.length] ?? '';
const long = prose(generator(1), 20_000, '\n');

/** Two channels with accounts of one provider, whose models are `m` and `n` here, and members of bodies that were not read as a whole. */
async function start(answers: Answers): Promise<{
  readonly gateway: TestGateway;
  readonly upstream: ScriptedUpstream;
  readonly unread: string[][];
}> {
  const upstream = await startUpstream((_request, response, count) => {
    const ids = answers[count - 1] ?? [];
    const content = [
      { type: 'thinking', thinking: `Thought ${count}.`, signature: signatureOf(count) },
      ...ids.map((id, index) => ({ type: 'tool_use', id, name: nameOf(index), input: {} })),
      ...(ids.length === 0 ? [{ type: 'text', text: 'Done.' }] : []),
    ];
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({
        id: `msg_${count}`,
        type: 'message',
        role: 'assistant',
        model: 'claude-sonnet-4-5',
        content,
        stop_reason: ids.length > 0 ? 'tool_use' : 'end_turn',
        usage: { input_tokens: 1, output_tokens: 1 },
      }),
    );
  });
  const unread: string[][] = [];
  const watcher = definePlugin({
    name: 'watcher',
    stage: 'admit',
    setup: () => (call, next) => {
      const { body } = call;
      call.onEnd(() => {
        const members = Object.entries(Object.getOwnPropertyDescriptors(body));
        unread.push(members.flatMap(([name, { get }]) => (get === undefined ? [] : [name])));
      });
      return next(call);
    },
  });
  const channel = (id: string, model: string) =>
    anthropic({ id, key: id, baseUrl: `${upstream.url}/v1`, models: { [model]: 'claude-sonnet-4-5' } });
  const gateway = await startGateway({
    plugins: [watcher()],
    channels: [channel('one', 'm'), channel('other', 'n')],
  });
  open.push(upstream, gateway);
  return { gateway, upstream, unread };
}

/** A client of chat completions that keeps content and calls of answers. */
class Client {
  readonly messages: Json[];
  readonly #gateway: TestGateway;
  readonly #key: string;

  constructor(gateway: TestGateway, question: string, key = gateway.key) {
    this.messages = [{ role: 'user', content: question }];
    this.#gateway = gateway;
    this.#key = key;
  }

  /** Sends the conversation, keeps the answer and says what its calls gave. */
  async send(model = 'm'): Promise<void> {
    const tools = toolNames.map((name) => ({
      type: 'function',
      function: { name, parameters: { type: 'object' } },
    }));
    const response = await fetch(`${this.#gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${this.#key}` },
      body: JSON.stringify({ model, messages: this.messages, tools, reasoning_effort: 'high' }),
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`Status ${response.status}: ${text}`);
    const { choices } = JSON.parse(text) as {
      choices: { message: { content: unknown; tool_calls?: { id: string }[] } }[];
    };
    const { content, tool_calls: calls = [] } = choices[0]?.message ?? { content: null };
    this.messages.push({ role: 'assistant', content, ...(calls.length > 0 ? { tool_calls: calls } : {}) });
    for (const { id } of calls) this.messages.push({ role: 'tool', tool_call_id: id, content: 'found' });
  }
}

/** The signatures in each of the model's turns of the latest request. */
function signaturesIn({ requests }: ScriptedUpstream): readonly (readonly string[])[] {
  const { messages } = JSON.parse(String(requests.at(-1)?.body)) as {
    messages: { role: string; content: Json[] }[];
  };
  return messages.flatMap(({ role, content }) =>
    role === 'assistant'
      ? [content.flatMap(({ signature }) => (typeof signature === 'string' ? signature : []))]
      : [],
  );
}

const turnsOf = (...answers: readonly number[]): string[][] => answers.map((answer) => [signatureOf(answer)]);

/** Ids of so many calls in one session. */
function idsOf(style: IdStyle, count: number): string[] {
  const random = generator(7);
  return Array.from({ length: count }, (_, index) => idStyles[style](random, 'find', index));
}

const styles: readonly IdStyle[] = [
  'openai',
  'anthropic',
  'gemini',
  'kimi',
  'mistral',
  'vllm',
  'ollama',
  'deepseek',
];

describe('a long session that goes on over another channel', () => {
  test.each(styles)('has all its signatures again, with the ids of %s', async (style) => {
    const { gateway, upstream } = await start([...idsOf(style, 3).map((id) => [id]), []]);
    const client = new Client(gateway, long);
    for (let round = 0; round < 3; round += 1) await client.send();
    await client.send('n');
    expect(upstream.requests.at(-1)?.headers['x-api-key']).toBe('other');
    expect(signaturesIn(upstream)).toEqual(turnsOf(1, 2, 3));
  });

  test('has all its signatures again, where calls are parallel and a client sends each in a message of its own', async () => {
    const { gateway, upstream } = await start([
      ['functions.find:0', 'functions.read:1'],
      ['functions.find:2'],
      [],
    ]);
    const client = new Client(gateway, long);
    await client.send();
    const [userMessage, { tool_calls: calls }, ...results] = client.messages as [Json, Json, ...Json[]];
    const split = (calls as Json[]).flatMap((call, index) => [
      { role: 'assistant', content: null, tool_calls: [call] },
      results[index] ?? {},
    ]);
    client.messages.splice(0, Infinity, userMessage, ...split);
    await client.send();
    await client.send('n');
    expect(signaturesIn(upstream).flat()).toEqual([signatureOf(1), signatureOf(2)]);
  });
});

describe('ids that two sessions have', () => {
  const ids = [['functions.find:0'], ['functions.find:1']];

  test('give each the reasoning of its own turns', async () => {
    const { gateway, upstream } = await start([...ids, ...ids, [], []]);
    const [one, other] = ['Find my keys.', 'Find the weather.'].map(
      (question) => new Client(gateway, `${question} ${long}`),
    ) as [Client, Client];
    for (const client of [one, one, other, other]) await client.send();
    await one.send('n');
    expect(signaturesIn(upstream)).toEqual(turnsOf(1, 2));
    await other.send('n');
    expect(signaturesIn(upstream)).toEqual(turnsOf(3, 4));
  });

  test('give a session of which nothing is known none, and its words are not read for that', async () => {
    const { gateway, upstream, unread } = await start([...ids, []]);
    const known = new Client(gateway, `Find my keys. ${long}`);
    await known.send();
    await known.send();
    const unknown = new Client(gateway, `Find the weather. ${long}`);
    unknown.messages.push(...known.messages.slice(1));
    unread.splice(0);
    await unknown.send();
    expect(signaturesIn(upstream)).toEqual([[], []]);
    await expect.poll(() => unread).toEqual([['messages']]);
  });

  test('give another key none, though it sends the same words', async () => {
    const { gateway, upstream } = await start([...ids, []]);
    const client = new Client(gateway, long);
    await client.send();
    await client.send();
    const { value } = await gateway.apiKeys.create({ name: 'somebody else' });
    const stranger = new Client(gateway, long, value);
    stranger.messages.push(...client.messages.slice(1));
    await stranger.send();
    expect(signaturesIn(upstream)).toEqual([[], []]);
  });
});

describe('an id that stands in several turns of a session', () => {
  test.each([['functions.find:0'], ['call'], ['call_1']])(
    'gives each turn its own reasoning: %s',
    async (id) => {
      const { gateway, upstream } = await start([[id], [id], [id], []]);
      const client = new Client(gateway, long);
      for (let round = 0; round < 3; round += 1) await client.send();
      await client.send('n');
      expect(signaturesIn(upstream)).toEqual(turnsOf(1, 2, 3));
    },
  );
});

test('a session whose client had it summarised keeps the reasoning of turns with ids of chance', async () => {
  const random = generator(9);
  const ids = Array.from({ length: 2 }, () => [idStyles.openai(random, '', 0)]);
  const { gateway, upstream } = await start([...ids, []]);
  const client = new Client(gateway, long);
  await client.send();
  await client.send();
  client.messages.splice(0, 3, { role: 'user', content: `A summary: ${pick(random, toolNames)}.` });
  await client.send('n');
  expect(signaturesIn(upstream)).toEqual(turnsOf(2));
});

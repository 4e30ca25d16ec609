import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import demo from '../../channels/demo/index.ts';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import vault from '../../plugins/reasoning-vault/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startProcess, type GatewayProcess } from './_process.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

async function gatewayWith(config: GatewayConfig): Promise<TestGateway> {
  const gateway = await startGateway(config);
  open.push(gateway);
  return gateway;
}

function databaseFile(): string {
  return `sqlite:${join(temporaryFolder(), 'state.db')}`;
}

interface ToolCall {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}
interface Plain {
  readonly role: string;
  readonly content?: string | null;
  readonly tool_calls?: readonly ToolCall[];
  readonly tool_call_id?: string;
}
interface Answered {
  readonly status: number;
  readonly message: Plain;
  readonly losses: string | null;
  readonly error?: string | undefined;
}

const tool = (name: string) => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] } },
});
const tools = [tool('find'), tool('read'), tool('save')];

/** A client that keeps of an answer its content and its calls, and nothing that it does not know. */
class PlainClient {
  readonly messages: Plain[];
  readonly #stream: boolean;

  constructor(prompt: string, stream: boolean) {
    this.messages = [{ role: 'user', content: prompt }];
    this.#stream = stream;
  }

  async send(gateway: Pick<TestGateway, 'url' | 'key'>, model: string, key = gateway.key): Promise<Answered> {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({
        model,
        messages: this.messages,
        tools,
        reasoning_effort: 'high',
        stream: this.#stream,
      }),
    });
    const losses = response.headers.get('x-sluice-loss');
    const text = await response.text();
    if (response.status !== 200) {
      const { error } = JSON.parse(text) as { error: { message: string } };
      return { status: response.status, message: { role: 'assistant' }, losses, error: error.message };
    }
    const message = this.#stream ? gathered(text) : kept(JSON.parse(text) as Completion);
    this.messages.push(message);
    return { status: 200, message, losses };
  }

  /** Answers calls of the latest answer. */
  answer(calls: readonly ToolCall[]): void {
    for (const { id, function: called } of calls)
      this.messages.push({ role: 'tool', tool_call_id: id, content: `result of ${called.name}` });
  }
}

interface Completion {
  readonly choices: readonly { readonly message: Plain; readonly delta: Plain }[];
}

function kept({ choices }: Completion): Plain {
  const { content = null, tool_calls } = choices[0]?.message ?? { role: 'assistant' };
  return {
    role: 'assistant',
    content,
    ...(tool_calls === undefined ? {} : { tool_calls: tool_calls.map(bare) }),
  };
}

/** Only what the official format has. */
function bare({ id, function: called }: ToolCall): ToolCall {
  return { id, type: 'function', function: { name: called.name, arguments: called.arguments } } as ToolCall;
}

function gathered(sse: string): Plain {
  let content = '';
  const calls: { id: string; function: { name: string; arguments: string } }[] = [];
  for (const line of sse.split('\n')) {
    if (!line.startsWith('data: {')) continue;
    const delta = (JSON.parse(line.slice(6)) as Completion).choices[0]?.delta;
    content += delta?.content ?? '';
    for (const piece of (delta?.tool_calls ?? []) as readonly (ToolCall & { index: number })[]) {
      const call = (calls[piece.index] ??= { id: '', function: { name: '', arguments: '' } });
      call.id += piece.id ?? '';
      call.function.name += piece.function?.name ?? '';
      call.function.arguments += piece.function?.arguments ?? '';
    }
  }
  return {
    role: 'assistant',
    content: content === '' ? null : content,
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(bare) }),
  };
}

/** Finds, then reads, then saves; the answer quotes the last result. The demo refuses a turn whose reasoning did not come back. */
const prompt = 'Please call find then call read then call save';

async function wholeLoop(
  gateways: readonly TestGateway[],
  model: string,
  stream: boolean,
  key?: string,
): Promise<Answered> {
  const client = new PlainClient(prompt, stream);
  let last: Answered | undefined;
  for (let round = 0; round < 4; round += 1) {
    const gateway = gateways[round % gateways.length] as TestGateway;
    last = await client.send(gateway, model, key);
    if (last.status !== 200) return last;
    client.answer(last.message.tool_calls ?? []);
  }
  return last as Answered;
}

describe.each(['messages', 'generate-content', 'chat-completions', 'responses'] as const)(
  'a plain client on a %s channel that insists on its reasoning',
  (format) => {
    const channel = () =>
      demo({ id: format, speaks: [format], strict: true, models: { thinker: 'demo-thinking' } });
    const finished = { status: 200, losses: null, message: { content: 'save returned: result of save' } };

    test.each([false, true])('finishes a loop of three calls, streamed: %s', async (stream) => {
      const gateway = await gatewayWith({ channels: [channel()] });
      expect(await wholeLoop([gateway], 'thinker', stream)).toMatchObject(finished);
    });

    test('finishes it over restarts of the gateway', async () => {
      const database = databaseFile();
      const client = new PlainClient(prompt, true);
      let key: string | undefined;
      for (let round = 0; round < 4; round += 1) {
        const gateway = await startGateway({ database, channels: [channel()] });
        try {
          key ??= gateway.key;
          const { status, losses, message, error } = await client.send(gateway, 'thinker', key);
          expect({ status, losses, error }).toEqual({ status: 200, losses: null });
          client.answer(message.tool_calls ?? []);
        } finally {
          await gateway.close();
        }
      }
      expect(client.messages.at(-1)?.content).toBe('save returned: result of save');
    });

    test('finishes it when every request goes to another of two gateways', async () => {
      const database = databaseFile();
      const one = await gatewayWith({ database, channels: [channel()] });
      const other = await gatewayWith({ database, channels: [channel()] });
      expect(await wholeLoop([one, other], 'thinker', true, one.key)).toMatchObject(finished);
    });
  },
);

/* ---- byte for byte, against a provider that records what it gets ---- */

const signature = `Sig+/${'n'.repeat(40)}==`;
const redacted = `Red+/${'d'.repeat(40)}==`;

type Part = Readonly<Record<string, unknown>>;
const thinking: Part = { type: 'thinking', thinking: 'First — 世界\u2028 "quoted"\n', signature };
const hidden: Part = { type: 'redacted_thinking', data: redacted };
const use = (id: string, name: string): Part => ({ type: 'tool_use', id, name, input: { q: name } });

/** A provider of messages that gives these answers, whole; the last one again and again. */
async function messagesProvider(...answers: readonly (readonly Part[])[]): Promise<ScriptedUpstream> {
  const upstream = await startUpstream((_request, response, count) => {
    const content = answers[Math.min(count, answers.length) - 1] ?? [];
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({
        id: `msg_${count}`,
        type: 'message',
        role: 'assistant',
        model: 'm',
        content,
        stop_reason: content.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn',
        usage: { input_tokens: 1, output_tokens: 1 },
      }),
    );
  });
  open.push(upstream);
  return upstream;
}

async function contentProvider(...answers: readonly (readonly Part[])[]): Promise<ScriptedUpstream> {
  const upstream = await startUpstream((_request, response, count) => {
    const parts = answers[Math.min(count, answers.length) - 1] ?? [];
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({
        responseId: `r${count}`,
        modelVersion: 'g',
        candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
        usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      }),
    );
  });
  open.push(upstream);
  return upstream;
}

interface SeenTurn {
  readonly role: string;
  readonly content: readonly Part[];
  readonly parts: readonly Part[];
}

/** The turns of a request that a provider saw, by its number from 0. */
function turns(upstream: ScriptedUpstream, request: number): readonly SeenTurn[] {
  const body = JSON.parse(String(upstream.requests[request]?.body)) as {
    messages?: readonly SeenTurn[];
    contents?: readonly SeenTurn[];
  };
  return body.messages ?? body.contents ?? [];
}

const done: readonly Part[] = [{ type: 'text', text: 'Done.' }];
const calls = [use('toolu_01AbCdEf23', 'find'), use('toolu_01XyZwVu45', 'read')];

async function thinkingGateway(
  answers: readonly (readonly Part[])[],
  more: GatewayConfig = {},
): Promise<{ readonly gateway: TestGateway; readonly upstream: ScriptedUpstream }> {
  const upstream = await messagesProvider(...answers);
  const channel = anthropic({ key: 'k', baseUrl: `${upstream.url}/v1`, models: { m: 'claude-sonnet-4-5' } });
  const gateway = await gatewayWith({ ...more, channels: [channel, ...(more.channels ?? [])] });
  return { gateway, upstream };
}

describe('what the provider gets back', () => {
  test('is every block of its reasoning, in its place, byte for byte', async () => {
    const textPart: Part = { type: 'text', text: 'I look.' };
    const between: Part = { type: 'thinking', thinking: 'And now read.', signature: `${signature}2` };
    const { gateway, upstream } = await thinkingGateway([
      [thinking, hidden, textPart, between, ...calls],
      done,
    ]);
    const client = new PlainClient(prompt, false);
    client.answer((await client.send(gateway, 'm')).message.tool_calls ?? []);
    expect(await client.send(gateway, 'm')).toMatchObject({ status: 200, losses: null });
    expect(turns(upstream, 1)[1]?.content).toEqual([thinking, hidden, textPart, between, ...calls]);
  });

  test('is the same for a client of another format that drops it', async () => {
    const { gateway, upstream } = await thinkingGateway([[thinking, ...calls], done]);
    const contents: unknown[] = [{ role: 'user', parts: [{ text: prompt }] }];
    const declared = tools.map(({ function: { name, parameters } }) => ({ name, parameters }));
    const runTurn = async (): Promise<readonly Part[]> => {
      const response = await fetch(`${gateway.url}/v1beta/models/m:generateContent`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-goog-api-key': gateway.key },
        body: JSON.stringify({
          contents,
          tools: [{ functionDeclarations: declared }],
          generationConfig: { thinkingConfig: { thinkingBudget: 2048 } },
        }),
      });
      expect([response.status, response.headers.get('x-sluice-loss')]).toEqual([200, null]);
      const { candidates } = (await response.json()) as { candidates: { content: { parts: Part[] } }[] };
      return candidates[0]?.content.parts ?? [];
    };
    const parts = (await runTurn()).flatMap(({ functionCall }) =>
      functionCall === undefined ? [] : [{ functionCall }],
    );
    const results = parts.map(({ functionCall }) => {
      const { id, name } = functionCall as { id: string; name: string };
      return { functionResponse: { id, name, response: { output: 'found' } } };
    });
    contents.push({ role: 'model', parts }, { role: 'user', parts: results });
    await runTurn();
    expect(turns(upstream, 1)[1]?.content).toEqual([thinking, ...calls]);
  });

  test('is complete when the results of parallel calls come in two requests', async () => {
    const { gateway, upstream } = await thinkingGateway([[thinking, ...calls], done]);
    const client = new PlainClient(prompt, false);
    const made = (await client.send(gateway, 'm')).message.tool_calls ?? [];
    client.answer(made.slice(0, 1));
    expect(await client.send(gateway, 'm')).toMatchObject({ status: 200, losses: null });
    client.messages.pop();
    client.answer(made.slice(1));
    expect(await client.send(gateway, 'm')).toMatchObject({ status: 200, losses: null });
    expect(turns(upstream, 1)[1]?.content).toEqual([thinking, ...calls]);
    expect(turns(upstream, 2)[1]?.content).toEqual([thinking, ...calls]);
  });

  test('stands once when a client splits parallel calls over two messages', async () => {
    const { gateway, upstream } = await thinkingGateway([[thinking, ...calls], done]);
    const client = new PlainClient(prompt, false);
    const made = (await client.send(gateway, 'm')).message.tool_calls ?? [];
    client.messages.pop();
    for (const call of made) {
      client.messages.push({ role: 'assistant', content: null, tool_calls: [call] });
      client.answer([call]);
    }
    expect((await client.send(gateway, 'm')).status).toBe(200);
    const sent = turns(upstream, 1).flatMap(({ role, content }) => (role === 'assistant' ? content : []));
    expect(sent).toEqual([thinking, ...calls]);
  });

  test('has its signature again when the client kept the words alone', async () => {
    const { gateway, upstream } = await thinkingGateway([[thinking, ...calls], done]);
    const client = new PlainClient(prompt, false);
    client.answer((await client.send(gateway, 'm')).message.tool_calls ?? []);
    Object.assign(client.messages[1] as object, { reasoning_content: thinking.thinking });
    expect(await client.send(gateway, 'm')).toMatchObject({ status: 200, losses: null });
    expect(turns(upstream, 1)[1]?.content).toEqual([thinking, ...calls]);
  });

  test("is the client's own where the client changed the words: nothing is made up for them", async () => {
    const { gateway, upstream } = await thinkingGateway([[thinking, ...calls], done]);
    const client = new PlainClient(prompt, false);
    client.answer((await client.send(gateway, 'm')).message.tool_calls ?? []);
    Object.assign(client.messages[1] as object, { reasoning_content: 'Other words.' });
    const { status, losses } = await client.send(gateway, 'm');
    expect(status).toBe(200);
    expect(losses).toContain('messages[1].reasoning_content');
    expect(turns(upstream, 1)[1]?.content).toEqual(calls);
  });

  test('is nothing for another key that sends the same calls', async () => {
    const { gateway, upstream } = await thinkingGateway([[thinking, ...calls], done]);
    const client = new PlainClient(prompt, false);
    client.answer((await client.send(gateway, 'm')).message.tool_calls ?? []);
    const { value } = await gateway.apiKeys.create({ name: 'somebody else' });
    expect((await client.send(gateway, 'm', value)).status).toBe(200);
    expect(String(upstream.requests[1]?.body)).not.toContain(signature);
    client.messages.pop();
    expect((await client.send(gateway, 'm')).status).toBe(200);
    expect(turns(upstream, 2)[1]?.content).toEqual([thinking, ...calls]);
  });

  test.each([
    ['older than its time', { ttl: 40 }, true],
    ['larger than the limit', { turnLimit: 1024 }, false],
  ] as const)('is nothing that is %s, and the turn goes on without', async (_what, options, waits) => {
    const long: Part = { ...thinking, thinking: 'Hm. '.repeat(1000) };
    const { gateway, upstream } = await thinkingGateway([[long, ...calls], done], {
      plugins: [vault(options)],
    });
    const client = new PlainClient(prompt, false);
    client.answer((await client.send(gateway, 'm')).message.tool_calls ?? []);
    if (waits) await setTimeout(60);
    expect((await client.send(gateway, 'm')).status).toBe(200);
    expect(turns(upstream, 1)[1]?.content).toEqual(calls);
  });

  test('comes from the database where no copies are held', async () => {
    const { gateway, upstream } = await thinkingGateway([[thinking, ...calls], done], {
      plugins: [vault({ copies: 0 })],
    });
    const client = new PlainClient(prompt, false);
    client.answer((await client.send(gateway, 'm')).message.tool_calls ?? []);
    expect((await client.send(gateway, 'm')).status).toBe(200);
    expect(turns(upstream, 1)[1]?.content).toEqual([thinking, ...calls]);
  });

  test('is its signature on the call it stood on (generateContent)', async () => {
    const signed: Part = {
      functionCall: { id: 'call_Ab12Cd34Ef', name: 'find', args: { q: 'a' } },
      thoughtSignature: signature,
    };
    const second: Part = { functionCall: { id: 'call_Gh56Ij78Kl', name: 'read', args: { q: 'b' } } };
    const upstream = await contentProvider(
      [{ text: 'Hm.', thought: true }, signed, second],
      [{ text: 'Done.' }],
    );
    const gateway = await gatewayWith({
      channels: [gemini({ key: 'k', baseUrl: `${upstream.url}/v1beta`, models: { g: 'gemini-3-pro' } })],
    });
    const client = new PlainClient(prompt, false);
    client.answer((await client.send(gateway, 'g')).message.tool_calls ?? []);
    expect(await client.send(gateway, 'g')).toMatchObject({ status: 200, losses: null });
    expect(turns(upstream, 1)[1]?.parts).toEqual([signed, second]);
  });
});

test('two processes on one database put back what the other has seen', async () => {
  const upstream = await messagesProvider([thinking, ...calls], done);
  const members = `database: '${databaseFile()}', channels: [anthropic({ key: 'k', baseUrl: '${upstream.url}/v1', models: { m: 'claude-sonnet-4-5' } })]`;
  const processes: GatewayProcess[] = [];
  try {
    for (let started = 0; started < 2; started += 1) {
      // oxlint-disable-next-line no-await-in-loop -- both make the key that they share
      processes.push(await startProcess(members));
    }
    const [one, other] = processes as [GatewayProcess, GatewayProcess];
    const client = new PlainClient(prompt, true);
    client.answer((await client.send(one, 'm')).message.tool_calls ?? []);
    expect(await client.send(other, 'm')).toMatchObject({ status: 200, losses: null });
    expect(turns(upstream, 1)[1]?.content).toEqual([thinking, ...calls]);
  } finally {
    for (const { end } of processes) await end();
  }
});

describe('reasoning items', () => {
  const item = {
    id: 'rs_0123456789abcdef',
    type: 'reasoning',
    summary: [
      { type: 'summary_text', text: 'First.' },
      { type: 'summary_text', text: 'Then — 世界.' },
    ],
    encrypted_content: `Enc+/${'e'.repeat(40)}==`,
  };
  const made = {
    id: 'fc_0123456789abcdef',
    type: 'function_call',
    call_id: 'call_Ab12Cd34Ef56',
    name: 'find',
    arguments: '{"q":"a"}',
    status: 'completed',
  };
  const messageOutput = {
    id: 'msg_0123456789abcdef',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Done.', annotations: [] }],
  };

  async function itemProvider(): Promise<ScriptedUpstream> {
    const upstream = await startUpstream((_request, response, count) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({
          id: `resp_${count}`,
          object: 'response',
          created_at: 1,
          status: 'completed',
          model: 'gpt-5',
          output: count === 1 ? [item, made] : [messageOutput],
          usage: {
            input_tokens: 1,
            input_tokens_details: { cached_tokens: 0 },
            output_tokens: 1,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: 2,
          },
        }),
      );
    });
    open.push(upstream);
    return upstream;
  }

  const input = (upstream: ScriptedUpstream, request: number): readonly Part[] =>
    (JSON.parse(String(upstream.requests[request]?.body)) as { input: readonly Part[] }).input;

  test('come back whole to the provider that encrypted them, through a plain client', async () => {
    const upstream = await itemProvider();
    const gateway = await gatewayWith({
      channels: [
        openai({
          key: 'k',
          baseUrl: `${upstream.url}/v1`,
          models: { r: 'gpt-5' },
          traits: { '*': { formats: ['responses'] } },
        }),
      ],
    });
    const client = new PlainClient(prompt, false);
    client.answer((await client.send(gateway, 'r')).message.tool_calls ?? []);
    expect(await client.send(gateway, 'r')).toMatchObject({ status: 200, losses: null });
    expect(input(upstream, 1)[1]).toEqual(item);
    expect(input(upstream, 1)[2]).toMatchObject({ type: 'function_call', call_id: made.call_id });
  });

  test.each([
    ['sends them back', false],
    ['drops them', true],
  ])('of a client that %s give the provider its thinking blocks, once', async (_what, drops) => {
    const { gateway, upstream } = await thinkingGateway([[thinking, ...calls], done]);
    const history: Part[] = [{ role: 'user', content: prompt }];
    const runTurn = async (): Promise<readonly Part[]> => {
      const response = await fetch(`${gateway.url}/v1/responses`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${gateway.key}` },
        body: JSON.stringify({
          model: 'm',
          input: history,
          store: false,
          include: ['reasoning.encrypted_content'],
          reasoning: { effort: 'high', summary: 'auto' },
          tools: tools.map(({ function: called }) => ({ type: 'function', ...called })),
        }),
      });
      const text = await response.text();
      expect([response.status, text]).toEqual([200, text]);
      return (JSON.parse(text) as { output: readonly Part[] }).output;
    };
    const output = await runTurn();
    history.push(...output.filter(({ type }) => !drops || type !== 'reasoning'));
    for (const { type, call_id } of output)
      if (type === 'function_call') history.push({ type: 'function_call_output', call_id, output: 'found' });
    await runTurn();
    expect(turns(upstream, 1)[1]?.content).toEqual([thinking, ...calls]);
  });
});

describe('another model in the middle', () => {
  test('answers without the reasoning, the loss is named, and the first model has it again', async () => {
    const other = await contentProvider([
      { functionCall: { id: 'call_Zz12Yy34Xx', name: 'save', args: { q: 'c' } }, thoughtSignature: 'R1M=' },
    ]);
    const { gateway, upstream } = await thinkingGateway([[thinking, ...calls], done], {
      channels: [gemini({ key: 'k', baseUrl: `${other.url}/v1beta`, models: { g: 'gemini-3-pro' } })],
    });
    const client = new PlainClient(prompt, true);
    client.answer((await client.send(gateway, 'm')).message.tool_calls ?? []);
    const there = await client.send(gateway, 'g');
    expect(there).toMatchObject({ status: 200, losses: 'messages[1].reasoning' });
    expect(String(other.requests[0]?.body)).not.toMatch(/First|Sig\+/);
    client.answer(there.message.tool_calls ?? []);
    const back = await client.send(gateway, 'm');
    expect(back.status).toBe(200);
    expect(back.losses?.split(', ')).toContain('messages[4].reasoning');
    expect(turns(upstream, 1)[1]?.content).toEqual([thinking, ...calls]);
    expect(String(upstream.requests[1]?.body)).not.toContain('R1M=');
  });

  test('does not get a signature that it would refuse, also when the client sends it', async () => {
    const elsewhere = await messagesProvider(done);
    const { gateway, upstream } = await thinkingGateway([[thinking, ...calls], done], {
      channels: [
        anthropic({
          id: 'elsewhere',
          key: 'k',
          baseUrl: `${elsewhere.url}/v1`,
          models: { n: 'claude-like-4-5' },
        }),
      ],
    });
    const messages: unknown[] = [{ role: 'user', content: prompt }];
    const sendCall = async (model: string) => {
      const response = await fetch(`${gateway.url}/v1/messages`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-api-key': gateway.key,
          'anthropic-version': '2023-06-01',
        },
        body: JSON.stringify({
          model,
          max_tokens: 4000,
          thinking: { type: 'enabled', budget_tokens: 1024 },
          messages,
        }),
      });
      const { content } = (await response.json()) as { content: readonly Part[] };
      return { status: response.status, losses: response.headers.get('x-sluice-loss'), content };
    };
    const { content } = await sendCall('m');
    expect(content).toEqual([thinking, ...calls]);
    const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'ok' }));
    messages.push({ role: 'assistant', content }, { role: 'user', content: results });
    const there = await sendCall('n');
    expect(there.status).toBe(200);
    expect(there.losses).toContain('messages[1].content[0]');
    expect(turns(elsewhere, 0)[1]?.content).toEqual(calls);
    expect(await sendCall('m')).toMatchObject({ status: 200, losses: null });
    expect(turns(upstream, 1)[1]?.content).toEqual([thinking, ...calls]);
  });
});

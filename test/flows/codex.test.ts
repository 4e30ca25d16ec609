import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

/*
 * A coding agent that speaks Responses alone: always streams, stores nothing, asks for encrypted reasoning, sends developer messages in
 * place of instructions, keeps its tools in namespaces or in an item of the input, and wants free text for the tool it runs code with.
 */

type Item = Record<string, unknown>;
type Event = Record<string, unknown> & { readonly type: string };

const formats = ['chat-completions', 'messages', 'generate-content', 'responses'] as const;

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({
    channels: formats.map((format) =>
      demo({
        id: format,
        speaks: [format],
        models: { [`via-${format}`]: 'demo', [`thinks-${format}`]: 'demo-thinking' },
      }),
    ),
  });
});
afterAll(() => gateway.close());

const exec = {
  type: 'custom',
  name: 'exec',
  description: 'Runs code',
  format: { type: 'grammar', syntax: 'lark', definition: 'start: /(.|\\n)+/' },
};
const plan = {
  type: 'function',
  name: 'update_plan',
  description: 'Updates the plan',
  strict: false,
  parameters: {
    type: 'object',
    properties: { step: { type: 'string' } },
    required: ['step'],
    additionalProperties: false,
  },
};
const namespace = {
  type: 'namespace',
  name: 'functions',
  description: 'Tools of the agent',
  tools: [exec, plan],
};
const developer = (text: string): Item => ({
  type: 'message',
  role: 'developer',
  content: [{ type: 'input_text', text }],
});
const user = (text: string): Item => ({
  type: 'message',
  role: 'user',
  content: [{ type: 'input_text', text }],
});
/** Fields of every request. */
const always = {
  store: false,
  stream: true,
  tool_choice: 'auto',
  parallel_tool_calls: false,
  include: ['reasoning.encrypted_content'],
  reasoning: { effort: 'medium', summary: 'auto' },
  prompt_cache_key: '0199c5e2-0000-7000-8000-000000000000',
  text: { verbosity: 'low' },
  client_metadata: { originator: 'agent' },
};

/** Turn as the agent collects it: finished items in order, and the terminal event. */
interface Turn {
  readonly items: readonly Item[];
  readonly events: readonly Event[];
  readonly text: string;
}

function turnOf(events: readonly Event[]): Turn {
  expect(events[0]?.type).toBe('response.created');
  expect(events.at(-1)?.type).toBe('response.completed');
  expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
  const items = events
    .filter(({ type }) => type === 'response.output_item.done')
    .map(({ item }) => item as Item);
  expect(events.at(-1)).toMatchObject({ response: { output: items } });
  const text = events
    .map((event) => (event.type === 'response.output_text.delta' ? String(event.delta) : ''))
    .join('');
  return { items, events, text };
}

async function overSse(body: object): Promise<Turn> {
  const response = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      'content-type': 'application/json',
      accept: 'text/event-stream',
      'openai-beta': 'responses=experimental',
      session_id: '0199c5e2-0000-7000-8000-000000000000',
    },
    body: JSON.stringify({ ...always, ...body }),
  });
  const text = await response.text();
  expect({ status: response.status, text }).toMatchObject({ status: 200 });
  const events = text
    .split('\n\n')
    .flatMap((frame) => /^data: (\{.*)$/m.exec(frame)?.[1] ?? [])
    .map((data) => JSON.parse(data) as Event);
  return turnOf(events);
}

/** One connection, on which each request is answered before the next is sent. */
class Socket {
  readonly #socket: WebSocket;
  #events: Event[] = [];
  #done: ((events: Event[]) => void) | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => {
      const event = JSON.parse(data.toString()) as Event;
      this.#events.push(event);
      if (!['response.completed', 'response.failed', 'response.incomplete', 'error'].includes(event.type))
        return;
      this.#done?.(this.#events);
      this.#events = [];
    });
  }

  static async open(): Promise<Socket> {
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/responses`, {
      headers: { authorization: `Bearer ${gateway.key}`, 'openai-beta': 'responses_websockets=2026-02-06' },
    });
    await once(socket, 'open');
    return new Socket(socket);
  }

  respond(body: object): Promise<Event[]> {
    return new Promise((resolve) => {
      this.#done = resolve;
      const { stream: _stream, ...rest } = always;
      this.#socket.send(JSON.stringify({ type: 'response.create', ...rest, ...body }));
    });
  }

  async close(): Promise<void> {
    this.#socket.close();
    await once(this.#socket, 'close');
  }
}

function callIn({ items }: Turn): Item {
  const calls = items.filter(({ type }) => type === 'custom_tool_call' || type === 'function_call');
  expect(calls).toHaveLength(1);
  return calls[0] as Item;
}

/** The id of the response that these events are of. */
function idOf(events: readonly Event[]): string {
  const { response } = events.at(-1) ?? { response: undefined };
  return String((response as { id?: string } | undefined)?.id);
}

const result = (call: Item, output: unknown): Item => ({
  type: call.type === 'custom_tool_call' ? 'custom_tool_call_output' : 'function_call_output',
  call_id: call.call_id,
  output,
});

describe.each(formats)('a coding agent on a %s channel', (format) => {
  const model = `via-${format}`;
  const offered = [
    { where: 'in the list of tools', body: { tools: [namespace, plan] }, input: [] as Item[] },
    {
      where: 'in an item of the input',
      body: {},
      input: [{ type: 'additional_tools', role: 'developer', tools: [namespace] }] as Item[],
    },
  ];

  test.each(offered)('runs code with a free-text tool that stands $where', async ({ body, input }) => {
    const items = [...input, developer('You are an agent.'), user('Please call functions__exec')];
    const first = await overSse({ ...body, model, input: items });
    const call = callIn(first);
    expect(call).toMatchObject({
      type: 'custom_tool_call',
      name: 'exec',
      namespace: 'functions',
      input: expect.stringMatching(/^demo /) as string,
      call_id: expect.stringMatching(/./) as string,
    });
    const last = await overSse({
      ...body,
      model,
      input: [...items, ...first.items, result(call, [{ type: 'input_text', text: 'exit code 0' }])],
    });
    expect(last.text).toBe('functions__exec returned: exit code 0');
  });

  test('calls a function of a namespace and one outside of it', async () => {
    const tools = [namespace, { ...plan, name: 'wait' }];
    for (const [named, name, space] of [
      ['functions__update_plan', 'update_plan', 'functions'],
      ['wait', 'wait', undefined],
    ] as const) {
      const input = [developer('You are an agent.'), user(`Please call ${named}`)];
      const first = await overSse({ model, tools, input });
      const call = callIn(first);
      expect(call).toMatchObject({ type: 'function_call', name });
      expect(call.namespace).toBe(space);
      expect(JSON.parse(String(call.arguments))).toEqual({ step: 'demo step' });
      const last = await overSse({ model, tools, input: [...input, ...first.items, result(call, 'done')] });
      expect(last.text).toBe(`${named} returned: done`);
    }
  });

  test('gets its reasoning back to the provider that made it', async () => {
    const thinker = `thinks-${format}`;
    const input = [developer('You are an agent.'), user('Please call functions__exec')];
    const first = await overSse({ model: thinker, tools: [namespace], input });
    expect(first.items[0]).toMatchObject({ type: 'reasoning' });
    const last = await overSse({
      model: thinker,
      tools: [namespace],
      input: [...input, ...first.items, result(callIn(first), 'exit code 0')],
    });
    expect(last.text).toBe('functions__exec returned: exit code 0');
  });

  test('does the same over one socket: warms up, then sends what is new alone', async () => {
    const socket = await Socket.open();
    try {
      const common = { model, tools: [namespace] };
      const warm = await socket.respond({
        ...common,
        generate: false,
        input: [developer('You are an agent.')],
      });
      expect(warm.at(-1)).toMatchObject({ type: 'response.completed', response: { output: [] } });
      const id = idOf(warm);
      const first = turnOf(
        await socket.respond({
          ...common,
          previous_response_id: id,
          input: [user('Please call functions__exec')],
        }),
      );
      const call = callIn(first);
      expect(call).toMatchObject({ type: 'custom_tool_call', name: 'exec', namespace: 'functions' });
      const second = idOf(first.events);
      const last = turnOf(
        await socket.respond({
          ...common,
          previous_response_id: second,
          input: [result(call, 'exit code 0')],
        }),
      );
      expect(last.text).toBe('functions__exec returned: exit code 0');
    } finally {
      await socket.close();
    }
  });

  test('is told on another connection that what was not stored is gone, and starts anew', async () => {
    const one = await Socket.open();
    const warm = await one.respond({ model, generate: false, input: [developer('You are an agent.')] });
    const id = idOf(warm);
    await one.close();
    const other = await Socket.open();
    try {
      const refused = await other.respond({ model, previous_response_id: id, input: [user('Hello')] });
      expect(refused).toMatchObject([
        { type: 'error', status: 400, error: { code: 'previous_response_not_found' } },
      ]);
      const again = turnOf(
        await other.respond({ model, input: [developer('You are an agent.'), user('Hello')] }),
      );
      expect(again.text).toBe('You said: Hello');
    } finally {
      await other.close();
    }
  });
});

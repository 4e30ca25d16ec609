import { describe, expect, it } from 'vitest';
import type { GatewayError } from '../../../core/sdk/errors.ts';
import type { EncodedRequest } from '../../../core/sdk/format.ts';
import type { Block, ChatRequest, Message } from '../../../core/model/chat.ts';
import type { Reasoning } from '../../../core/model/reasoning.ts';
import type { ModelTraits } from '../../../core/model/traits.ts';
import { codec, failureOf, foreign, target, type JsonObject } from './support.ts';

function encode(
  more: Partial<ChatRequest>,
  traits: ModelTraits = {},
  to: Parameters<typeof target>[0] = {},
): { readonly body: JsonObject; readonly losses: string[]; readonly encoded: EncodedRequest } {
  const where = target({ traits, ...to });
  const encoded = codec.encodeRequest(foreign(more), where);
  return { body: encoded.body, losses: where.losses, encoded };
}

function refusal(more: Partial<ChatRequest>): GatewayError {
  return failureOf(() => encode(more));
}

const user = (...content: Block[]): Message => ({ role: 'user', content, at: 'messages[0]' });
const assistant = (...content: Block[]): Message => ({ role: 'assistant', content, at: 'messages[1]' });
const call = (id: string, more: object = {}): Block => ({
  type: 'tool-call',
  id,
  name: 'f',
  input: '{}',
  at: `messages[1].content[${id}]`,
  ...more,
});
const result = (id: string, ...content: Block[]): Block => ({
  type: 'tool-result',
  id,
  content,
  at: `messages[2].content[${id}]`,
});
const text = (words: string): Block => ({ type: 'text', text: words, at: `text(${words})` });

describe('a conversation that came in another format', () => {
  it('is the golden request', () => {
    const { body, losses } = encode(
      {
        system: [{ role: 'system', content: [text('Answer briefly.')], at: 'system' }],
        messages: [
          user(text('What time is it there?'), {
            type: 'image',
            source: { kind: 'data', mimeType: 'image/png', data: 'iVBO' },
          }),
          assistant(call('call_1', { name: 'get_time', input: '{"tz":"Asia/Tokyo"}' })),
          user(result('call_1', text('{"time":"09:30"}'))),
        ],
        tools: [
          { type: 'function', name: 'get_time', description: 'Time in a zone', schema: { type: 'object' } },
        ],
        toolChoice: { type: 'auto' },
        settings: { maxOutput: 300, reasoning: { effort: 'low' }, parallelTools: false },
      },
      {},
    );
    expect(body).toEqual({
      model: 'm',
      max_completion_tokens: 300,
      reasoning_effort: 'low',
      messages: [
        { role: 'system', content: 'Answer briefly.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What time is it there?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: 'call_1',
              type: 'function',
              function: { name: 'get_time', arguments: '{"tz":"Asia/Tokyo"}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'call_1', content: '{"time":"09:30"}' },
      ],
      tools: [
        {
          type: 'function',
          function: { name: 'get_time', description: 'Time in a zone', parameters: { type: 'object' } },
        },
      ],
      tool_choice: 'auto',
      parallel_tool_calls: false,
    });
    expect(losses).toEqual([]);
  });

  it('goes to the chat path and asks a stream for its usage', () => {
    const { body, encoded } = encode({ stream: true }, {}, { stream: true });
    expect(encoded.path).toBe('/chat/completions');
    expect(body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
    expect(encode({}).body).not.toHaveProperty('stream');
  });

  it('has each tool result right after its call, and every call has one', () => {
    const { body } = encode({
      messages: [
        user(text('Hi')),
        assistant(text('Looking.'), call('a'), call('b'), call('c')),
        user(text('Well?'), result('b', text('2')), result('a', text('1')), result('stray', text('9'))),
        assistant(call('d')),
      ],
    });
    expect(body.messages).toMatchObject([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Looking.' },
      { role: 'tool', tool_call_id: 'b', content: '2' },
      { role: 'tool', tool_call_id: 'a', content: '1' },
      { role: 'tool', tool_call_id: 'c', content: '(no output)' },
      { role: 'user', content: 'Output of stray:\n9' },
      { role: 'user', content: 'Well?' },
      { role: 'assistant' },
      { role: 'tool', tool_call_id: 'd', content: '(no output)' },
    ]);
  });

  it('keeps calls and results together when an id must be spelled anew', () => {
    const id = 'functions.get|time:0';
    const { body, losses } = encode({
      messages: [user(text('Hi')), assistant(call(id)), user(result(id, text('1')))],
    });
    const [, turn, answer] = body.messages as readonly JsonObject[];
    const [made] = (turn?.tool_calls ?? []) as readonly JsonObject[];
    expect(made?.id).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(answer?.tool_call_id).toBe(made?.id);
    expect(losses).toEqual([]);
  });

  it('shows the images of a tool result in the next user turn', () => {
    const image: Block = { type: 'image', source: { kind: 'url', url: 'https://example.com/a.png' } };
    const { body } = encode({
      messages: [
        user(text('Hi')),
        assistant(call('a')),
        user(result('a', text('See:'), image), text('And?')),
      ],
    });
    expect((body.messages as readonly JsonObject[]).slice(2)).toEqual([
      {
        role: 'tool',
        tool_call_id: 'a',
        content: [
          { type: 'text', text: 'See:' },
          { type: 'text', text: '[image: see the next user message]' },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Output of a:' },
          { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
          { type: 'text', text: 'And?' },
        ],
      },
    ]);
  });

  it('says in words that a call failed, and reports that the mark is gone', () => {
    const failed = { ...result('a', text('no such city')), failed: true } as Block;
    const { body, losses } = encode({ messages: [user(text('Hi')), assistant(call('a')), user(failed)] });
    expect((body.messages as readonly JsonObject[])[2]).toMatchObject({ content: 'Error: no such city' });
    expect(losses).toEqual(['messages[2].content[a].failed']);
  });

  it('leaves out what is empty', () => {
    const { body } = encode({
      system: [{ role: 'system', content: [], at: 'system' }],
      messages: [user(text('')), user(text('Hi'), text('')), assistant(text('')), user(text('There?'))],
    });
    expect(body.messages).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
      { role: 'user', content: 'There?' },
    ]);
  });

  it('marks where the prompt may be cached, and reports the lifetime and the places that have no mark', () => {
    const cache = { ttl: '1h' };
    const breakpoints = { cacheMark: 'prompt_cache_breakpoint' } as const;
    const { body, losses } = encode(
      {
        messages: [
          user({ type: 'text', text: 'Long', at: 'messages[0].content[0]', cache: {} }),
          assistant(call('a', { cache })),
          user({ ...result('a', text('1')), cache }),
        ],
        tools: [{ type: 'function', name: 'f', at: 'tools[0]', cache }],
      },
      breakpoints,
    );
    expect((body.messages as readonly JsonObject[])[0]).toEqual({
      role: 'user',
      content: [{ type: 'text', text: 'Long', prompt_cache_breakpoint: { mode: 'explicit' } }],
    });
    expect(losses.toSorted()).toEqual([
      'messages[1].content[a].cache',
      'messages[2].content[a].cache.ttl',
      'tools[0].cache',
    ]);
    const long = encode({ messages: [user({ type: 'text', text: 'x', at: 'p', cache })] }, breakpoints);
    expect(long.losses).toEqual(['p.cache.ttl']);
    const strict = encode(
      { messages: [user({ type: 'text', text: 'x', at: 'p', cache })] },
      { refuses: ['cache'] },
    );
    expect(strict.losses).toEqual(['p.cache']);
    expect(strict.body.messages).toEqual([{ role: 'user', content: 'x' }]);
    const unmarked = encode({ messages: [user({ type: 'text', text: 'x', at: 'p', cache })] });
    expect(unmarked.losses).toEqual(['p.cache']);
    expect(unmarked.body.messages).toEqual([{ role: 'user', content: 'x' }]);
    const controlled = encode(
      { messages: [user({ type: 'text', text: 'x', at: 'p', cache })] },
      { cacheMark: 'cache_control' },
    );
    expect(controlled.losses).toEqual([]);
    expect(controlled.body.messages).toEqual([
      {
        role: 'user',
        content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '1h' } }],
      },
    ]);
  });

  it('reports fields that only the other format knows', () => {
    const extra = { messages: { odd: 1, $spelling: 'x' } };
    const { losses } = encode({
      extra: { messages: { context_management: {} } },
      system: [{ role: 'system', content: [text('s')], at: 'system', extra }],
      messages: [{ ...user({ type: 'text', text: 'Hi', at: 'messages[0].content[0]', extra }), extra }],
      tools: [{ type: 'function', name: 'f', at: 'tools[0]', extra }],
    });
    expect(losses.toSorted()).toEqual([
      'context_management',
      'messages[0].content[0].odd',
      'messages[0].odd',
      'system.odd',
      'tools[0].odd',
    ]);
  });

  it('does not send another vendor’s reasoning, and says so', () => {
    const proof = { format: 'messages', kind: 'signature', value: 'c2ln' } as const;
    const reasoning: Block = { type: 'reasoning', text: 'Hm.', proof, at: 'messages[1].content[0]' };
    const turns = [user(text('Hi')), assistant(reasoning, call('a')), user(result('a', text('1')))];
    const plain = encode({ messages: turns });
    expect(JSON.stringify(plain.body)).not.toMatch(/Hm\.|c2ln/);
    expect(plain.losses).toEqual(['messages[1].content[0]']);
    const replayed = encode({ messages: turns }, { replaysReasoning: true });
    expect((replayed.body.messages as readonly JsonObject[])[1]).toMatchObject({ reasoning_content: 'Hm.' });
    expect(replayed.losses).toEqual(['messages[1].content[0].proof']);
    const tagged = encode({ messages: turns }, { reasoning: 'object' });
    expect((tagged.body.messages as readonly JsonObject[])[1]).toMatchObject({
      reasoning_details: [
        { type: 'reasoning.text', text: 'Hm.', signature: 'c2ln', format: 'anthropic-claude-v1', index: 0 },
      ],
    });
    expect(tagged.losses).toEqual([]);
  });

  it('speaks a system message in the middle as the model’s traits want it', () => {
    const messages: Message[] = [
      user(text('Hi')),
      { role: 'system', content: [text('In French.')], at: 'messages[1]' },
    ];
    expect(encode({ messages }).body.messages).toMatchObject([{}, { role: 'system', content: 'In French.' }]);
    expect(encode({ messages }, { systemRole: 'developer' }).body.messages).toMatchObject([
      {},
      { role: 'developer' },
    ]);
    const wrapped = encode({ messages }, { midSystem: false });
    expect(wrapped.body.messages).toMatchObject([
      {},
      { role: 'user', content: '<system>In French.</system>' },
    ]);
    expect(wrapped.losses).toEqual(['messages[1].role']);
  });
});

describe('content that this format cannot carry', () => {
  const opaque: Block = {
    type: 'opaque',
    format: 'messages',
    value: { type: 'search_result' },
    at: 'messages[0].content[0]',
  };
  const file: Block = {
    type: 'file',
    source: { kind: 'file', id: 'file_1', format: 'messages' },
    at: 'messages[0].content[0]',
  };
  const link: Block = {
    type: 'file',
    source: { kind: 'url', url: 'https://a/b.pdf' },
    at: 'messages[0].content[0]',
  };

  it.each([
    ['an unknown block', opaque],
    ['a file id of another vendor', file],
    ['a document by URL', link],
  ])('%s is refused by its path', (_what, block) => {
    expect(refusal({ messages: [user(block)] })).toMatchObject({
      status: 400,
      code: 'unsupported_content',
      param: 'messages[0].content[0]',
    });
  });

  it('an image of the model’s own is refused', () => {
    const image: Block = {
      type: 'image',
      source: { kind: 'data', data: 'AA', mimeType: 'image/png' },
      at: 'messages[1].content[0]',
    };
    expect(refusal({ messages: [user(text('Hi')), assistant(image)] }).param).toBe('messages[1].content[0]');
  });

  it('is dropped and reported where the operator chose so', () => {
    const { body, losses } = encode({ messages: [user(opaque, text('Hi'))] }, {}, { unsupported: 'drop' });
    expect(body.messages).toEqual([{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }]);
    expect(losses).toEqual(['messages[0].content[0]']);
  });

  it('a hosted tool is refused by name', () => {
    const tool = {
      type: 'opaque',
      name: 'computer_20250124',
      format: 'messages',
      value: { type: 'computer_20250124' },
      at: 'tools[0]',
    } as const;
    const error = refusal({ tools: [tool] });
    expect(error).toMatchObject({ status: 400, code: 'unsupported_tool', param: 'tools[0]' });
    expect(error.message).toContain('computer_20250124');
    expect(refusal({ tools: [{ type: 'code-execution', at: 'tools[0]' }] }).code).toBe('unsupported_tool');
    expect(encode({ tools: [tool] }, {}, { unsupported: 'drop' }).losses).toEqual(['tools[0]']);
  });
});

describe('tools', () => {
  it('get names that the provider allows, and the way back', () => {
    const name = 'files.search/everything-in-a-folder-with-a-name-that-is-much-too-long-for-it';
    const { body, encoded } = encode({
      tools: [{ type: 'function', name }],
      toolChoice: { type: 'tool', name },
      messages: [user(text('Hi')), assistant(call('a', { name })), user(result('a', text('1')))],
    });
    const [tool] = body.tools as readonly { readonly function: { readonly name: string } }[];
    const spelled = tool?.function.name ?? '';
    expect(spelled).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(body.tool_choice).toEqual({ type: 'function', function: { name: spelled } });
    expect(JSON.stringify(body.messages)).toContain(spelled);
    expect(encoded.toolNames?.back(spelled)).toBe(name);
    expect(
      encode({ tools: [{ type: 'function', name: 'a'.repeat(40) }] }, { toolNameLimit: 32 }).body.tools,
    ).toMatchObject([{ function: { name: expect.stringMatching(/^.{32}$/) as string } }]);
  });

  it('that take free text stay so, or become functions where the channel says so', () => {
    const tools = [
      { type: 'custom', name: 'exec', description: 'd', format: { type: 'text' }, at: 'tools[0]' },
    ] as const;
    const messages = [
      user(text('Hi')),
      assistant(call('a', { name: 'exec', input: 'ls', custom: true })),
      user(result('a', text('1'))),
    ];
    const own = encode({ tools, messages, toolChoice: { type: 'tool', name: 'exec' } });
    expect(own.body.tools).toEqual([
      { type: 'custom', custom: { name: 'exec', description: 'd', format: { type: 'text' } } },
    ]);
    expect(own.body.tool_choice).toEqual({ type: 'custom', custom: { name: 'exec' } });
    expect(own.encoded.customTools).toBeUndefined();
    const wrapped = encode(
      { tools, messages, toolChoice: { type: 'tool', name: 'exec' } },
      { refuses: ['customTools'] },
    );
    expect(wrapped.body.tools).toMatchObject([
      { type: 'function', function: { name: 'exec', parameters: { required: ['input'] } } },
    ]);
    expect(wrapped.body.tool_choice).toEqual({ type: 'function', function: { name: 'exec' } });
    expect(JSON.stringify(wrapped.body.messages)).toContain(JSON.stringify('{"input":"ls"}').slice(1, -1));
    expect(wrapped.encoded.customTools).toEqual(['exec']);
    expect(wrapped.losses).toEqual(['tools[0].format']);
  });

  it('of the provider’s own search are a setting', () => {
    expect(encode({ tools: [{ type: 'web-search', at: 'tools[0]' }] }).body).toMatchObject({
      web_search_options: {},
    });
  });

  it('a subset that may be called', () => {
    const tools = [
      { type: 'function', name: 'a' },
      { type: 'function', name: 'b' },
    ] as const;
    expect(
      encode({ tools, toolChoice: { type: 'allowed', mode: 'required', names: ['a'] } }).body.tool_choice,
    ).toEqual({
      type: 'allowed_tools',
      allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'a' } }] },
    });
  });
});

describe('settings', () => {
  it('out of range are moved to the edge, and those without a word here are reported', () => {
    const { body, losses } = encode({
      settings: {
        temperature: 3,
        stop: ['1', '2', '3', '4', '5'],
        serviceTier: 'standard_only',
        topLogprobs: 40,
        choices: 2,
        user: 'u',
      },
    });
    expect(body).toMatchObject({
      temperature: 2,
      stop: ['1', '2', '3', '4'],
      top_logprobs: 20,
      logprobs: true,
      n: 2,
      user: 'u',
    });
    expect(body).not.toHaveProperty('service_tier');
    expect(losses.toSorted()).toEqual([
      'settings.serviceTier',
      'settings.stop',
      'settings.temperature',
      'settings.topLogprobs',
    ]);
  });

  it('that the model refuses are dropped and reported, also of this format', () => {
    const body = {
      model: 'm',
      messages: [{ role: 'user', content: 'Hi' }],
      temperature: 0.5,
      top_k: 4,
      reasoning_effort: 'low',
      stop: 'a',
      max_tokens: 5,
    };
    const to = target({ traits: { refuses: ['temperature', 'topK', 'reasoning', 'stop', 'maxOutput'] } });
    expect(codec.encodeRequest(codec.decodeRequest(body, {}), to).body).toEqual({
      model: 'm',
      messages: body.messages,
    });
    expect(to.losses.toSorted()).toEqual([
      'settings.maxOutput',
      'settings.reasoning',
      'settings.stop',
      'settings.temperature',
      'settings.topK',
    ]);
  });

  it('the output limit stands in the field that the model wants', () => {
    expect(encode({ settings: { maxOutput: 5 } }).body).toMatchObject({ max_completion_tokens: 5 });
    expect(encode({ settings: { maxOutput: 5 } }, { outputLimitField: 'max_tokens' }).body).toMatchObject({
      max_tokens: 5,
    });
    const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 };
    const to = target({ traits: { outputLimitField: 'max_completion_tokens' } });
    expect(codec.encodeRequest(codec.decodeRequest(body, {}), to).body).toEqual({
      model: 'm',
      messages: body.messages,
      max_completion_tokens: 5,
    });
  });

  it('a schema gets the name that the official API insists on', () => {
    const schema = { type: 'object' };
    const { body } = encode({ settings: { responseFormat: { type: 'json-schema', schema } } });
    expect(body.response_format).toEqual({ type: 'json_schema', json_schema: { name: 'response', schema } });
    expect(encode({ settings: { responseFormat: { type: 'json' } } }).body.response_format).toEqual({
      type: 'json_object',
    });
  });

  it('a forced tool stands in for a schema where the model has none', () => {
    const schema = { type: 'object' };
    const settings = { responseFormat: { type: 'json-schema', schema } } as const;
    const { body, encoded } = encode({ settings }, { jsonSchema: false });
    expect(body).toMatchObject({
      tools: [{ function: { name: 'json_output', parameters: schema } }],
      tool_choice: { function: { name: 'json_output' } },
    });
    expect(encoded.unwrapTool).toBe('json_output');
    const busy = encode({ settings, tools: [{ type: 'function', name: 'f' }] }, { jsonSchema: false });
    expect(busy.body.response_format).toEqual({ type: 'json_object' });
    expect(busy.losses).toEqual(['settings.responseFormat']);
  });
});

describe('reasoning is asked for in the words of the model', () => {
  it.each<[Reasoning, ModelTraits, JsonObject, readonly string[]]>([
    [{ effort: 'high' }, {}, { reasoning_effort: 'high' }, []],
    [{ budget: 2000 }, {}, { reasoning_effort: 'low' }, []],
    [{ budget: -1, mode: 'on' }, {}, { reasoning_effort: 'medium' }, ['settings.reasoning.budget']],
    [{ mode: 'off' }, {}, { reasoning_effort: 'none' }, []],
    [
      { mode: 'off' },
      { efforts: ['low', 'high'] },
      { reasoning_effort: 'low' },
      ['settings.reasoning.effort'],
    ],
    [
      { effort: 'xhigh' },
      { efforts: ['low', 'medium', 'high'] },
      { reasoning_effort: 'high' },
      ['settings.reasoning.effort'],
    ],
    [
      { effort: 'minimal' },
      { efforts: ['low', 'high'] },
      { reasoning_effort: 'low' },
      ['settings.reasoning.effort'],
    ],
    [{ mode: 'adaptive' }, {}, {}, ['settings.reasoning.mode']],
    [{ mode: 'adaptive', effort: 'low' }, {}, { reasoning_effort: 'low' }, []],
    [{ effort: 'low', show: true }, {}, { reasoning_effort: 'low' }, ['settings.reasoning.show']],
    [
      { effort: 'low', show: true, display: 'summarized' },
      {},
      { reasoning_effort: 'low' },
      ['settings.reasoning.display'],
    ],
    [
      { effort: 'high' },
      { reasoning: 'thinking', efforts: ['none', 'low', 'high'] },
      { thinking: { type: 'enabled' }, reasoning_effort: 'high' },
      [],
    ],
    [
      { effort: 'none' },
      { reasoning: 'thinking', efforts: ['none', 'low', 'high'] },
      { thinking: { type: 'disabled' } },
      [],
    ],
    [{ mode: 'on' }, { reasoning: 'thinking' }, { thinking: { type: 'enabled' } }, []],
    [
      { mode: 'on' },
      { reasoning: 'thinking', thinkingType: 'adaptive' },
      { thinking: { type: 'adaptive' } },
      [],
    ],
    [
      { mode: 'on' },
      { reasoning: 'template', templateMember: 'chat_template_args' },
      { chat_template_args: { enable_thinking: true } },
      [],
    ],
    [
      { effort: 'low' },
      { reasoning: 'thinking', efforts: [] },
      { thinking: { type: 'enabled' } },
      ['settings.reasoning.effort'],
    ],
    [
      { effort: 'low', show: false },
      { reasoning: 'object' },
      { reasoning: { effort: 'low', exclude: true } },
      [],
    ],
    [{ budget: 5000 }, { reasoning: 'object' }, { reasoning: { max_tokens: 5000 } }, []],
    [{ mode: 'off' }, { reasoning: 'object' }, { reasoning: { enabled: false } }, []],
    [{ mode: 'adaptive' }, { reasoning: 'object' }, { reasoning: { enabled: true } }, []],
    [{ effort: 'low' }, { reasoning: 'none' }, {}, ['settings.reasoning']],
  ])('%j with %j', (reasoning, traits, expected, lost) => {
    const { body, losses } = encode({ settings: { reasoning } }, traits);
    const { model: _, messages: __, ...rest } = body;
    expect(rest).toEqual(expected);
    expect(losses).toEqual(lost);
  });

  it('keeps the client’s own spelling while the model takes it, and changes it when a plugin changed the wish', () => {
    const body = {
      model: 'm',
      messages: [{ role: 'user', content: 'Hi' }],
      thinking: { type: 'enabled' },
      reasoning_effort: 'high',
    };
    const request = codec.decodeRequest(body, {});
    expect(codec.encodeRequest(request, target()).body).toEqual(body);
    expect(
      codec.encodeRequest(request, target({ traits: { reasoning: 'thinking', efforts: ['low', 'high'] } }))
        .body,
    ).toEqual(body);
    expect(codec.encodeRequest(request, target({ traits: { reasoning: 'object' } })).body).toEqual({
      model: 'm',
      messages: body.messages,
      reasoning: { effort: 'high' },
    });
    const changed: ChatRequest = { ...request, settings: { reasoning: { effort: 'low' } } };
    expect(codec.encodeRequest(changed, target()).body).toEqual({
      model: 'm',
      messages: body.messages,
      reasoning_effort: 'low',
    });
  });
});

/** The request with its blocks changed, or taken out, as a plugin would. */
function editBlocks(request: ChatRequest, change: (block: Block) => Block | undefined): ChatRequest {
  const messages: Message[] = [];
  for (const message of request.messages) {
    messages.push({ ...message, content: message.content.flatMap((block) => change(block) ?? []) });
  }
  return { ...request, messages };
}

describe('a request of this format', () => {
  const body = {
    model: 'm',
    messages: [
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ],
  };

  it('speaks instructions in the role that the model wants, where it says so', () => {
    const request = codec.decodeRequest(body, {});
    expect(
      codec.encodeRequest(request, target({ traits: { systemRole: 'system' } })).body.messages,
    ).toMatchObject([{ role: 'system' }, {}]);
  });

  it('does not take back a reasoning that a plugin removed, nor one that it edited', () => {
    const history = {
      model: 'm',
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: 'Yo',
          reasoning: 'secret',
          reasoning_details: [{ type: 'reasoning.text', text: 'secret', format: 'unknown', index: 0 }],
        },
        { role: 'user', content: 'Hi' },
      ],
    };
    const request = codec.decodeRequest(history, {});
    const removed = editBlocks(request, (block) => (block.type === 'reasoning' ? undefined : block));
    expect(JSON.stringify(codec.encodeRequest(removed, target()).body)).not.toMatch(/secret|reasoning/);
    const edited = editBlocks(request, (block) =>
      block.type === 'reasoning' ? { ...block, text: '***' } : block,
    );
    const sent = JSON.stringify(codec.encodeRequest(edited, target()).body);
    expect(sent).not.toContain('secret');
    expect(sent.match(/\*\*\*/g)).toHaveLength(2);
  });

  it('does not send a proof that the gateway sealed for another vendor', () => {
    const sealed = `gw1.${Buffer.from(JSON.stringify({ f: 'another', k: 'signature', v: 'x' })).toString('base64url')}`;
    const history = {
      model: 'm',
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: 'Yo',
          reasoning_content: 'Hm',
          reasoning_details: [
            { type: 'reasoning.text', text: '', signature: sealed, format: 'unknown', index: 0 },
          ],
        },
      ],
    };
    const request = codec.decodeRequest(history, {});
    expect(request.messages[1]?.content[0]).toMatchObject({
      type: 'reasoning',
      text: 'Hm',
      proof: { format: 'another', kind: 'signature', value: 'x' },
    });
    const to = target();
    expect(JSON.stringify(codec.encodeRequest(request, to).body)).not.toContain('gw1.');
    expect(to.losses).toEqual(['messages[1].reasoning_details[0].proof']);
  });

  it('passes its beta header on', () => {
    const to = target({ headers: { 'openai-beta': 'x=1', cookie: 'no' } });
    expect(codec.encodeRequest(codec.decodeRequest(body, {}), to).headers).toEqual({ 'openai-beta': 'x=1' });
    expect(codec.passThrough('m', false, { 'openai-beta': 'x=1' })).toEqual({
      path: '/chat/completions',
      headers: { 'openai-beta': 'x=1' },
    });
  });

  it('for a client without a stream over an upstream with one asks for usage', () => {
    expect(codec.encodeRequest(codec.decodeRequest(body, {}), target({ stream: true })).body).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    });
  });
});

import { describe, expect, it } from 'vitest';
import type { Block, ChatSettings, Message, Tool } from '../../../core/model/chat.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import type { ModelTraits } from '../../../core/model/traits.ts';
import { encode, foreign, refusal } from './support.ts';

const text = (value: string, at = 'messages[0].content[0]'): Block => ({ type: 'text', text: value, at });
const call = (id: string, input = '{}', name = 'f'): Block => ({
  type: 'tool-call',
  id,
  name,
  input,
  at: `call ${id}`,
});
const result = (id: string, value: string): Block => ({
  type: 'tool-result',
  id,
  content: [{ type: 'text', text: value }],
  plain: true,
  at: `result ${id}`,
});
const user = (...content: Block[]): Message => ({ role: 'user', content, at: 'messages[0]' });
const assistant = (...content: Block[]): Message => ({ role: 'assistant', content, at: 'messages[1]' });
const tool = (...content: Block[]): Message => ({ role: 'tool', content, at: 'messages[2]' });
const system = (value: string, at: string): Message => ({
  role: 'system',
  content: [text(value, `${at}.content`)],
  plain: true,
  at,
});
const f: Tool = { type: 'function', name: 'f', at: 'tools[0]' };

function settings(given: ChatSettings, traits: ModelTraits = {}) {
  return encode(foreign({ settings: given }), { traits });
}

const one = (block: Block, unsupported: 'refuse' | 'drop' = 'refuse') => {
  const { body, losses } = encode(foreign({ messages: [user(text('See'), { ...block, at: 'P' })] }), {
    unsupported,
  });
  return { wire: (body.messages as { content: JsonObject[] }[])[0]?.content[1], losses };
};

const tools = (list: readonly Tool[], more: Partial<Parameters<typeof foreign>[0]> = {}, target = {}) =>
  encode(foreign({ tools: list, ...more }), target);

describe('the history of another format', () => {
  it('is the golden example', () => {
    const { body, losses } = encode(
      foreign({
        system: [system('Answer briefly.', 'messages[0]')],
        messages: [
          user(text('What time is it there?'), {
            type: 'image',
            source: { kind: 'data', data: 'iVBO', mimeType: 'image/png' },
          }),
          assistant(call('call_1', '{"tz":"Asia/Tokyo"}', 'get_time')),
          tool(result('call_1', '{"time":"09:30"}')),
        ],
        tools: [
          {
            type: 'function',
            name: 'get_time',
            description: 'Time in a zone',
            schema: { type: 'object', properties: { tz: { type: 'string' } }, required: ['tz'] },
          },
        ],
        toolChoice: { type: 'auto' },
        settings: { maxOutput: 300, reasoning: { effort: 'low' }, parallelTools: false },
      }),
      { traits: { reasoning: 'adaptive' } },
    );
    expect(losses).toEqual([]);
    expect(body).toEqual({
      model: 'm',
      max_tokens: 300,
      system: 'Answer briefly.',
      thinking: { type: 'adaptive' },
      output_config: { effort: 'low' },
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What time is it there?' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBO' } },
          ],
        },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'call_1', name: 'get_time', input: { tz: 'Asia/Tokyo' } }],
        },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'call_1', content: '{"time":"09:30"}' }],
        },
      ],
      tools: [
        {
          name: 'get_time',
          description: 'Time in a zone',
          input_schema: { type: 'object', properties: { tz: { type: 'string' } }, required: ['tz'] },
        },
      ],
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    });
  });

  it('has all results of a step in one message, in the order of the calls and before other words', () => {
    const { body } = encode(
      foreign({
        messages: [
          user(text('Go')),
          assistant(call('a'), call('b'), call('c')),
          tool(result('c', '3')),
          tool(result('a', '1')),
          user(text('And?')),
        ],
        tools: [f],
      }),
    );
    expect((body.messages as JsonObject[])[2]).toEqual({
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'a', content: '1' },
        { type: 'tool_result', tool_use_id: 'b', content: '(no result)', is_error: true },
        { type: 'tool_result', tool_use_id: 'c', content: '3' },
        { type: 'text', text: 'And?' },
      ],
    });
  });

  it('has results right behind their calls, whatever came between', () => {
    const { body } = encode(
      foreign({
        messages: [
          user(text('Go')),
          assistant(call('a')),
          system('Note.', 'messages[2]'),
          tool(result('a', '1')),
          assistant(text('Done')),
          assistant(call('a')),
          tool(result('a', '2')),
        ],
        tools: [f],
      }),
    );
    expect(
      (body.messages as JsonObject[]).map(
        ({ role, content }) => `${String(role)} ${JSON.stringify(content)}`,
      ),
    ).toEqual([
      'user [{"type":"text","text":"Go"}]',
      'assistant [{"type":"tool_use","id":"a","name":"f","input":{}}]',
      'user [{"type":"tool_result","tool_use_id":"a","content":"1"}]',
      'system "Note."',
      'assistant [{"type":"text","text":"Done"},{"type":"tool_use","id":"a","name":"f","input":{}}]',
      'user [{"type":"tool_result","tool_use_id":"a","content":"2"}]',
    ]);
  });

  it('with a result that answers no call is refused', () => {
    expect(
      refusal(() => encode(foreign({ messages: [user(text('Go')), tool(result('zzz', '1'))] }))).param,
    ).toBe('result zzz');
  });

  it('with an open call at its end gets an answer to it', () => {
    const { body } = encode(foreign({ messages: [user(text('Go')), assistant(call('a'))], tools: [f] }));
    expect((body.messages as JsonObject[]).at(-1)?.role).toBe('user');
  });

  it('merges neighbours, drops empty words and the turns that only had them', () => {
    const { body, losses } = encode(
      foreign({ messages: [user(text('One')), assistant(text('')), user(text('Two'), text(''))] }),
    );
    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'One' },
          { type: 'text', text: 'Two' },
        ],
      },
    ]);
    expect(losses).toEqual([]);
  });

  it('that begins with the model gets a user who says next to nothing, and that is reported', () => {
    const { body, losses } = encode(foreign({ messages: [assistant(text('Welcome!')), user(text('Hi'))] }));
    expect((body.messages as JsonObject[])[0]).toEqual({ role: 'user', content: '.' });
    expect(losses).toEqual(['messages[1]']);
  });

  it('of nothing but instructions is said by the user', () => {
    const { body, losses } = encode(foreign({ system: [system('Say hi.', 'messages[0]')], messages: [] }));
    expect(body).toMatchObject({ messages: [{ role: 'user', content: 'Say hi.' }] });
    expect(body.system).toBeUndefined();
    expect(losses).toEqual(['messages[0].role']);
  });

  it('keeps instructions in the middle, or wraps them for models that take none there', () => {
    const request = foreign({
      messages: [user(text('Hi')), system('Be kind.', 'messages[1]'), user(text('So?'))],
    });
    expect(encode(request).body.messages).toMatchObject([
      { role: 'user' },
      { role: 'system', content: 'Be kind.' },
      { role: 'user' },
    ]);
    const { body, losses } = encode(request, { traits: { midSystem: false } });
    expect(body.messages).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Hi' },
          { type: 'text', text: '<system>Be kind.</system>' },
          { type: 'text', text: 'So?' },
        ],
      },
    ]);
    expect(losses).toEqual(['messages[1].role']);
  });

  it("loses trailing space of words put into the model's mouth, which providers refuse", () => {
    const { body, losses } = encode(foreign({ messages: [user(text('Hi')), assistant(text('Well, \n'))] }));
    expect(body.messages).toMatchObject([{}, { content: [{ text: 'Well,' }] }]);
    expect(losses).toEqual(['messages[1]']);
  });

  it("never shows one vendor's thinking to another as its own", () => {
    const proof = { format: 'generate-content', kind: 'signature', value: 's' } as const;
    const own = { format: 'messages', kind: 'signature', value: 'Eq' } as const;
    const hidden = { format: 'messages', kind: 'encrypted', value: 'Em' } as const;
    const { body, losses } = encode(
      foreign({
        messages: [
          user(text('Hi')),
          assistant(
            { type: 'reasoning', text: 'unsigned', at: 'r0' },
            { type: 'reasoning', text: 'foreign', proof, at: 'r1' },
            { type: 'reasoning', text: 'mine', proof: own, at: 'r2' },
            { type: 'reasoning', text: '', proof: hidden, at: 'r3' },
            { type: 'text', text: 'Hello', proof, at: 't' },
          ),
          user(text('So?')),
        ],
      }),
    );
    expect((body.messages as JsonObject[])[1]?.content).toEqual([
      { type: 'thinking', thinking: 'mine', signature: 'Eq' },
      { type: 'redacted_thinking', data: 'Em' },
      { type: 'text', text: 'Hello' },
    ]);
    expect(losses).toEqual(['r0', 'r1', 'r1.proof', 't.proof']);
  });

  it('re-spells ids that a provider refuses, the same way everywhere', () => {
    const { body, losses } = encode(
      foreign({
        messages: [user(text('Go')), assistant(call('call|1:x')), tool(result('call|1:x', '1'))],
        tools: [f],
      }),
    );
    const [, calls, results] = body.messages as { content: JsonObject[] }[];
    expect(calls?.content[0]?.id).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(results?.content[0]?.tool_use_id).toBe(calls?.content[0]?.id);
    expect(losses).toEqual([]);
  });

  it.each([
    ['', {}],
    ['{"a":1}', { a: 1 }],
    ['{broken', { _raw: '{broken' }],
    ['[1]', { _raw: '[1]' }],
  ])("a call's input %j becomes an object", (input, expected) => {
    const { body } = encode(
      foreign({
        messages: [user(text('Go')), assistant(call('a', input)), tool(result('a', '1'))],
        tools: [f],
      }),
    );
    expect((body.messages as { content: JsonObject[] }[])[1]?.content[0]?.input).toEqual(expected);
  });
});

describe('content of another format', () => {
  it.each<[string, Block, JsonObject, string[]]>([
    [
      'jpg',
      { type: 'image', source: { kind: 'data', data: '/9j/', mimeType: 'image/jpg' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: '/9j/' } },
      [],
    ],
    [
      'image address',
      { type: 'image', source: { kind: 'url', url: 'https://a.example/x.png' }, detail: 'low' },
      { type: 'image', source: { type: 'url', url: 'https://a.example/x.png' } },
      ['P.detail'],
    ],
    [
      'data address',
      { type: 'image', source: { kind: 'url', url: 'data:image/png;base64,iVBO' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBO' } },
      [],
    ],
    [
      'PDF',
      { type: 'file', source: { kind: 'data', data: 'JVBERi0', mimeType: 'application/pdf' }, name: 'a.pdf' },
      {
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0' },
        title: 'a.pdf',
      },
      [],
    ],
    [
      'PDF without a type',
      { type: 'file', source: { kind: 'data', data: 'JVBERi0', mimeType: 'application/octet-stream' } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0' } },
      [],
    ],
    [
      'PDF address',
      { type: 'file', source: { kind: 'url', url: 'https://a.example/a.pdf' } },
      { type: 'document', source: { type: 'url', url: 'https://a.example/a.pdf' } },
      [],
    ],
    [
      'text file',
      {
        type: 'file',
        source: {
          kind: 'data',
          data: Buffer.from('Grüße').toString('base64'),
          mimeType: 'text/plain; charset=utf-8',
        },
      },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Grüße' } },
      [],
    ],
    [
      'markdown',
      {
        type: 'file',
        source: { kind: 'data', data: Buffer.from('# A').toString('base64'), mimeType: 'text/markdown' },
      },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: '# A' } },
      ['P.mimeType'],
    ],
    [
      'image sent as a file',
      { type: 'file', source: { kind: 'data', data: 'iVBO', mimeType: 'image/png' }, name: 'a.png' },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBO' } },
      ['P.name'],
    ],
    [
      'cache mark',
      { type: 'text', text: 'x', cache: { ttl: '1h' } },
      { type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '1h' } },
      [],
    ],
    [
      'cache mark of another length',
      { type: 'text', text: 'x', cache: { ttl: '24h' } },
      { type: 'text', text: 'x', cache_control: { type: 'ephemeral' } },
      ['P.cache'],
    ],
    [
      'citation of another vendor',
      { type: 'text', text: 'x', citations: [{ url: 'https://a.example' }] },
      { type: 'text', text: 'x' },
      ['P.citations'],
    ],
    ['refusal', { type: 'refusal', text: 'No.' }, { type: 'text', text: 'No.' }, ['P']],
    [
      'field that only another format knows',
      { type: 'text', text: 'x', extra: { 'chat-completions': { odd: 1, $spelt: 1 } } },
      { type: 'text', text: 'x' },
      ['P.odd'],
    ],
  ])('%s', (_name, block, expected, lost) => {
    const { wire, losses } = one(block);
    expect(wire).toEqual(expected);
    expect(losses).toEqual(lost);
  });

  it.each<[string, Block]>([
    ['audio', { type: 'audio', source: { kind: 'data', data: 'AA', mimeType: 'audio/wav' } }],
    ['video', { type: 'video', source: { kind: 'url', url: 'https://a.example/a.mp4' } }],
    ['image/tiff', { type: 'image', source: { kind: 'data', data: 'AA', mimeType: 'image/tiff' } }],
    ['application/zip', { type: 'file', source: { kind: 'data', data: 'AA', mimeType: 'application/zip' } }],
    ['file id', { type: 'file', source: { kind: 'file', id: 'file-1', format: 'chat-completions' } }],
    ['generate-content', { type: 'opaque', format: 'generate-content', value: { executableCode: {} } }],
  ])('%s is refused by its path, or dropped where the operator says so', (what, block) => {
    const error = refusal(() => one(block));
    expect(error.code).toBe('unsupported_content');
    expect(error.param).toBe('P');
    expect(error.message).toContain(what);
    expect(one(block, 'drop')).toEqual({ wire: undefined, losses: ['P'] });
  });

  it('pictures by the model have no place in its turns', () => {
    const image: Block = {
      type: 'image',
      source: { kind: 'data', data: 'iVBO', mimeType: 'image/png' },
      at: 'P',
    };
    expect(refusal(() => encode(foreign({ messages: [user(text('Draw')), assistant(image)] }))).param).toBe(
      'P',
    );
  });
});

describe('tools of another format', () => {
  it('get an object schema', () => {
    expect(
      tools([f, { type: 'function', name: 'g', schema: { properties: {} }, strict: true }]).body.tools,
    ).toEqual([
      { name: 'f', input_schema: { type: 'object', properties: {} } },
      { name: 'g', input_schema: { type: 'object', properties: {} }, strict: true },
    ]);
  });

  it('of free text are wrapped, and the reply can unwrap them', () => {
    const custom: Tool = {
      type: 'custom',
      name: 'exec',
      description: 'Runs',
      format: { type: 'grammar' },
      at: 'tools[0]',
    };
    const { body, customTools, losses } = tools([custom]);
    expect(body.tools).toEqual([
      {
        name: 'exec',
        description: 'Runs',
        input_schema: { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] },
      },
    ]);
    expect(customTools).toEqual(['exec']);
    expect(losses).toEqual(['tools[0].format']);
    const history = encode(
      foreign({
        messages: [
          user(text('Go')),
          assistant({ type: 'tool-call', id: 'a', name: 'exec', input: 'ls', custom: true }),
          tool(result('a', 'x')),
        ],
        tools: [custom],
      }),
    );
    expect((history.body.messages as { content: JsonObject[] }[])[1]?.content[0]?.input).toEqual({
      input: 'ls',
    });
  });

  it('that the provider runs become its own', () => {
    expect(
      tools([
        { type: 'web-search', extra: { 'generate-content': { dynamic: 1 } }, at: 'tools[0]' },
        { type: 'code-execution' },
      ]),
    ).toMatchObject({
      body: {
        tools: [
          { type: 'web_search_20250305', name: 'web_search' },
          { type: 'code_execution_20250825', name: 'code_execution' },
        ],
      },
      losses: ['tools[0].dynamic'],
    });
  });

  it('that nobody else knows are refused by name', () => {
    const odd: Tool = { type: 'opaque', name: 'file_search', format: 'responses', value: {}, at: 'tools[0]' };
    const error = refusal(() => tools([odd]));
    expect([error.code, error.param]).toEqual(['unsupported_tool', 'tools[0]']);
    expect(error.message).toContain('file_search');
    expect(tools([odd, f], {}, { unsupported: 'drop' }).losses).toEqual(['tools[0]']);
  });

  it('with odd names are renamed, and the reply can name them back', () => {
    const { body, toolNames } = tools([{ type: 'function', name: 'files.read file' }], {
      toolChoice: { type: 'tool', name: 'files.read file' },
    });
    const [wire] = body.tools as JsonObject[];
    expect(wire?.name).toMatch(/^[a-zA-Z0-9_-]{1,128}$/);
    expect(body.tool_choice).toEqual({ type: 'tool', name: wire?.name });
    expect(toolNames?.back(String(wire?.name))).toBe('files.read file');
  });

  it('are narrowed to the allowed ones', () => {
    const { body, losses } = tools([f, { type: 'function', name: 'g', at: 'tools[1]' }], {
      toolChoice: { type: 'allowed', mode: 'required', names: ['g'] },
    });
    expect(body).toMatchObject({ tools: [{ name: 'g' }], tool_choice: { type: 'any' } });
    expect(losses).toEqual(['tool_choice', 'tools[0]']);
  });

  it.each([
    [{ type: 'auto' } as const, { type: 'auto' }],
    [{ type: 'none' } as const, { type: 'none' }],
    [{ type: 'required' } as const, { type: 'any' }],
    [{ type: 'tool', name: 'f' } as const, { type: 'tool', name: 'f' }],
  ])('choice %j', (toolChoice, expected) => {
    expect(tools([f], { toolChoice }).body.tool_choice).toEqual(expected);
  });

  it('a choice among no tools is not sent', () => {
    const { body, losses } = encode(
      foreign({ toolChoice: { type: 'auto' }, settings: { parallelTools: true } }),
    );
    expect(body.tool_choice).toBeUndefined();
    expect(losses).toEqual(['tool_choice', 'settings.parallelTools']);
  });
});

describe('settings of another format', () => {
  it('the required limit is filled in', () => {
    expect(settings({}).body.max_tokens).toBe(8192);
    expect(settings({}, { outputLimit: 4096 }).body.max_tokens).toBe(4096);
    expect(settings({ maxOutput: 5 }).body.max_tokens).toBe(5);
  });

  it.each<[ChatSettings, JsonObject, string[]]>([
    [{ temperature: 1.7 }, { temperature: 1 }, ['settings.temperature']],
    [{ temperature: 0.5, topP: 0.9 }, { temperature: 0.5 }, ['settings.topP']],
    [{ topP: 0.9, topK: 3 }, { top_p: 0.9, top_k: 3 }, []],
    [{ stop: ['a', ' ', '\n'] }, { stop_sequences: ['a'] }, ['settings.stop']],
    [{ user: 'u' }, { metadata: { user_id: 'u' } }, []],
    [{ serviceTier: 'default' }, { service_tier: 'standard_only' }, []],
    [{ serviceTier: 'flex' }, {}, ['settings.serviceTier']],
    [
      {
        seed: 1,
        logprobs: true,
        choices: 1,
        metadata: { a: 'b' },
        verbosity: 'low',
        promptCacheKey: 'k',
        modalities: ['text'],
      },
      {},
      [
        'settings.seed',
        'settings.logprobs',
        'settings.metadata',
        'settings.verbosity',
        'settings.promptCacheKey',
        'settings.modalities',
      ],
    ],
    [{ responseFormat: { type: 'text' } }, {}, []],
    [
      { responseFormat: { type: 'json-schema', name: 'n', strict: true, schema: { type: 'object' } } },
      { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
      ['settings.responseFormat.name', 'settings.responseFormat.strict'],
    ],
  ])('%j', (given, expected, lost) => {
    const { body, losses } = settings(given);
    const { model: _model, max_tokens: _limit, messages: _messages, ...rest } = body;
    expect(rest).toEqual(expected);
    expect(losses).toEqual(lost);
  });

  it('several answers are refused', () => {
    const error = refusal(() => settings({ choices: 2 }));
    expect([error.code, error.param]).toEqual(['unsupported_value', 'settings.choices']);
    expect(error.message).toContain('settings.choices');
  });

  it('what the model refuses is dropped', () => {
    const { body, losses } = settings(
      { temperature: 0.5, reasoning: { effort: 'low' } },
      { refuses: ['temperature', 'reasoning'] },
    );
    expect(body.temperature).toBeUndefined();
    expect(losses).toEqual(['settings.temperature', 'settings.reasoning']);
  });

  it.each<[string, ChatSettings, ModelTraits, JsonObject, string[]]>([
    [
      'low',
      { maxOutput: 4000, reasoning: { effort: 'low' } },
      {},
      { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 4000 },
      [],
    ],
    [
      'medium',
      { maxOutput: 20_000, reasoning: { effort: 'medium' } },
      {},
      { thinking: { type: 'enabled', budget_tokens: 8192 } },
      [],
    ],
    [
      'more than there is room for',
      { maxOutput: 2000, reasoning: { effort: 'high' } },
      {},
      { thinking: { type: 'enabled', budget_tokens: 1999 } },
      ['settings.reasoning.effort'],
    ],
    [
      'with no limit given',
      { reasoning: { effort: 'high' } },
      {},
      { thinking: { type: 'enabled', budget_tokens: 24_576 }, max_tokens: 32_768 },
      [],
    ],
    [
      "with the model's limit",
      { reasoning: { effort: 'max' } },
      { outputLimit: 32_000 },
      { thinking: { type: 'enabled', budget_tokens: 31_999 }, max_tokens: 32_000 },
      ['settings.reasoning.effort'],
    ],
    [
      'no room at all',
      { maxOutput: 500, reasoning: { effort: 'high' } },
      {},
      { max_tokens: 500 },
      ['settings.reasoning'],
    ],
    ['off', { reasoning: { effort: 'none' } }, {}, { thinking: { type: 'disabled' } }, []],
    ['budget 0', { reasoning: { budget: 0 } }, {}, { thinking: { type: 'disabled' } }, []],
    [
      'dynamic',
      { maxOutput: 10_000, reasoning: { budget: -1, show: true } },
      {},
      { thinking: { type: 'enabled', budget_tokens: 8000, display: 'summarized' } },
      ['settings.reasoning.budget'],
    ],
    [
      'a small budget',
      { maxOutput: 10_000, reasoning: { budget: 100 } },
      {},
      { thinking: { type: 'enabled', budget_tokens: 1024 } },
      ['settings.reasoning.effort'],
    ],
    ['only to see it', { reasoning: { show: true, display: 'auto' } }, {}, {}, ['settings.reasoning.show']],
    [
      'adaptive',
      { reasoning: { effort: 'minimal', show: false } },
      { reasoning: 'adaptive' },
      { thinking: { type: 'adaptive', display: 'omitted' }, output_config: { effort: 'low' } },
      ['settings.reasoning.effort'],
    ],
    [
      'adaptive, by budget',
      { reasoning: { budget: 9000 } },
      { reasoning: 'adaptive' },
      { thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } },
      [],
    ],
    [
      'adaptive, on',
      { reasoning: { mode: 'on' } },
      { reasoning: 'adaptive' },
      { thinking: { type: 'adaptive' } },
      [],
    ],
    [
      'adaptive, fewer efforts',
      { reasoning: { effort: 'max' } },
      { reasoning: 'adaptive', efforts: ['low', 'medium', 'high'] },
      { output_config: { effort: 'high' } },
      ['settings.reasoning.effort'],
    ],
    [
      'adaptive, only higher efforts',
      { reasoning: { effort: 'low' } },
      { reasoning: 'adaptive', efforts: ['high', 'max'] },
      { output_config: { effort: 'high' } },
      ['settings.reasoning.effort'],
    ],
    [
      'a model without it',
      { reasoning: { effort: 'low' } },
      { reasoning: 'none' },
      {},
      ['settings.reasoning'],
    ],
    [
      'beside sampling and force',
      { maxOutput: 4000, temperature: 0.2, topK: 3, reasoning: { effort: 'low' } },
      {},
      { thinking: { type: 'enabled', budget_tokens: 1024 } },
      ['settings.temperature', 'settings.topK'],
    ],
  ])('reasoning: %s', (_name, given, traits, expected, lost) => {
    const { body, losses } = settings(given, traits);
    expect(body).toMatchObject(expected);
    const adaptive = traits.reasoning === 'adaptive';
    expect(body.thinking !== undefined).toBe(expected.thinking !== undefined || adaptive);
    expect(losses).toEqual(lost);
    const resting = body.temperature === undefined && body.top_k === undefined;
    expect(resting).toBe(given.temperature === undefined || lost.includes('settings.temperature'));
  });

  it("an open tool loop without this vendor's thinking goes on without thinking, on models with a budget", () => {
    const request = foreign({
      messages: [user(text('Go')), assistant(call('a')), tool(result('a', '1'))],
      tools: [f],
      settings: { maxOutput: 4000, reasoning: { effort: 'low' } },
    });
    const { body, losses } = encode(request);
    expect(body.thinking).toBeUndefined();
    expect(losses).toEqual(['settings.reasoning']);
    expect(encode(request, { traits: { reasoning: 'adaptive' } }).body.thinking).toEqual({
      type: 'adaptive',
    });
  });

  it('JSON without a schema is asked for in words of its own', () => {
    const { body, losses } = encode(
      foreign({
        system: [system('Be brief.', 'messages[0]')],
        settings: { responseFormat: { type: 'json' } },
      }),
    );
    expect(body.system).toMatchObject([{ type: 'text', text: 'Be brief.' }, { type: 'text' }]);
    expect(losses).toEqual(['settings.responseFormat']);
  });

  it('a schema on a model without them is a forced tool whose call is the answer', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } } as const;
    const format = { type: 'json-schema', name: 'n', schema } as const;
    const alone = settings({ responseFormat: format }, { jsonSchema: false });
    expect(alone.unwrapTool).toBe('json_output');
    expect(alone.body).toMatchObject({
      tools: [{ name: 'json_output', input_schema: schema }],
      tool_choice: { type: 'tool', name: 'json_output' },
    });
    const json: Tool = { type: 'function', name: 'json_output' };
    const beside = encode(
      foreign({ tools: [f, json], settings: { responseFormat: format, parallelTools: false } }),
      { traits: { jsonSchema: false } },
    );
    expect(beside.unwrapTool).toBe('json_output_');
    expect(beside.body.tool_choice).toEqual({ type: 'any', disable_parallel_tool_use: true });
    const thinking = encode(
      foreign({ settings: { maxOutput: 4000, responseFormat: format, reasoning: { effort: 'low' } } }),
      { traits: { jsonSchema: false } },
    );
    expect(thinking.body.tool_choice).toEqual({ type: 'auto' });
    expect(thinking.body.system).toContain('json_output');
  });
});

describe('counting for another format', () => {
  it('sends only what is counted', () => {
    const { body, path, losses } = encode({
      ...foreign({
        tools: [f],
        settings: { maxOutput: 10, temperature: 0.5, reasoning: { effort: 'high' } },
      }),
      operation: 'count-tokens',
    });
    expect(path).toBe('/messages/count_tokens');
    expect(Object.keys(body)).toEqual(['model', 'messages', 'tools', 'thinking']);
    expect(body.thinking).toEqual({ type: 'enabled', budget_tokens: 24_576 });
    expect(losses).toEqual(['settings.maxOutput', 'settings.temperature']);
  });
});

import { describe, expect, it } from 'vitest';
import { sealProof } from '../../../core/formats/_shared/proof.ts';
import type { Block, ChatRequest } from '../../../core/model/chat.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { codec, countCodec, decode, errorOf, foreign, target, thereAndBack } from './support.ts';

function encode(more: Partial<ChatRequest>, to = target()): JsonObject {
  return codec.encodeRequest(foreign(more), to).body;
}

function itemsOf(...content: Block[]): unknown {
  return encode({ messages: [{ role: 'assistant', content }] }).input;
}

const text = (words: string): Block => ({ type: 'text', text: words });
const f = { type: 'function', name: 'f', schema: { type: 'object', properties: { x: {} } } } as const;

describe('a request of another format', () => {
  it('has its one instruction in `instructions`, and is not kept by the provider', () => {
    expect(encode({ system: [{ role: 'system', content: [text('Be brief.')] }] })).toEqual({
      model: 'm',
      instructions: 'Be brief.',
      input: [{ type: 'message', role: 'user', content: 'Hi' }],
      store: false,
    });
  });

  it('keeps a cache mark in instructions by writing them as a message', () => {
    const { instructions, input } = encode(
      {
        system: [
          { role: 'system', content: [{ type: 'text', text: 'Be brief.', cache: {} }, text('Be kind.')] },
        ],
      },
      target({ traits: { cacheMark: 'prompt_cache_breakpoint' } }),
    );
    expect(instructions).toBeUndefined();
    expect(input).toMatchObject([
      {
        role: 'system',
        content: [
          { type: 'input_text', text: 'Be brief.', prompt_cache_breakpoint: { mode: 'explicit' } },
          { type: 'input_text', text: 'Be kind.' },
        ],
      },
      { role: 'user' },
    ]);
  });

  it('gets items of its turns, in order, with an answer for every call', () => {
    expect(
      encode({
        messages: [
          {
            role: 'assistant',
            content: [
              text('One moment.'),
              { type: 'tool-call', id: 'call_1', name: 'f', input: '' },
              { type: 'tool-call', id: 'call_2', name: 'f', input: '{"x":1}' },
              { type: 'tool-call', id: 'call_3', name: 'sh', input: 'ls', custom: true },
            ],
          },
          {
            role: 'user',
            content: [
              { type: 'tool-result', id: 'call_1', content: [text('no')], failed: true, plain: true },
              { type: 'tool-result', id: 'call_3', content: [text('a'), text('b')], custom: true },
              { type: 'tool-result', id: 'stray', content: [text('late')] },
              text('And?'),
            ],
          },
        ],
      }).input,
    ).toEqual([
      { type: 'message', role: 'assistant', content: 'One moment.' },
      { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' },
      { type: 'function_call', call_id: 'call_2', name: 'f', arguments: '{"x":1}' },
      { type: 'function_call_output', call_id: 'call_2', output: '(no output)' },
      { type: 'custom_tool_call', call_id: 'call_3', name: 'sh', input: 'ls' },
      { type: 'function_call_output', call_id: 'call_1', output: 'Error: no' },
      {
        type: 'custom_tool_call_output',
        call_id: 'call_3',
        output: [
          { type: 'input_text', text: 'a' },
          { type: 'input_text', text: 'b' },
        ],
      },
      { type: 'message', role: 'user', content: 'Output of stray:\nlate' },
      { type: 'message', role: 'user', content: 'And?' },
    ]);
  });

  it('sends back only the reasoning that a provider of this format made', () => {
    const to = target();
    const content: Block[] = [
      {
        type: 'reasoning',
        text: 'Hm',
        proof: { format: 'responses', kind: 'encrypted', value: 'x' },
        at: 'a',
      },
      {
        type: 'reasoning',
        text: 'Ha',
        proof: { format: 'messages', kind: 'signature', value: 'y' },
        at: 'b',
      },
      { type: 'reasoning', text: 'Ho', at: 'c' },
      text('Hi'),
    ];
    expect(encode({ messages: [{ role: 'assistant', content }] }, to).input).toEqual([
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm' }], encrypted_content: 'x' },
      { type: 'message', role: 'assistant', content: 'Hi' },
    ]);
    expect(to.losses).toEqual(['b', 'c']);
    const replayed = encode(
      { messages: [{ role: 'assistant', content }] },
      target({ traits: { replaysReasoning: true } }),
    );
    expect(replayed.input).toMatchObject([
      {},
      { content: [{ text: 'Ha' }] },
      { content: [{ text: 'Ho' }] },
      {},
    ]);
  });

  it('says what typed providers require of an answer in several parts, and drops empty text', () => {
    expect(itemsOf(text('a'), text(''), { type: 'refusal', text: 'No.' })).toEqual([
      {
        type: 'message',
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'a', annotations: [] },
          { type: 'refusal', refusal: 'No.' },
        ],
      },
    ]);
    expect(itemsOf(text(''))).toEqual([]);
  });

  it('gives images a detail and bytes a name', () => {
    const content: Block[] = [
      { type: 'image', source: { kind: 'url', url: 'https://example.com/a' } },
      { type: 'file', source: { kind: 'data', data: 'JVBERi0=', mimeType: 'application/pdf' } },
      { type: 'audio', source: { kind: 'data', data: 'aaaa', mimeType: 'audio/mpeg' } },
    ];
    expect(encode({ messages: [{ role: 'user', content }] }).input).toMatchObject([
      {
        content: [
          { type: 'input_image', image_url: 'https://example.com/a', detail: 'auto' },
          { type: 'input_file', filename: 'document.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' },
          { type: 'input_audio', input_audio: { data: 'aaaa', format: 'mp3' } },
        ],
      },
    ]);
  });

  it.each<[string, Block]>([
    ['a video', { type: 'video', source: { kind: 'url', url: 'https://example.com/v' }, at: 'here' }],
    ['sound by URL', { type: 'audio', source: { kind: 'url', url: 'https://example.com/v' }, at: 'here' }],
    [
      "another vendor's file",
      { type: 'file', source: { kind: 'file', id: 'f', format: 'messages' }, at: 'here' },
    ],
    [
      'what only another format knows',
      { type: 'opaque', format: 'messages', value: { type: 'x' }, at: 'here' },
    ],
  ])('is refused for %s, or goes without it where the operator says so', (_what, block) => {
    const messages = [{ role: 'user', content: [text('a'), block, text('b')] }] as const;
    const error = errorOf(() => encode({ messages }));
    expect([error.status, error.param, error.code]).toEqual([400, 'here', 'unsupported_content']);
    const to = target({ unsupported: 'drop' });
    expect(encode({ messages }, to).input).toMatchObject([{ content: [{ text: 'a' }, { text: 'b' }] }]);
    expect(to.losses).toEqual(['here']);
  });

  it('goes without a record that it can do without', () => {
    const block: Block = { type: 'opaque', format: 'messages', value: {}, at: 'here', spare: true };
    const to = target();
    expect(encode({ messages: [{ role: 'assistant', content: [block, text('a')] }] }, to).input).toHaveLength(
      1,
    );
    expect(to.losses).toEqual(['here']);
  });

  it('does not let `strict` be taken for true where nobody asked for it', () => {
    expect(
      encode({ tools: [f, { ...f, name: 'g', strict: true }, { type: 'function', name: 'h' }] }).tools,
    ).toEqual([
      { type: 'function', name: 'f', parameters: f.schema, strict: false },
      { type: 'function', name: 'g', parameters: f.schema, strict: true },
      { type: 'function', name: 'h', parameters: { type: 'object', properties: {} }, strict: false },
    ]);
  });

  it('has search, code and free-text tools in the words of this format, and others refused by name', () => {
    const format = { type: 'grammar', grammar: { syntax: 'regex', definition: 'x' } };
    expect(
      encode({
        tools: [{ type: 'web-search' }, { type: 'code-execution' }, { type: 'custom', name: 'c', format }],
      }).tools,
    ).toEqual([
      { type: 'web_search' },
      { type: 'code_interpreter', container: { type: 'auto' } },
      { type: 'custom', name: 'c', format: { type: 'grammar', syntax: 'regex', definition: 'x' } },
    ]);
    const opaque = {
      type: 'opaque',
      name: 'computer_9',
      format: 'messages',
      value: {},
      at: 'tools[0]',
    } as const;
    const error = errorOf(() => encode({ tools: [opaque] }));
    expect([error.code, error.param]).toEqual(['unsupported_tool', 'tools[0]']);
    expect(error.message).toContain('computer_9');
  });

  it('re-spells names that are not allowed, in tools, choice and calls alike', () => {
    const encoded = codec.encodeRequest(
      foreign({
        tools: [{ type: 'function', name: 'a.b' }],
        toolChoice: { type: 'tool', name: 'a.b' },
        messages: [
          { role: 'user', content: [text('Hi')] },
          { role: 'assistant', content: [{ type: 'tool-call', id: 'x:1', name: 'a.b', input: '{}' }] },
          { role: 'tool', content: [{ type: 'tool-result', id: 'x:1', content: [text('1')] }] },
        ],
      }),
      target(),
    );
    const spelled = encoded.toolNames?.there('a.b');
    expect(spelled).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(encoded.body).toMatchObject({
      tools: [{ name: spelled }],
      tool_choice: { type: 'function', name: spelled },
    });
    const [, call, output] = encoded.body.input as JsonObject[];
    expect(call?.name).toBe(spelled);
    expect(call?.call_id).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(output?.call_id).toBe(call?.call_id);
  });

  it.each<[ChatRequest['toolChoice'], unknown]>([
    [{ type: 'required' }, 'required'],
    [
      { type: 'tool', name: 'f' },
      { type: 'function', name: 'f' },
    ],
    [
      { type: 'tool', name: 'c' },
      { type: 'custom', name: 'c' },
    ],
    [
      { type: 'allowed', mode: 'auto', names: ['f', 'c'] },
      {
        type: 'allowed_tools',
        mode: 'auto',
        tools: [
          { type: 'function', name: 'f' },
          { type: 'custom', name: 'c' },
        ],
      },
    ],
  ])('chooses tools by %j', (toolChoice, written) => {
    const tools = [f, { type: 'custom', name: 'c' }] as const;
    expect(encode({ tools, ...(toolChoice === undefined ? {} : { toolChoice }) }).tool_choice).toEqual(
      written,
    );
  });

  it('chooses nothing where there are no tools', () => {
    const to = target();
    expect(encode({ toolChoice: { type: 'required' } }, to)).not.toHaveProperty('tool_choice');
    expect(to.losses).toEqual(['tool_choice']);
  });

  it('reports the settings that have no place here', () => {
    const to = target();
    encode(
      {
        settings: {
          stop: ['x'],
          seed: 1,
          topK: 3,
          choices: 1,
          frequencyPenalty: 1,
          presencePenalty: 1,
          modalities: ['audio'],
        },
      },
      to,
    );
    expect(to.losses.toSorted()).toEqual(
      ['frequencyPenalty', 'modalities', 'presencePenalty', 'seed', 'stop', 'topK'].map(
        (name) => `settings.${name}`,
      ),
    );
  });

  it('refuses to give several answers', () => {
    expect(() => encode({ settings: { choices: 2 } }, target())).toThrow('settings.choices must be 1');
  });

  it('asks for what the provider takes: the least limit, known tiers, log probabilities', () => {
    const to = target();
    expect(
      encode({ settings: { maxOutput: 1, serviceTier: 'standard_only', topLogprobs: 3 } }, to),
    ).toMatchObject({
      max_output_tokens: 16,
      top_logprobs: 3,
      include: ['message.output_text.logprobs'],
    });
    expect(to.losses).toEqual(['settings.maxOutput', 'settings.serviceTier']);
  });

  it.each<[ChatRequest['settings']['reasoning'], unknown]>([
    [{ effort: 'low' }, { effort: 'low' }],
    [
      { mode: 'on', budget: 8192, show: true },
      { effort: 'medium', summary: 'auto' },
    ],
    [{ mode: 'adaptive', show: true, display: 'summarized' }, { summary: 'auto' }],
    [{ mode: 'off' }, { effort: 'none' }],
    [{ mode: 'on' }, { effort: 'medium' }],
    [{ show: false }, undefined],
  ])('asks for reasoning: %j', (reasoning, written) => {
    expect(encode({ settings: reasoning === undefined ? {} : { reasoning } }).reasoning).toEqual(written);
  });

  it('asks for sealed reasoning only of models that reason', () => {
    const sealed = (traits: object, settings: ChatRequest['settings'] = {}) =>
      encode({ settings }, target({ traits })).include;
    expect(sealed({})).toBeUndefined();
    expect(sealed({}, { reasoning: { effort: 'low' } })).toEqual(['reasoning.encrypted_content']);
    expect(sealed({ reasoning: 'effort' })).toEqual(['reasoning.encrypted_content']);
    expect(sealed({ efforts: ['low'] })).toEqual(['reasoning.encrypted_content']);
    expect(sealed({ reasoning: 'none' }, { reasoning: { effort: 'low' } })).toBeUndefined();
    expect(sealed({}, { reasoning: { mode: 'off' } })).toBeUndefined();
  });

  it('has efforts clamped, and reasoning left out where the model has none', () => {
    const to = target({ traits: { efforts: ['low', 'high'] } });
    expect(encode({ settings: { reasoning: { effort: 'medium' } } }, to).reasoning).toEqual({
      effort: 'low',
    });
    expect(to.losses).toEqual(['settings.reasoning.effort']);
    const none = target({ traits: { reasoning: 'none' } });
    expect(encode({ settings: { reasoning: { effort: 'medium' } } }, none)).not.toHaveProperty('reasoning');
    expect(none.losses).toEqual(['settings.reasoning']);
  });

  it('gets structured output, also from a model that has none', () => {
    const responseFormat = { type: 'json-schema', schema: { type: 'object' } } as const;
    expect(encode({ settings: { responseFormat } }).text).toEqual({
      format: { type: 'json_schema', name: 'response', schema: { type: 'object' } },
    });
    const forced = codec.encodeRequest(
      foreign({ settings: { responseFormat } }),
      target({ traits: { jsonSchema: false } }),
    );
    expect(forced.unwrapTool).toBe('json_output');
    expect(forced.body).toMatchObject({
      tools: [{ name: 'json_output' }],
      tool_choice: { name: 'json_output' },
    });
    const to = target({ traits: { jsonSchema: false } });
    expect(encode({ settings: { responseFormat }, tools: [f] }, to).text).toEqual({
      format: { type: 'json_object' },
    });
    expect(to.losses).toEqual(['settings.responseFormat']);
  });

  it('wraps free-text tools where the channel has functions only', () => {
    const encoded = codec.encodeRequest(
      foreign({
        tools: [{ type: 'custom', name: 'c' }],
        messages: [
          {
            role: 'assistant',
            content: [{ type: 'tool-call', id: 'c1', name: 'c', input: 'ls', custom: true }],
          },
          { role: 'tool', content: [{ type: 'tool-result', id: 'c1', content: [text('x')], custom: true }] },
        ],
      }),
      target({ traits: { refuses: ['customTools'] } }),
    );
    expect(encoded.customTools).toEqual(['c']);
    expect(encoded.body).toMatchObject({
      tools: [{ type: 'function', name: 'c' }],
      input: [{ type: 'function_call', arguments: '{"input":"ls"}' }, { type: 'function_call_output' }],
    });
  });

  it('tells instructions in mid-history as the user where the model takes none', () => {
    const messages = [
      { role: 'user', content: [text('Hi')] },
      { role: 'system', content: [text('Be kind.')] },
    ] as const;
    expect(encode({ messages }).input).toMatchObject([{}, { role: 'system', content: 'Be kind.' }]);
    expect(encode({ messages }, target({ traits: { midSystem: false } })).input).toMatchObject([
      {},
      { role: 'user', content: '<system>Be kind.</system>' },
    ]);
  });

  it('streams when that is asked, and sends the beta header along', () => {
    const encoded = codec.encodeRequest(
      foreign({}),
      target({ stream: true, headers: { 'openai-beta': 'x=1' } }),
    );
    expect(encoded.body.stream).toBe(true);
    expect(encoded).toMatchObject({ path: '/responses', headers: { 'openai-beta': 'x=1' } });
  });
});

describe('a request of this format', () => {
  it('says nothing that the client did not say', () => {
    expect(thereAndBack({ input: 'Hi' }, { model: 'other' })).toEqual({ model: 'other', input: 'Hi' });
  });

  it('leaves reasoning out that another provider made', () => {
    const sealed = sealProof({ format: 'messages', kind: 'signature', value: 's' });
    const input = [
      { role: 'user', content: 'Hi' },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm' }], encrypted_content: sealed },
      { role: 'assistant', content: 'Hello.' },
    ];
    const to = target();
    expect(codec.encodeRequest(decode({ input }), to).body.input).toEqual([input[0], input[2]]);
    expect(to.losses).toEqual(['input[1]']);
  });

  it('gets its own reasoning back out of a seal', () => {
    const encrypted_content = sealProof({ format: 'responses', kind: 'encrypted', value: 'own' });
    expect(
      thereAndBack({ input: [{ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content }] }).input,
    ).toEqual([{ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'own' }]);
  });

  it('carries edits of plugins: new instructions, texts and settings', () => {
    const request = decode({
      instructions: 'A',
      reasoning: { effort: 'low', summary: 'auto', context: 'all_turns' },
      text: { format: { type: 'json_object' }, verbosity: 'low', tone: 'warm' },
      input: [
        { role: 'user', content: 'Hi' },
        { type: 'configuration_update', reasoning: { effort: 'high' }, text: { format: { type: 'text' } } },
      ],
    });
    const edited: ChatRequest = {
      ...request,
      system: [{ role: 'system', content: [text('New.')] }, ...request.system],
      messages: request.messages.map((message) => ({
        ...message,
        content: [{ ...text('Ho'), at: message.at ?? '' }],
      })),
      settings: { ...request.settings, reasoning: { effort: 'medium' }, responseFormat: { type: 'json' } },
    };
    expect(codec.encodeRequest(edited, target()).body).toEqual({
      model: 'm',
      instructions: 'A',
      reasoning: { effort: 'medium', context: 'all_turns' },
      text: { format: { type: 'json_object' }, verbosity: 'low', tone: 'warm' },
      input: [
        { role: 'system', content: [{ type: 'input_text', text: 'New.' }] },
        { role: 'user', content: 'Ho' },
        { type: 'configuration_update' },
      ],
    });
  });

  it('carries edited results of tools in the shapes that they had', () => {
    const request = decode({
      input: [
        { type: 'shell_call', call_id: 'c', action: { commands: ['ls'] } },
        {
          type: 'shell_call_output',
          call_id: 'c',
          output: [{ stdout: 'secret', stderr: '', outcome: { type: 'timeout' } }],
        },
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'secret' }], encrypted_content: 'x' },
      ],
    });
    const masked = JSON.parse(
      JSON.stringify(request.messages).replaceAll('secret', '***'),
    ) as ChatRequest['messages'];
    const [, output, thought] = codec.encodeRequest({ ...request, messages: masked }, target()).body
      .input as JsonObject[];
    expect(JSON.stringify([output, thought])).not.toContain('secret');
    expect(output).toMatchObject({ type: 'shell_call_output', output: [{ stderr: '', outcome: {} }] });
  });

  it('brings its tools along flat where the channel has functions only', () => {
    const request = decode({
      tools: [
        { type: 'namespace', name: 'n', tools: [{ type: 'custom', name: 'c' }] },
        { type: 'local_shell' },
      ],
      tool_choice: { type: 'local_shell' },
      input: [
        { type: 'additional_tools', role: 'developer', tools: [{ type: 'function', name: 'f' }] },
        { type: 'custom_tool_call', namespace: 'n', name: 'c', call_id: 'c1', input: 'ls' },
        { type: 'custom_tool_call_output', call_id: 'c1', output: 'x' },
      ],
    });
    const { body, customTools } = codec.encodeRequest(
      request,
      target({ traits: { refuses: ['customTools'] } }),
    );
    expect(customTools).toEqual(['n__c']);
    expect(body).toMatchObject({
      tools: [{ type: 'function', name: 'n__c' }, { type: 'local_shell' }, { type: 'function', name: 'f' }],
      tool_choice: { type: 'local_shell' },
      input: [
        { type: 'function_call', name: 'n__c', arguments: '{"input":"ls"}' },
        { type: 'function_call_output', output: 'x' },
      ],
    });
  });

  it('can only be answered where its earlier turns are kept', () => {
    expect(codec.onlyNative?.({ previous_response_id: 'resp_1' })?.param).toBe('previous_response_id');
    expect(codec.onlyNative?.({ conversation: { id: 'c' } })?.param).toBe('conversation');
    expect(codec.onlyNative?.({ previous_response_id: null, store: true })).toBeUndefined();
  });
});

describe('a request that passes through', () => {
  it('is patched and nothing else', () => {
    const body = {
      model: 'a',
      input: 'Hi',
      reasoning: { effort: 'low', summary: 'auto', context: 'auto' },
      x: [1],
    };
    expect(codec.patch(body, { model: 'b' }, {})).toEqual({ ...body, model: 'b' });
    expect(codec.patch(body, { settings: { maxOutput: 9, reasoning: { effort: 'high' } } }, {})).toEqual({
      ...body,
      max_output_tokens: 9,
      reasoning: { context: 'auto', effort: 'high', summary: 'auto' },
    });
  });

  it('has no update left in it that takes the edit back', () => {
    const input = [{ type: 'configuration_update', reasoning: { effort: 'low' }, text: {} }];
    expect(codec.patch({ model: 'a', input }, { settings: { reasoning: { effort: 'high' } } }, {})).toEqual({
      model: 'a',
      reasoning: { effort: 'high' },
      input: [{ type: 'configuration_update', text: {} }],
    });
  });

  it('goes to its path', () => {
    expect(codec.passThrough('m', true, {})).toEqual({ path: '/responses' });
    expect(countCodec.passThrough('m', false, {})).toEqual({ path: '/responses/input_tokens' });
  });
});

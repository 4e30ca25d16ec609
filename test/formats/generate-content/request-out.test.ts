import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { Block, ChatRequest, ChatSettings, Message, Source, Tool } from '../../../core/model/chat.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import type { Reasoning } from '../../../core/model/reasoning.ts';
import type { ModelTraits } from '../../../core/model/traits.ts';
import { chat, target, thrown } from './support.ts';

const user = (...content: Block[]): Message => ({ role: 'user', content, at: 'messages[0]' });
const assistant = (...content: Block[]): Message => ({ role: 'assistant', content, at: 'messages[1]' });
const text = (words: string, at = 'messages[0].content'): Block => ({ type: 'text', text: words, at });
const call = (id: string, input = '{}', name = 'f'): Block => ({
  type: 'tool-call',
  id,
  name,
  input,
  at: `call ${id}`,
});
const result = (id: string, words: string, more: object = {}): Block => ({
  type: 'tool-result',
  id,
  content: [text(words)],
  plain: true,
  at: `result ${id}`,
  ...more,
});
const tool = (name: string, more: Partial<Extract<Tool, { type: 'function' }>> = {}): Tool => ({
  type: 'function',
  name,
  at: `tools ${name}`,
  ...more,
});

function request(more: Partial<ChatRequest> = {}): ChatRequest {
  return {
    operation: 'chat',
    format: 'chat-completions',
    model: 'm',
    stream: false,
    system: [],
    messages: [user(text('hi'))],
    tools: [],
    settings: {},
    ...more,
  };
}

function encode(
  more: Partial<ChatRequest>,
  overrides: Parameters<typeof target>[0] = {},
): { body: JsonObject; losses: string[]; path: string } & ReturnType<typeof chat.encodeRequest> {
  const goal = target(overrides);
  const encoded = chat.encodeRequest(request(more), goal);
  return { ...encoded, body: JSON.parse(JSON.stringify(encoded.body)) as JsonObject, losses: goal.losses };
}

const settings = (given: ChatSettings, traits: ModelTraits = {}) => {
  const { body, losses } = encode({ settings: given }, { traits });
  return { config: body.generationConfig as JsonObject | undefined, body, losses };
};

describe('where a request goes', () => {
  test('the stream is another method, as SSE', () => {
    expect(encode({}, { model: 'gemini-x' }).path).toBe('/models/gemini-x:generateContent');
    const streamed = encode({}, { model: 'gemini-x', stream: true });
    expect([streamed.path, streamed.query]).toEqual([
      '/models/gemini-x:streamGenerateContent',
      { alt: 'sse' },
    ]);
  });

  test('no model id can lead elsewhere', () => {
    expect(encode({}, { model: '../../secret?x#y' }).path).toBe(
      '/models/..%2F..%2Fsecret%3Fx%23y:generateContent',
    );
    expect(encode({}, { model: 'models/gemini-x' }).path).toBe('/models/gemini-x:generateContent');
    expect(encode({}, { model: 'tunedModels/mine' }).path).toBe('/tunedModels/mine:generateContent');
    expect(chat.passThrough('a b', true, {})).toEqual({
      path: '/models/a%20b:streamGenerateContent',
      query: { alt: 'sse' },
    });
  });
});

describe('a conversation of another format', () => {
  test('the golden one', () => {
    const { body, losses } = encode({
      system: [{ role: 'system', content: [text('Answer briefly.')], plain: true, at: 'messages[0]' }],
      messages: [
        user(text('What time is it there?'), {
          type: 'image',
          source: { kind: 'data', mimeType: 'image/png', data: 'iVBO' },
        }),
        assistant(call('call_1', '{"tz":"Asia/Tokyo"}', 'get_time')),
        { role: 'tool', content: [result('call_1', '{"time":"09:30"}')] },
      ],
      tools: [
        tool('get_time', {
          description: 'Time in a zone',
          schema: { type: 'object', properties: { tz: { type: 'string' } }, required: ['tz'] },
        }),
      ],
      toolChoice: { type: 'auto' },
      settings: { maxOutput: 300, reasoning: { effort: 'low' }, parallelTools: false },
    });
    expect(body).toEqual({
      systemInstruction: { parts: [{ text: 'Answer briefly.' }] },
      contents: [
        {
          role: 'user',
          parts: [
            { text: 'What time is it there?' },
            { inlineData: { mimeType: 'image/png', data: 'iVBO' } },
          ],
        },
        {
          role: 'model',
          parts: [
            {
              functionCall: { id: 'call_1', name: 'get_time', args: { tz: 'Asia/Tokyo' } },
              thoughtSignature: 'skip_thought_signature_validator',
            },
          ],
        },
        {
          role: 'user',
          parts: [{ functionResponse: { id: 'call_1', name: 'get_time', response: { time: '09:30' } } }],
        },
      ],
      tools: [
        {
          functionDeclarations: [
            {
              name: 'get_time',
              description: 'Time in a zone',
              parametersJsonSchema: {
                type: 'object',
                properties: { tz: { type: 'string' } },
                required: ['tz'],
              },
            },
          ],
        },
      ],
      toolConfig: { functionCallingConfig: { mode: 'AUTO' } },
      generationConfig: {
        maxOutputTokens: 300,
        thinkingConfig: { thinkingLevel: 'low', includeThoughts: true },
      },
    });
    expect(losses).toEqual(['settings.parallelTools']);
  });

  test('turns alternate: neighbours are merged, empty ones dropped', () => {
    const { body } = encode({
      messages: [
        user(text('a')),
        user(text('')),
        user(text('b')),
        assistant(text('')),
        assistant(text('c')),
        assistant(call('x')),
        { role: 'tool', content: [result('x', 'ok')] },
        { role: 'tool', content: [result('y', 'ok')] },
        user(text('d')),
      ],
    });
    expect(
      (body.contents as { role: string; parts: object[] }[]).map(
        ({ role, parts }) => `${role} ${parts.length}`,
      ),
    ).toEqual(['user 2', 'model 2', 'user 3']);
  });

  test('instructions alone become the user’s turn', () => {
    const { body } = encode({ system: [{ role: 'system', content: [text('Say hi.')] }], messages: [] });
    expect(body).toEqual({ contents: [{ role: 'user', parts: [{ text: 'Say hi.' }] }] });
  });

  test('an instruction in the middle is wrapped, and reported', () => {
    const { body, losses } = encode({
      messages: [
        user(text('a')),
        { role: 'system', content: [text('Now French.')], at: 'messages[1]' },
        assistant(text('b')),
      ],
    });
    expect(body.contents).toMatchObject([
      { role: 'user', parts: [{ text: 'a' }, { text: '<system>Now French.</system>' }] },
      { role: 'model' },
    ]);
    expect(losses).toEqual(['messages[1].role']);
  });

  test('several instructions stand as several parts', () => {
    const { body } = encode({
      system: [
        { role: 'system', content: [text('One.')] },
        { role: 'system', content: [text('Two.')] },
      ],
    });
    expect(body.systemInstruction).toEqual({ parts: [{ text: 'One.' }, { text: 'Two.' }] });
  });

  test('what has no place is reported where it stood', () => {
    const { losses } = encode({
      extra: { 'chat-completions': { logit_bias: { 5: 1 }, $spelling: true } },
      messages: [
        {
          ...user({ ...text('a'), cache: { ttl: '5m' }, extra: { messages: { odd: 1 } } } as Block),
          extra: { 'chat-completions': { name: 'bob' } },
          cache: {},
        },
        assistant(
          {
            type: 'text',
            text: 'b',
            citations: [{ url: 'https://a.example' }],
            at: 'messages[1].content[0]',
          },
          { type: 'refusal', text: 'no', at: 'messages[1].refusal' },
        ),
      ],
      tools: [tool('f', { strict: true, cache: {}, extra: { responses: { deferred: true } } })],
    });
    expect(losses.toSorted()).toEqual(
      [
        'logit_bias',
        'messages[0].name',
        'messages[0].cache',
        'messages[0].content.odd',
        'messages[0].content.cache',
        'messages[1].content[0].citations',
        'messages[1].refusal',
        'tools f.strict',
        'tools f.cache',
        'tools f.deferred',
      ].toSorted(),
    );
  });
});

describe('media of another format', () => {
  const image = (source: Source, more: object = {}): Block => ({
    type: 'image',
    source,
    at: 'messages[0].content[0]',
    ...more,
  });
  const parts = (block: Block, overrides: Parameters<typeof target>[0] = {}) => {
    const { body, losses } = encode({ messages: [user(block)] }, overrides);
    return { parts: (body.contents as { parts: JsonObject[] }[])[0]?.parts, losses };
  };

  test('addresses go as they are where the provider fetches them', () => {
    expect(parts(image({ kind: 'url', url: 'https://a.example/cat.webp' })).parts).toEqual([
      { fileData: { mimeType: 'image/webp', fileUri: 'https://a.example/cat.webp' } },
    ]);
    expect(parts(image({ kind: 'url', url: 'https://a.example/cat' })).parts).toMatchObject([
      { fileData: { mimeType: 'image/jpeg' } },
    ]);
  });

  test('elsewhere they are refused by path, or dropped when the operator says so', () => {
    const source = { kind: 'url', url: 'https://a.example/cat.webp' } as const;
    const error = thrown(() => parts(image(source), { traits: { fetchesUrls: false } })) as GatewayError;
    expect([error.status, error.code, error.param]).toEqual([
      400,
      'unsupported_content',
      'messages[0].content[0]',
    ]);
    expect(parts(image(source), { traits: { fetchesUrls: false }, unsupported: 'drop' }).losses).toEqual([
      'messages[0].content[0]',
    ]);
  });

  test('files of other vendors and parts of other formats are refused by path', () => {
    const file = image({ kind: 'file', id: 'file-abc', format: 'chat-completions' });
    expect((thrown(() => parts(file)) as GatewayError).code).toBe('unsupported_content');
    const opaque: Block = {
      type: 'opaque',
      format: 'messages',
      value: { type: 'search_result' },
      at: 'messages[0].content[0]',
    };
    expect((thrown(() => parts(opaque)) as GatewayError).param).toBe('messages[0].content[0]');
    expect(parts(opaque, { unsupported: 'drop' }).losses).toEqual(['messages[0].content[0]']);
  });

  test('detail is a resolution on models that have one', () => {
    const source = { kind: 'data', data: 'AA==', mimeType: 'image/png' } as const;
    expect(parts(image(source, { detail: 'low' })).parts).toEqual([
      {
        inlineData: { mimeType: 'image/png', data: 'AA==' },
        mediaResolution: { level: 'MEDIA_RESOLUTION_LOW' },
      },
    ]);
    expect(parts(image(source, { detail: 'auto' }))).toEqual({
      parts: [{ inlineData: { mimeType: 'image/png', data: 'AA==' } }],
      losses: [],
    });
    expect(
      parts(image(source, { detail: 'high', name: 'cat' }), { traits: { reasoning: 'budget' } }).losses,
    ).toEqual(['messages[0].content[0].name', 'messages[0].content[0].detail']);
  });
});

describe('calls and results of another format', () => {
  const contents = (messages: Message[], traits: ModelTraits = {}) =>
    encode({ messages }, { traits }).body.contents as { role: string; parts: JsonObject[] }[];

  test('arguments that are no object are kept as text', () => {
    const turn = contents([
      user(text('x')),
      assistant(call('a', ''), call('b', '{"broken'), call('c', '[1]'), {
        type: 'tool-call',
        id: 'd',
        name: 'sh',
        input: 'ls',
        custom: true,
      }),
    ])[1];
    expect(turn?.parts.map((part) => (part.functionCall as JsonObject).args)).toEqual([
      {},
      { broken: null, _raw: '{"broken' },
      { _raw: '[1]' },
      { input: 'ls' },
    ]);
  });

  test('broken arguments come back as they were written', () => {
    const { body } = encode({ messages: [user(text('x')), assistant(call('b', '{"broken'))] });
    expect(chat.decodeRequest(body, { model: 'm' }).messages[1]?.content[0]).toMatchObject({
      input: '{"broken',
    });
  });

  test('results have the name of their call, an object where they hold one', () => {
    const turn = contents([
      user(text('x')),
      assistant(call('a', '{}', 'one'), call('b', '{}', 'two')),
      user(
        result('b', 'plain'),
        result('a', '{"k":1}'),
        result('zz', '{"output":"x"}'),
        result('a', '[1]'),
        result('a', 'no', { failed: true }),
        result('b', ''),
      ),
    ])[2];
    expect(turn?.parts.map((part) => part.functionResponse)).toEqual([
      { id: 'b', name: 'two', response: { output: 'plain' } },
      { id: 'a', name: 'one', response: { k: 1 } },
      { id: 'zz', name: 'unknown', response: { output: '{"output":"x"}' } },
      { id: 'a', name: 'one', response: { output: '[1]' } },
      { id: 'a', name: 'one', response: { error: 'no' } },
      { id: 'b', name: 'two', response: { output: '' } },
    ]);
  });

  test('images in results stay inside, or follow on older models', () => {
    const image: Block = { type: 'image', source: { kind: 'data', data: 'AA==', mimeType: 'image/png' } };
    const messages = [
      user(text('x')),
      assistant(call('a')),
      user({ type: 'tool-result', id: 'a', content: [text('see'), image] }),
    ];
    const inline = { inlineData: { mimeType: 'image/png', data: 'AA==' } };
    expect(contents(messages)[2]?.parts).toEqual([
      { functionResponse: { id: 'a', name: 'f', response: { output: 'see' }, parts: [inline] } },
    ]);
    expect(contents(messages, { reasoning: 'budget' })[2]?.parts).toEqual([
      { functionResponse: { id: 'a', name: 'f', response: { output: 'see' } } },
      inline,
    ]);
  });

  test('the placeholder stands on the first unsigned call of each step of the current turn only', () => {
    const signed: Block = {
      type: 'tool-call',
      id: 's',
      name: 'f',
      input: '{}',
      proof: { format: 'generate-content', kind: 'signature', value: 'own' },
    };
    const messages = [
      user(text('old')),
      assistant(call('o')),
      user(result('o', 'x')),
      assistant(text('done')),
      user(text('new')),
      assistant(text('hm'), call('a'), call('b')),
      user(result('a', 'x'), result('b', 'x')),
      assistant(signed, call('c')),
      user(result('s', 'x')),
    ];
    const signatures = (traits: ModelTraits) =>
      contents(messages, traits).flatMap(({ parts }) =>
        parts.filter((part) => part.functionCall !== undefined).map((part) => part.thoughtSignature),
      );
    const skip = 'skip_thought_signature_validator';
    expect(signatures({})).toEqual([undefined, skip, undefined, 'own', undefined]);
    expect(signatures({ reasoning: 'level' })).toEqual([undefined, skip, undefined, 'own', undefined]);
    expect(signatures({ reasoning: 'budget' })).toEqual([undefined, undefined, undefined, 'own', undefined]);
  });

  test('thoughts go back only to the provider that thought them', () => {
    const own: Block = {
      type: 'reasoning',
      text: 'ours',
      proof: { format: 'generate-content', kind: 'signature', value: 'sig' },
      at: 'r0',
    };
    const foreign: Block = {
      type: 'reasoning',
      text: 'theirs',
      proof: { format: 'messages', kind: 'signature', value: 'sig' },
      at: 'r1',
    };
    const bare: Block = { type: 'reasoning', text: 'nobody’s', at: 'r2' };
    const { body, losses } = encode({
      messages: [user(text('x')), assistant(own, foreign, bare, text('y'))],
    });
    expect((body.contents as { parts: object[] }[])[1]?.parts).toEqual([
      { text: 'ours', thought: true, thoughtSignature: 'sig' },
      { text: 'y' },
    ]);
    expect(losses).toEqual(['r1', 'r2']);
  });
});

describe('tools of another format', () => {
  test('functions share one entry, hosted tools have their own', () => {
    const { body, losses } = encode({
      tools: [
        tool('a'),
        { type: 'web-search', name: 'web_search' },
        tool('b', { schema: { type: 'object', properties: {} } }),
        { type: 'code-execution' },
      ],
    });
    expect(body.tools).toEqual([
      { functionDeclarations: [{ name: 'a' }, { name: 'b' }] },
      { googleSearch: {} },
      { codeExecution: {} },
    ]);
    expect(losses).toEqual([]);
  });

  test('names are spelled so that they are taken, the same everywhere, and come back', () => {
    const name = '9 tools/ünder:one';
    const { body, toolNames } = encode({
      tools: [tool(name), tool('mcp__ok-1.2')],
      toolChoice: { type: 'tool', name },
      messages: [user(text('x')), assistant(call('a', '{}', name)), user(result('a', 'x'))],
    });
    const [first, second] =
      (body.tools as { functionDeclarations: { name: string }[] }[])[0]?.functionDeclarations ?? [];
    expect(first?.name).toMatch(/^_9_tools__nder:one_[0-9a-f]{8}$/);
    expect(second?.name).toBe('mcp__ok-1.2');
    expect(toolNames?.back(first?.name ?? '')).toBe(name);
    expect(JSON.stringify(body)).not.toContain(name);
    expect(body.toolConfig).toEqual({
      functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [first?.name] },
    });
    const long = encode({ tools: [tool('x'.repeat(200))] }, { traits: { toolNameLimit: 64 } });
    expect(
      (long.body.tools as { functionDeclarations: { name: string }[] }[])[0]?.functionDeclarations[0]?.name,
    ).toHaveLength(64);
  });

  test('a free-text tool is a function with one string', () => {
    const { body, customTools, losses } = encode({
      tools: [
        { type: 'custom', name: 'sh', description: 'Shell', format: { type: 'grammar' }, at: 'tools[0]' },
      ],
    });
    expect(body.tools).toEqual([
      {
        functionDeclarations: [
          {
            name: 'sh',
            description: 'Shell',
            parametersJsonSchema: {
              type: 'object',
              properties: { input: { type: 'string' } },
              required: ['input'],
            },
          },
        ],
      },
    ]);
    expect([customTools, losses]).toEqual([['sh'], ['tools[0].format']]);
  });

  test('tools that only another format knows are refused by name', () => {
    const mcp: Tool = {
      type: 'opaque',
      name: 'mcp',
      format: 'responses',
      value: { type: 'mcp' },
      at: 'tools[1]',
    };
    const error = thrown(() => encode({ tools: [tool('a'), mcp] })) as GatewayError;
    expect([error.code, error.param]).toEqual(['unsupported_tool', 'tools[1]']);
    expect(error.message).toContain('mcp');
    expect(encode({ tools: [mcp] }, { unsupported: 'drop' })).toMatchObject({
      losses: ['tools[1]'],
      body: { contents: [{}] },
    });
  });

  test('the choice', () => {
    const of = (toolChoice: ChatRequest['toolChoice'], tools = [tool('a'), tool('b'), tool('c')]) =>
      encode({ tools, ...(toolChoice === undefined ? {} : { toolChoice }) });
    const calling = (choice: ChatRequest['toolChoice']) =>
      (of(choice).body.toolConfig as JsonObject | undefined)?.functionCallingConfig;
    expect(calling({ type: 'auto' })).toEqual({ mode: 'AUTO' });
    expect(calling({ type: 'none' })).toEqual({ mode: 'NONE' });
    expect(calling({ type: 'required' })).toEqual({ mode: 'ANY' });
    expect(calling({ type: 'tool', name: 'b' })).toEqual({ mode: 'ANY', allowedFunctionNames: ['b'] });
    expect(calling({ type: 'allowed', mode: 'required', names: ['a', 'c'] })).toEqual({
      mode: 'ANY',
      allowedFunctionNames: ['a', 'c'],
    });
    const some = of({ type: 'allowed', mode: 'auto', names: ['a'] });
    expect(some.body.tools).toEqual([{ functionDeclarations: [{ name: 'a' }] }]);
    expect(some.losses).toEqual(['tool_choice', 'tools b', 'tools c']);
    expect(of({ type: 'required' }, []).body.toolConfig).toBeUndefined();
    expect(of({ type: 'tool', name: 'web_search' }, [{ type: 'web-search' }]).losses).toEqual([
      'tool_choice',
    ]);
  });

  test('streamed arguments are asked for where the model is known to stream them, and nowhere else', () => {
    const asks = (traits: ModelTraits, stream = true, more: Partial<ChatRequest> = {}) => {
      const { body } = encode({ tools: [tool('a')], ...more }, { traits, stream });
      return body.toolConfig;
    };
    const toolConfig = { functionCallingConfig: { streamFunctionCallArguments: true } };
    expect(asks({ streamsArguments: true })).toEqual(toolConfig);
    expect(asks({ streamsArguments: true }, true, { toolChoice: { type: 'required' } })).toEqual({
      functionCallingConfig: { mode: 'ANY', streamFunctionCallArguments: true },
    });
    expect(asks({})).toBeUndefined();
    expect(asks({ streamsArguments: true }, false)).toBeUndefined();
    expect(asks({ streamsArguments: true }, true, { tools: [] })).toBeUndefined();
    expect(asks({ streamsArguments: true }, true, { format: 'generate-content' })).toBeUndefined();
  });

  test('models from before JSON Schema get the subset, and what it lacks is reported', () => {
    const schema = {
      type: 'object',
      additionalProperties: false,
      properties: { a: { type: ['string', 'null'], format: 'uri' } },
    };
    const { body, losses } = encode({ tools: [tool('a', { schema })] }, { traits: { reasoning: 'none' } });
    expect(body.tools).toEqual([
      {
        functionDeclarations: [
          {
            name: 'a',
            parameters: { type: 'OBJECT', properties: { a: { type: 'STRING', nullable: true } } },
          },
        ],
      },
    ]);
    expect(losses).toEqual(['tools a.schema.additionalProperties', 'tools a.schema.properties.a.format']);
  });
});

describe('settings of another format', () => {
  test('what there is', () => {
    const { config, body, losses } = settings({
      maxOutput: 10,
      temperature: 1.5,
      topP: 0.5,
      topK: 4,
      stop: ['a'],
      choices: 2,
      seed: 3,
      frequencyPenalty: 1,
      presencePenalty: -1,
      logprobs: true,
      topLogprobs: 2,
      modalities: ['text', 'audio'],
      serviceTier: 'default',
      responseFormat: { type: 'json' },
    });
    expect(config).toEqual({
      maxOutputTokens: 10,
      temperature: 1.5,
      topP: 0.5,
      topK: 4,
      stopSequences: ['a'],
      candidateCount: 2,
      seed: 3,
      frequencyPenalty: 1,
      presencePenalty: -1,
      responseLogprobs: true,
      logprobs: 2,
      responseModalities: ['TEXT', 'AUDIO'],
      responseMimeType: 'application/json',
    });
    expect(body.serviceTier).toBe('standard');
    expect(losses).toEqual([]);
  });

  test('what there is not is reported', () => {
    const { losses } = settings({
      verbosity: 'low',
      parallelTools: true,
      user: 'u',
      metadata: { a: 1 },
      promptCacheKey: 'k',
      serviceTier: 'scale',
      stop: ['1', '2', '3', '4', '5', '6'],
    });
    expect(losses.toSorted()).toEqual([
      'settings.metadata',
      'settings.parallelTools',
      'settings.promptCacheKey',
      'settings.serviceTier',
      'settings.stop',
      'settings.user',
      'settings.verbosity',
    ]);
  });

  test('what the model refuses is reported', () => {
    expect(settings({ temperature: 1, seed: 1 }, { refuses: ['temperature'] })).toMatchObject({
      config: { seed: 1 },
      losses: ['settings.temperature'],
    });
  });

  test('structured output', () => {
    const schema = {
      type: 'object',
      properties: { a: { $ref: '#/$defs/a' } },
      $defs: { a: { type: 'integer', exclusiveMinimum: 0 } },
    };
    const format = { type: 'json-schema', name: 'x', strict: true, schema } as const;
    expect(settings({ responseFormat: format })).toMatchObject({
      config: { responseMimeType: 'application/json', responseJsonSchema: schema },
      losses: ['settings.responseFormat.name', 'settings.responseFormat.strict'],
    });
    expect(
      settings({ responseFormat: { type: 'json-schema', schema } }, { reasoning: 'none' }),
    ).toMatchObject({
      config: { responseSchema: { type: 'OBJECT', properties: { a: { type: 'INTEGER' } } } },
      losses: ['settings.responseFormat.schema.properties.a.exclusiveMinimum'],
    });
  });

  test('structured output on a model that has none is a forced call', () => {
    const responseFormat = {
      type: 'json-schema',
      schema: { type: 'object', properties: { a: { type: 'integer' } } },
    } as const;
    const { body, unwrapTool, losses } = encode(
      { settings: { responseFormat } },
      { traits: { jsonSchema: false } },
    );
    expect(unwrapTool).toBe('json_output');
    expect(body).toMatchObject({
      tools: [
        { functionDeclarations: [{ name: 'json_output', parametersJsonSchema: responseFormat.schema }] },
      ],
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['json_output'] } },
    });
    expect(body.generationConfig).toBeUndefined();
    expect(losses).toEqual([]);
    expect(
      encode({ settings: { responseFormat }, tools: [tool('a')] }, { traits: { jsonSchema: false } }).losses,
    ).toEqual(['settings.responseFormat']);
  });

  const thinking = (reasoning: Reasoning, traits: ModelTraits = {}, format = 'chat-completions') => {
    const { body, losses } = encode({ settings: { reasoning }, format }, { traits });
    return [(body.generationConfig as JsonObject | undefined)?.thinkingConfig, losses];
  };
  test.each<[Reasoning, ModelTraits, JsonObject | undefined, string[]]>([
    [{ effort: 'low' }, {}, { thinkingLevel: 'low', includeThoughts: true }, []],
    [
      { effort: 'minimal' },
      { efforts: ['low', 'high'] },
      { thinkingLevel: 'low', includeThoughts: true },
      ['settings.reasoning.effort'],
    ],
    [
      { effort: 'medium' },
      { efforts: ['low', 'high'] },
      { thinkingLevel: 'low', includeThoughts: true },
      ['settings.reasoning.effort'],
    ],
    [
      { effort: 'xhigh' },
      {},
      { thinkingLevel: 'high', includeThoughts: true },
      ['settings.reasoning.effort'],
    ],
    [{ effort: 'none' }, {}, { thinkingLevel: 'minimal' }, ['settings.reasoning.effort']],
    [{ mode: 'off' }, {}, { thinkingLevel: 'minimal' }, ['settings.reasoning']],
    [{ mode: 'adaptive' }, {}, { includeThoughts: true }, []],
    [{ mode: 'on', budget: 10_000 }, {}, { thinkingLevel: 'medium', includeThoughts: true }, []],
    [{ budget: -1 }, {}, { includeThoughts: true }, []],
    [{ show: false, effort: 'high' }, {}, { thinkingLevel: 'high', includeThoughts: false }, []],
    [
      { effort: 'high', display: 'detailed' },
      {},
      { thinkingLevel: 'high', includeThoughts: true },
      ['settings.reasoning.display'],
    ],
    [{ effort: 'low' }, { reasoning: 'budget' }, { thinkingBudget: 1024, includeThoughts: true }, []],
    [{ effort: 'minimal' }, { reasoning: 'budget' }, { thinkingBudget: 512, includeThoughts: true }, []],
    [{ effort: 'none' }, { reasoning: 'budget' }, { thinkingBudget: 0 }, []],
    [
      { effort: 'none' },
      { reasoning: 'budget', efforts: ['minimal', 'low', 'medium', 'high', 'xhigh'] },
      { thinkingBudget: 512 },
      ['settings.reasoning.effort'],
    ],
    [
      { effort: 'max' },
      { reasoning: 'budget' },
      { thinkingBudget: 24_576, includeThoughts: true },
      ['settings.reasoning.effort'],
    ],
    [
      { effort: 'xhigh' },
      { reasoning: 'budget', efforts: ['high', 'xhigh'], thinkingBudget: { max: 32_768 } },
      { thinkingBudget: 32_768, includeThoughts: true },
      [],
    ],
    [
      { mode: 'on', budget: 31_999 },
      { reasoning: 'budget' },
      { thinkingBudget: 24_576, includeThoughts: true },
      ['settings.reasoning.budget'],
    ],
    [
      { mode: 'on', budget: 2000 },
      { reasoning: 'budget' },
      { thinkingBudget: 2000, includeThoughts: true },
      [],
    ],
    [{ mode: 'adaptive' }, { reasoning: 'budget' }, { thinkingBudget: -1, includeThoughts: true }, []],
    [{ mode: 'off' }, { reasoning: 'budget' }, { thinkingBudget: 0 }, []],
    [{ effort: 'low' }, { reasoning: 'none' }, undefined, ['settings.reasoning']],
  ])('thinking %j on %j', (reasoning, traits, config, losses) => {
    expect(thinking(reasoning, traits)).toEqual([config, losses]);
  });

  test('a Responses client that wants no summary gets no thoughts', () => {
    expect(thinking({ effort: 'low' }, {}, 'responses')).toEqual([{ thinkingLevel: 'low' }, []]);
    expect(thinking({ effort: 'low', show: true }, {}, 'responses')).toEqual([
      { thinkingLevel: 'low', includeThoughts: true },
      [],
    ]);
  });
});

describe('edits on the way', () => {
  const body = {
    contents: [{ role: 'user', parts: [{ text: 'x' }] }],
    generationConfig: { temperature: 1, thinkingConfig: { thinkingLevel: 'LOW', includeThoughts: true } },
  };

  test('a plugin’s wish replaces the client’s words', () => {
    const decoded = chat.decodeRequest(body, { model: 'm' });
    const edited = { ...decoded, settings: { ...decoded.settings, reasoning: { effort: 'high' as const } } };
    expect(chat.encodeRequest(edited, target()).body.generationConfig).toEqual({
      temperature: 1,
      thinkingConfig: { thinkingLevel: 'high' },
    });
  });

  test('a pass-through is patched in place', () => {
    expect(chat.patch(body, { settings: { maxOutput: 9, reasoning: { effort: 'high' } } }, {})).toEqual({
      contents: body.contents,
      generationConfig: {
        temperature: 1,
        maxOutputTokens: 9,
        thinkingConfig: { includeThoughts: true, thinkingLevel: 'high' },
      },
    });
    expect(
      chat.patch(
        {
          contents: [],
          generation_config: { max_output_tokens: 5, thinking_config: { thinking_budget: 9 } },
        },
        { settings: { maxOutput: 1, reasoning: { effort: 'low', show: true } } },
        { reasoning: 'budget' },
      ),
    ).toEqual({
      contents: [],
      generation_config: {
        maxOutputTokens: 1,
        thinkingConfig: { thinkingBudget: 1024, includeThoughts: true },
      },
    });
    expect(chat.patch(body, { model: 'other' }, {})).toEqual(body);
    expect(chat.patch({ model: 'models/a', contents: [] }, { model: 'b' }, {})).toEqual({
      model: 'models/b',
      contents: [],
    });
    expect(body.generationConfig.thinkingConfig.thinkingLevel).toBe('LOW');
  });
});

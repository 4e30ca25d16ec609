import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { sealProof } from '../../../core/formats/_shared/proof.ts';
import type { ChatRequest } from '../../../core/model/chat.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { chat, target, thrown } from './support.ts';

const params = { model: 'm' };
const hi = { role: 'user', parts: [{ text: 'hi' }] };
const decode = (body: JsonObject): ChatRequest => chat.decodeRequest(body, params);
const there = (body: JsonObject): JsonObject =>
  JSON.parse(JSON.stringify(chat.encodeRequest(decode(body), target()).body)) as JsonObject;

test.each<[string, JsonObject]>([
  [
    'an answer from a list',
    {
      generationConfig: { responseMimeType: 'text/x.enum', responseSchema: { type: 'STRING', enum: ['a'] } },
    },
  ],
  [
    'a schema of JSON',
    { generation_config: { response_mime_type: 'application/json', response_schema: { type: 'OBJECT' } } },
  ],
  ['a mode in small letters', { toolConfig: { functionCallingConfig: { mode: 'any' } } }],
  ['calls that are checked', { toolConfig: { functionCallingConfig: { mode: 'VALIDATED' } } }],
  ['a mode that says nothing', { toolConfig: { functionCallingConfig: { mode: 'MODE_UNSPECIFIED' } } }],
  [
    'instructions with a part of tomorrow',
    { systemInstruction: { parts: [{ text: 'a' }, { futureData: {} }] } },
  ],
])('%s is taken', (_, fields) => {
  expect(() => chat.validate({ contents: [hi], ...fields }, params)).not.toThrow();
});

describe('a wrong request is refused with the path of what is wrong', () => {
  const cases: readonly [string, JsonObject, string][] = [
    ['no contents', {}, 'contents'],
    ['contents null', { contents: null }, 'contents'],
    ['contents a string', { contents: 'hi' }, 'contents'],
    ['contents empty', { contents: [] }, 'contents'],
    ['a content that is no object', { contents: ['hi'] }, 'contents[0]'],
    ['no parts', { contents: [hi, { role: 'model' }] }, 'contents[1].parts'],
    ['parts a string', { contents: [{ parts: 'hi' }] }, 'contents[0].parts'],
    ['a part that is no object', { contents: [{ parts: [{ text: 'a' }, 7] }] }, 'contents[0].parts[1]'],
    [
      'a role that nobody has',
      { contents: [hi, { role: 'narrator', parts: [{ text: 'x' }] }] },
      'contents[1].role',
    ],
    ['a role that is no string', { contents: [{ role: 1, parts: [] }] }, 'contents[0].role'],
    ['a text that is no string', { contents: [{ parts: [{ text: 5 }] }] }, 'contents[0].parts[0].text'],
    [
      'an image without type',
      { contents: [{ parts: [{ inlineData: { data: 'AA==' } }] }] },
      'contents[0].parts[0].inlineData.mimeType',
    ],
    [
      'an image without data',
      { contents: [{ parts: [{ inline_data: { mime_type: 'image/png' } }] }] },
      'contents[0].parts[0].inlineData.data',
    ],
    [
      'a file without address',
      { contents: [{ parts: [{ fileData: { mimeType: 'image/png' } }] }] },
      'contents[0].parts[0].fileData.fileUri',
    ],
    [
      'a picture among the instructions',
      {
        contents: [hi],
        systemInstruction: {
          parts: [{ text: 'a' }, { inlineData: { mimeType: 'image/png', data: 'AA==' } }],
        },
      },
      'systemInstruction.parts[1]',
    ],
    [
      'a file as instructions, in the other spelling',
      { contents: [hi], system_instruction: { parts: [{ file_data: { file_uri: 'gs://b/a.pdf' } }] } },
      'systemInstruction.parts[0]',
    ],
    [
      'a call among the instructions',
      { contents: [hi], systemInstruction: { parts: [{ functionCall: { name: 'f' } }] } },
      'systemInstruction.parts[0]',
    ],
    [
      'code among the instructions',
      {
        contents: [hi],
        systemInstruction: { parts: [{ executableCode: { language: 'PYTHON', code: '1' } }] },
      },
      'systemInstruction.parts[0]',
    ],
    [
      'a mode that nobody knows',
      { contents: [hi], toolConfig: { functionCallingConfig: { mode: 'banana' } } },
      'toolConfig.functionCallingConfig.mode',
    ],
    [
      'a mode that nobody knows, in the other spelling',
      { contents: [hi], tool_config: { function_calling_config: { mode: 'banana' } } },
      'toolConfig.functionCallingConfig.mode',
    ],
    [
      'a schema without its MIME type',
      { contents: [hi], generationConfig: { responseSchema: { type: 'OBJECT' } } },
      'generationConfig.responseMimeType',
    ],
    [
      'a schema of plain text, in the other spelling',
      {
        contents: [hi],
        generation_config: { response_json_schema: { type: 'object' }, response_mime_type: 'text/plain' },
      },
      'generationConfig.responseMimeType',
    ],
    [
      'a call without name',
      { contents: [{ role: 'model', parts: [{ functionCall: { args: {} } }] }] },
      'contents[0].parts[0].functionCall.name',
    ],
    [
      'arguments as text',
      { contents: [{ role: 'model', parts: [{ functionCall: { name: 'f', args: '{}' } }] }] },
      'contents[0].parts[0].functionCall.args',
    ],
    [
      'a result without name or id',
      { contents: [{ parts: [{ functionResponse: { response: {} } }] }] },
      'contents[0].parts[0].functionResponse.name',
    ],
    [
      'a result as text',
      { contents: [{ parts: [{ functionResponse: { name: 'f', response: 'ok' } }] }] },
      'contents[0].parts[0].functionResponse.response',
    ],
    [
      'a signature that is no string',
      { contents: [{ parts: [{ text: '', thoughtSignature: 1 }] }] },
      'contents[0].parts[0].thoughtSignature',
    ],
    ['an instruction that is a number', { contents: [hi], systemInstruction: 7 }, 'systemInstruction'],
    ['an instruction without parts', { contents: [hi], system_instruction: {} }, 'systemInstruction.parts'],
    ['tools that are no list', { contents: [hi], tools: {} }, 'tools'],
    ['a tool that is no object', { contents: [hi], tools: ['googleSearch'] }, 'tools[0]'],
    [
      'a function without name',
      { contents: [hi], tools: [{ functionDeclarations: [{}] }] },
      'tools[0].functionDeclarations[0].name',
    ],
    [
      'parameters that are no object',
      { contents: [hi], tools: [{ function_declarations: [{ name: 'f', parameters: [] }] }] },
      'tools[0].functionDeclarations[0].parameters',
    ],
    [
      'a mode that is no string',
      { contents: [hi], toolConfig: { functionCallingConfig: { mode: 3 } } },
      'toolConfig.functionCallingConfig.mode',
    ],
    [
      'a name that is no string',
      { contents: [hi], toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [1] } } },
      'toolConfig.functionCallingConfig.allowedFunctionNames[0]',
    ],
    ['a config that is no object', { contents: [hi], generationConfig: [] }, 'generationConfig'],
    [
      'a temperature that is no number',
      { contents: [hi], generationConfig: { temperature: 'warm' } },
      'generationConfig.temperature',
    ],
    ['top_p above 1', { contents: [hi], generation_config: { top_p: 1.1 } }, 'generationConfig.topP'],
    ['topP below 0', { contents: [hi], generationConfig: { topP: -0.1 } }, 'generationConfig.topP'],
    [
      'half a token',
      { contents: [hi], generationConfig: { maxOutputTokens: 1.5 } },
      'generationConfig.maxOutputTokens',
    ],
    [
      'no token at all',
      { contents: [hi], generationConfig: { maxOutputTokens: 0 } },
      'generationConfig.maxOutputTokens',
    ],
    [
      'a stop that is no string',
      { contents: [hi], generationConfig: { stopSequences: ['a', 1] } },
      'generationConfig.stopSequences[1]',
    ],
    [
      'a budget below dynamic',
      { contents: [hi], generationConfig: { thinkingConfig: { thinkingBudget: -2 } } },
      'generationConfig.thinkingConfig.thinkingBudget',
    ],
    [
      'includeThoughts as text',
      { contents: [hi], generationConfig: { thinkingConfig: { includeThoughts: 'yes' } } },
      'generationConfig.thinkingConfig.includeThoughts',
    ],
    [
      'a level that is no string',
      { contents: [hi], generationConfig: { thinkingConfig: { thinkingLevel: 3 } } },
      'generationConfig.thinkingConfig.thinkingLevel',
    ],
    [
      'a schema that is no object',
      { contents: [hi], generationConfig: { responseSchema: 'x' } },
      'generationConfig.responseSchema',
    ],
    [
      'a modality that is no string',
      { contents: [hi], generationConfig: { responseModalities: [1] } },
      'generationConfig.responseModalities[0]',
    ],
  ];
  test.each(cases)('%s', (_what, body, param) => {
    const error = thrown(() => chat.validate(body, params)) as GatewayError;
    expect(error).toBeInstanceOf(GatewayError);
    expect([error.status, error.param]).toEqual([400, param]);
    expect(error.message).toContain(param);
  });

  test('no model in the path', () => {
    expect((thrown(() => chat.peek({ contents: [hi] }, {})) as GatewayError).param).toBe('model');
    expect((thrown(() => chat.peek({ contents: [hi] }, { model: 'models/' })) as GatewayError).param).toBe(
      'model',
    );
  });
});

describe('what is tolerated', () => {
  test('other spellings of roles, fields and words of tomorrow are no error', () => {
    expect(() =>
      decode({
        contents: [
          ...['', 'USER', 'assistant', 'function', 'tool', 'system', 'developer'].map((role) => ({
            role,
            parts: [{ text: 'x' }],
          })),
          { parts: [{ text: 'x', tomorrow: {} }] },
        ],
        generationConfig: {
          temperature: 9,
          thinkingConfig: { thinkingLevel: 'ULTRA' },
          responseMimeType: 'text/x.new',
        },
        toolConfig: { tomorrow: {} },
        tomorrow: [1],
      }),
    ).not.toThrow();
  });

  test('snake_case at every level comes out in camelCase, and nobody’s own keys are touched', () => {
    const snake = {
      system_instruction: { parts: { text: 'Rules' } },
      contents: [
        {
          role: 'user',
          parts: [
            { inline_data: { mime_type: 'image/png', data: 'iVBO', display_name: 'a_b' } },
            {
              file_data: { mime_type: 'text/csv', file_uri: 'gs://a/b' },
              video_metadata: { start_offset: '1s' },
            },
          ],
        },
        {
          role: 'model',
          parts: [
            {
              function_call: { name: 'do_it', args: { snake_key: { inner_key: 1 } } },
              thought_signature: 'c2ln',
            },
          ],
        },
        { role: 'user', parts: [{ function_response: { name: 'do_it', response: { out_put: 1 } } }] },
      ],
      tools: [
        {
          function_declarations: [
            {
              name: 'do_it',
              parameters_json_schema: { type: 'object', properties: { snake_key: { type: 'object' } } },
            },
          ],
        },
        { google_search: { exclude_domains: ['a_b.com'] } },
      ],
      tool_config: {
        function_calling_config: { mode: 'any', allowed_function_names: ['do_it'] },
        retrieval_config: { language_code: 'de' },
      },
      safety_settings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'OFF' }],
      generation_config: {
        top_p: 0.5,
        top_k: 3,
        max_output_tokens: '64',
        stop_sequences: ['x'],
        response_mime_type: 'application/json',
        response_schema: {
          type: 'OBJECT',
          properties: { snake_name: { type: 'STRING' } },
          property_ordering: ['snake_name'],
        },
        response_modalities: ['TEXT'],
        thinking_config: { include_thoughts: true, thinking_budget: '128' },
      },
      cached_content: 'cachedContents/a_b',
      labels: { team_name: 'x' },
    };
    expect(there(snake)).toEqual({
      systemInstruction: { parts: [{ text: 'Rules' }] },
      contents: [
        {
          role: 'user',
          parts: [
            { inlineData: { mimeType: 'image/png', data: 'iVBO', displayName: 'a_b' } },
            {
              fileData: { mimeType: 'text/csv', fileUri: 'gs://a/b' },
              videoMetadata: { start_offset: '1s' },
            },
          ],
        },
        {
          role: 'model',
          parts: [
            {
              functionCall: { name: 'do_it', args: { snake_key: { inner_key: 1 } } },
              thoughtSignature: 'c2ln',
            },
          ],
        },
        { role: 'user', parts: [{ functionResponse: { name: 'do_it', response: { out_put: 1 } } }] },
      ],
      tools: [
        {
          functionDeclarations: [
            {
              name: 'do_it',
              parametersJsonSchema: { type: 'object', properties: { snake_key: { type: 'object' } } },
            },
          ],
        },
        { googleSearch: { exclude_domains: ['a_b.com'] } },
      ],
      toolConfig: {
        functionCallingConfig: { mode: 'any', allowedFunctionNames: ['do_it'] },
        retrievalConfig: { language_code: 'de' },
      },
      safetySettings: [{ category: 'HARM_CATEGORY_HARASSMENT', threshold: 'OFF' }],
      generationConfig: {
        topP: 0.5,
        topK: 3,
        maxOutputTokens: 64,
        stopSequences: ['x'],
        responseMimeType: 'application/json',
        responseSchema: {
          type: 'OBJECT',
          properties: { snake_name: { type: 'STRING' } },
          property_ordering: ['snake_name'],
        },
        responseModalities: ['TEXT'],
        thinkingConfig: { includeThoughts: true, thinkingBudget: 128 },
      },
      cachedContent: 'cachedContents/a_b',
      labels: { team_name: 'x' },
    });
  });

  test('camelCase wins where both spellings are given', () => {
    expect(decode({ contents: [hi], generationConfig: { topP: 0.1, top_p: 0.9 } }).settings.topP).toBe(0.1);
  });

  test('one content, one part or a plain instruction instead of lists', () => {
    const request = decode({ contents: { parts: { text: 'hi' } }, systemInstruction: 'Be kind.' });
    expect(request.messages).toHaveLength(1);
    expect(request.system[0]?.content).toEqual([{ type: 'text', text: 'Be kind.', at: 'systemInstruction' }]);
    expect(there({ contents: { parts: { text: 'hi' } }, systemInstruction: 'Be kind.' })).toEqual({
      contents: [{ parts: [{ text: 'hi' }] }],
      systemInstruction: { parts: [{ text: 'Be kind.' }] },
    });
  });

  test('null means not given', () => {
    const body = {
      contents: [hi],
      generationConfig: { temperature: null, thinkingConfig: null },
      tools: null,
      toolConfig: null,
      systemInstruction: null,
    };
    expect(decode(body).settings).toEqual({});
    expect(there(body)).toEqual({ contents: [hi], generationConfig: {} });
  });

  test('function and system roles', () => {
    const request = decode({
      contents: [
        { role: 'system', parts: [{ text: 'Rule' }] },
        hi,
        { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
        { role: 'function', parts: [{ functionResponse: { name: 'f', response: { output: 'x' } } }] },
        { role: 'system', parts: [{ text: 'New rule' }] },
      ],
    });
    expect(request.system.map(({ role }) => role)).toEqual(['system']);
    expect(request.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'system']);
    expect(chat.encodeRequest(request, target()).body.contents).toEqual([
      hi,
      { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
      { role: 'function', parts: [{ functionResponse: { name: 'f', response: { output: 'x' } } }] },
      { role: 'user', parts: [{ text: '<system>New rule</system>' }] },
    ]);
  });

  test('URL-safe base64 is made standard', () => {
    const request = decode({
      contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data: '-_-_' } }] }],
    });
    expect(request.messages[0]?.content[0]).toMatchObject({ source: { kind: 'data', data: '+/+/' } });
  });

  test('fields named like spellings or prototypes do no harm', () => {
    const body = JSON.parse(
      '{"contents":[{"role":"user","parts":[{"text":"x","$noId":true,"__proto__":{"a":1}}]}],"$written":{"reasoning":7},"constructor":{"b":2},"$empty":5}',
    ) as JsonObject;
    expect(there(body)).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'x', $noId: true }] }],
      $written: { reasoning: 7 },
      constructor: { b: 2 },
      $empty: 5,
    });
  });

  test('very deep values are refused or kept, never a crash', () => {
    let deep: JsonObject = {};
    for (let depth = 0; depth < 50_000; depth += 1) deep = { a: deep };
    const work = (): void => {
      chat.validate(
        { contents: [{ role: 'model', parts: [{ functionCall: { name: 'f', args: deep } }] }], extra: deep },
        params,
      );
      chat.validate(
        { contents: [hi], tools: [{ functionDeclarations: [{ name: 'f', parameters: deep }] }] },
        params,
      );
    };
    let error: unknown;
    try {
      work();
    } catch (caught) {
      error = caught;
    }
    expect(error === undefined || error instanceof GatewayError).toBe(true);
  });
});

describe('what other formats are told', () => {
  test('calls and results without ids are paired by name, in order', () => {
    const call = (name: string, id?: string) => ({
      functionCall: { name, args: {}, ...(id === undefined ? {} : { id }) },
    });
    const result = (name: string, id?: string) => ({
      functionResponse: { name, response: {}, ...(id === undefined ? {} : { id }) },
    });
    const request = decode({
      contents: [
        hi,
        { role: 'model', parts: [call('a'), call('b'), call('a'), call('c', 'own')] },
        { role: 'user', parts: [result('a'), result('a'), result('b'), result('c'), result('stray')] },
        { role: 'model', parts: [call('a')] },
        { role: 'user', parts: [result('a', 'invented')] },
      ],
    });
    const ids = request.messages.flatMap(({ content }) =>
      content.map((block) => ('id' in block ? block.id : '-')),
    );
    expect(ids).toEqual([
      '-',
      'call_1',
      'call_2',
      'call_3',
      'own',
      'call_1',
      'call_3',
      'call_2',
      'own',
      'call_4',
      'call_5',
      'call_5',
    ]);
  });

  test('a result is plain text where it can be, and says when the tool failed', () => {
    const blocks = decode({
      contents: [
        {
          parts: [
            { functionResponse: { name: 'a', response: { output: 'text' } } },
            { functionResponse: { name: 'a', response: { result: '{"x":1}' } } },
            { functionResponse: { name: 'a', response: { error: 'no' } } },
            { functionResponse: { name: 'a', response: { x: 1, output: 'y' } } },
          ],
        },
      ],
    }).messages[0]?.content;
    expect(blocks).toMatchObject([
      { content: [{ text: 'text' }], plain: true },
      { content: [{ text: '{"x":1}' }] },
      { content: [{ text: 'no' }], failed: true },
      { content: [{ text: '{"x":1,"output":"y"}' }] },
    ]);
  });

  test('media by their kind, addresses and vendor files apart', () => {
    const types = (parts: JsonObject[]) =>
      decode({ contents: [{ parts }] }).messages[0]?.content.map((block) =>
        'source' in block ? `${block.type} ${block.source.kind}` : block.type,
      );
    expect(
      types([
        { inlineData: { mimeType: 'image/webp', data: 'AA==' } },
        { inlineData: { mimeType: 'audio/mp3', data: 'AA==' } },
        { inlineData: { mimeType: 'text/plain', data: 'AA==' } },
        { fileData: { fileUri: 'https://a.example/b.jpeg?x=1' } },
        { fileData: { fileUri: 'https://youtu.be/abc' } },
        {
          fileData: {
            fileUri: 'https://generativelanguage.googleapis.com/v1beta/files/abc',
            mimeType: 'video/mp4',
          },
        },
        { fileData: { fileUri: 'gs://b/c.pdf', mimeType: 'application/pdf' } },
      ]),
    ).toEqual(['image data', 'audio data', 'file data', 'image url', 'video url', 'video file', 'file file']);
  });

  test('tools by what they are', () => {
    const request = decode({
      contents: [hi],
      tools: [
        {
          functionDeclarations: [
            {
              name: 'f',
              parameters: { type: 'OBJECT', properties: { a: { type: 'STRING', nullable: true } } },
            },
          ],
        },
        { googleSearch: {} },
        { codeExecution: {} },
        { urlContext: {} },
      ],
    });
    expect(request.tools).toMatchObject([
      {
        type: 'function',
        name: 'f',
        at: 'tools[0].functionDeclarations[0]',
        schema: { type: 'object', properties: { a: { type: ['string', 'null'] } } },
      },
      { type: 'web-search', at: 'tools[1].googleSearch' },
      { type: 'code-execution', at: 'tools[2].codeExecution' },
      { type: 'opaque', name: 'urlContext', at: 'tools[3].urlContext', value: { urlContext: {} } },
    ]);
  });

  test.each([
    [{ mode: 'AUTO' }, { type: 'auto' }],
    [{ mode: 'auto' }, { type: 'auto' }],
    [{ mode: 'VALIDATED' }, { type: 'auto' }],
    [{ mode: 'ANY' }, { type: 'required' }],
    [{ mode: 'NONE' }, { type: 'none' }],
    [
      { mode: 'ANY', allowedFunctionNames: ['f'] },
      { type: 'tool', name: 'f' },
    ],
    [
      { mode: 'ANY', allowedFunctionNames: ['f', 'g'] },
      { type: 'allowed', mode: 'required', names: ['f', 'g'] },
    ],
    [{ mode: 'MODE_UNSPECIFIED' }, undefined],
  ])('tool choice %j', (functionCallingConfig, choice) => {
    expect(decode({ contents: [hi], toolConfig: { functionCallingConfig } }).toolChoice).toEqual(choice);
  });

  test.each([
    [{ thinkingLevel: 'MEDIUM' }, { effort: 'medium' }],
    [{ thinkingBudget: 0 }, { budget: 0 }],
    [
      { includeThoughts: true, thinkingBudget: -1 },
      { show: true, budget: -1 },
    ],
    [{ thinkingLevel: 'THINKING_LEVEL_UNSPECIFIED' }, undefined],
  ])('thinking %j', (thinkingConfig, reasoning) => {
    expect(decode({ contents: [hi], generationConfig: { thinkingConfig } }).settings.reasoning).toEqual(
      reasoning,
    );
  });

  test('a signature that the gateway sealed names its true maker and never goes to this provider', () => {
    const proof = { format: 'messages', kind: 'signature', value: 'EqQB…' } as const;
    const thoughtSignature = Buffer.from(sealProof(proof)).toString('base64');
    const body = {
      contents: [
        hi,
        {
          role: 'model',
          parts: [
            { text: 'Hm.', thought: true, thoughtSignature },
            { functionCall: { name: 'f', args: {} }, thoughtSignature },
          ],
        },
        { role: 'user', parts: [{ functionResponse: { name: 'f', response: {} } }] },
      ],
    };
    const request = decode(body);
    expect(request.messages[1]?.content).toMatchObject([
      { type: 'reasoning', proof },
      { type: 'tool-call', proof },
    ]);
    const goal = target();
    expect(chat.encodeRequest(request, goal).body.contents).toMatchObject([
      hi,
      {
        role: 'model',
        parts: [{ functionCall: { name: 'f' }, thoughtSignature: 'skip_thought_signature_validator' }],
      },
      {},
    ]);
    expect(goal.losses).toEqual(['contents[1].parts[0]', 'contents[1].parts[1].proof']);
  });

  test('only an own channel can answer what lives in an account', () => {
    expect(chat.onlyNative!({ contents: [hi] })).toBeUndefined();
    expect(chat.onlyNative!({ contents: [hi], cached_content: 'cachedContents/x' })?.param).toBe(
      'cachedContent',
    );
    expect(chat.onlyNative!({ contents: [hi], continuationToken: 'dG9rZW4=' })?.status).toBe(400);
  });
});

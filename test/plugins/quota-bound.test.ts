import * as fc from 'fast-check';
import { countTokens as cl100k } from 'gpt-tokenizer/encoding/cl100k_base';
import { countTokens as o200k } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, test } from 'vitest';
import { Exchange } from '../../core/call/exchange.ts';
import { firstView } from '../../core/call/view.ts';
import { type Call, type Wire, type Target } from '../../core/sdk/call.ts';
import type { Codec, Format, Operation, RouteParams } from '../../core/sdk/format.ts';
import { outlineOf } from '../../core/json/outline/index.ts';
import audio from '../../core/formats/audio/index.ts';
import chatCompletions from '../../core/formats/chat-completions/index.ts';
import embeddings from '../../core/formats/embeddings/index.ts';
import generateContent from '../../core/formats/generate-content/index.ts';
import images from '../../core/formats/images/index.ts';
import messages from '../../core/formats/messages/index.ts';
import moderations from '../../core/formats/moderations/index.ts';
import rerank from '../../core/formats/rerank/index.ts';
import responses from '../../core/formats/responses/index.ts';
import textCompletions from '../../core/formats/text-completions/index.ts';
import { isSingleChoice } from '../../core/routing/target.ts';
import type { JsonObject, JsonValue } from '../../core/model/json.ts';
import { boundOf as boundWith, estimateInput, type Bound } from '../../plugins/quota/estimate.ts';
import { anyCharacter } from '../support/characters.ts';
import { tries } from '../support/tries.ts';

const targets = [{ traits: {}, channel: { speaks: {} } }] as unknown as readonly Target[];
const assumed = 1_000;

/** All targets speak the client's own format, unless a test says otherwise. */
const formats: Readonly<Record<string, Format>> = Object.fromEntries(
  [chatCompletions, messages, generateContent, responses, textCompletions].map((one) => [one.name, one]),
);
const boundOf = (call: Call, among: readonly Target[], output: number): Bound =>
  boundWith(call, among, output, (own, target) =>
    isSingleChoice(own as Call, target as Target, (name) => formats[name]),
  );

function callOf(format: Format, operation: Operation, body: JsonObject, params: RouteParams = {}): Call {
  return firstView(exchangeOf(format, operation, body, params));
}

/** As a long request comes, of which the outline was checked alone. */
function longCallOf(format: Format, operation: Operation, body: JsonObject, params: RouteParams): Call {
  const exchange = exchangeOf(format, operation, body, params);
  const { wire, codec } = exchange;
  const outline = outlineOf(wire.bytes, { depth: 100, values: 100_000, members: 2000 });
  if (outline === undefined) throw new Error('A request has an outline.');
  exchange.outline(outline, codec.validate(outline.body, params));
  return firstView(exchange);
}

function exchangeOf(format: Format, operation: Operation, body: JsonObject, params: RouteParams): Exchange {
  const codec = format.codecs[operation] as Codec | undefined;
  if (codec === undefined) throw new Error(`${format.name} has no ${operation}.`);
  const wire: Wire = {
    method: 'POST',
    path: '/',
    query: new URLSearchParams(),
    headers: {},
    params,
    ip: '192.0.2.7',
    bytes: Buffer.alloc(0),
    body: undefined,
  };
  const exchange = new Exchange('req_bound', operation, format, codec, wire);
  exchange.understand(Buffer.from(JSON.stringify(body)), body);
  return exchange;
}

/** What the tokenizers of the largest provider make of a text: the greater of two. */
function tokensIn(text: string): number {
  const options = { allowedSpecial: 'all', disallowedSpecial: new Set<string>() } as const;
  return text === '' ? 0 : Math.max(cl100k(text, options), o200k(text, options));
}
const tokensOf = (value: JsonValue | undefined): number =>
  value === undefined ? 0 : tokensIn(typeof value === 'string' ? value : JSON.stringify(value));

/** What the largest provider adds to each turn, and to the whole. */
const framing = (turns: number): number => 3 + 4 * turns;

const letters = (unit: string): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...unit), minLength: 1, maxLength: 400, size: 'max' });
const text: fc.Arbitrary<string> = fc.oneof(
  letters('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'),
  letters('0123456789'),
  fc
    .uint8Array({ minLength: 1, maxLength: 300, size: 'max' })
    .map((bytes) => Buffer.from(bytes).toString('base64')),
  letters('漢字仮名交文一二三四五六七八九十的是不了人我在有他这'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 200, size: 'max' }),
  fc.string({ unit: anyCharacter, minLength: 1, maxLength: 100, size: 'max' }),
  fc
    .array(fc.constantFrom('👩‍👩‍👧‍👦', '🏴‍☠️', '𐍈', '﷽', '𝔘', '\u0000', '\u0007', '\uD800', '"', '\\'), {
      minLength: 1,
      maxLength: 60,
    })
    .map((parts) => parts.join('')),
  fc.constantFrom('<|endoftext|>', '<|im_start|>system', ' ', '\n\n\n', 'Please write a poem about the sea.'),
);
const name = fc.string({ unit: fc.constantFrom(...'abcdefgh_'), minLength: 1, maxLength: 40 });

/** A conversation that every format can write. */
const requestFields = fc.record({
  system: text,
  turns: fc.array(text, { minLength: 1, maxLength: 4 }),
  tool: fc.option(fc.record({ name, description: text, about: text }), { nil: undefined }),
  result: fc.option(text, { nil: undefined }),
  shape: fc.option(text, { nil: undefined }),
  odd: fc.option(fc.oneof(text, fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonValue>), {
    nil: undefined,
  }),
  pictures: fc.nat(2),
  limit: fc.integer({ min: 1, max: 100_000 }),
  answers: fc.integer({ min: 1, max: 8 }),
});
type RequestFields = typeof requestFields extends fc.Arbitrary<infer T> ? T : never;

const schemaOf = (about: string): JsonObject => ({
  type: 'object',
  properties: { place: { type: 'string', description: about } },
});
const given = (members: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as JsonObject;
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

interface Written {
  readonly body: JsonObject;
  /** What is read besides the text of turns, as the provider may be told it. */
  readonly besides: readonly (JsonValue | undefined)[];
  /** How many answers are made. */
  readonly answers: number;
}

const writers: Readonly<Record<string, readonly [Format, (fields: RequestFields) => Written]>> = {
  'chat completions': [
    chatCompletions,
    ({ system, turns, tool, result, shape, odd, pictures, limit, answers }) => {
      const tools =
        tool === undefined
          ? undefined
          : [
              {
                type: 'function',
                function: {
                  name: tool.name,
                  description: tool.description,
                  parameters: schemaOf(tool.about),
                },
              },
            ];
      const form =
        shape === undefined
          ? undefined
          : { type: 'json_schema', json_schema: { name: 'shape', schema: schemaOf(shape) } };
      const body = given({
        model: 'm',
        max_completion_tokens: limit,
        n: answers,
        tools,
        response_format: form,
        odd,
        messages: [
          { role: 'system', content: system },
          ...turns.map((content) => ({ role: 'user', content })),
          ...(result === undefined
            ? []
            : [
                {
                  role: 'assistant',
                  tool_calls: [
                    { id: 'call_1', type: 'function', function: { name: 'f', arguments: result } },
                  ],
                },
                { role: 'tool', tool_call_id: 'call_1', content: result },
              ]),
          ...times(pictures, () => ({
            role: 'user',
            content: [
              { type: 'text', text: 'See.' },
              { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } },
            ],
          })),
        ],
      } as JsonObject);
      return { body, besides: [tools, form, odd, result], answers };
    },
  ],
  messages: [
    messages,
    ({ system, turns, tool, result, odd, pictures, limit }) => {
      const tools =
        tool === undefined
          ? undefined
          : [{ name: tool.name, description: tool.description, input_schema: schemaOf(tool.about) }];
      const body = given({
        model: 'm',
        max_tokens: limit,
        system,
        tools,
        odd,
        messages: [
          ...turns.map((content) => ({ role: 'user', content })),
          ...(result === undefined
            ? []
            : [
                {
                  role: 'assistant',
                  content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: { result } }],
                },
                { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: result }] },
              ]),
          ...times(pictures, () => ({
            role: 'user',
            content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } }],
          })),
        ],
      } as JsonObject);
      return { body, besides: [tools, odd, result === undefined ? undefined : { result }], answers: 1 };
    },
  ],
  responses: [
    responses,
    ({ system, turns, tool, result, shape, odd, pictures, limit }) => {
      const tools =
        tool === undefined
          ? undefined
          : [
              {
                type: 'function',
                name: tool.name,
                description: tool.description,
                parameters: schemaOf(tool.about),
                strict: false,
              },
            ];
      const format =
        shape === undefined ? undefined : { type: 'json_schema', name: 'shape', schema: schemaOf(shape) };
      const body = given({
        model: 'm',
        max_output_tokens: limit,
        instructions: system,
        tools,
        odd,
        ...(format === undefined ? {} : { text: { format } }),
        input: [
          ...turns.map((content) => ({ role: 'user', content })),
          ...(result === undefined
            ? []
            : [
                { type: 'function_call', call_id: 'call_1', name: 'f', arguments: result },
                { type: 'function_call_output', call_id: 'call_1', output: result },
              ]),
          ...times(pictures, () => ({
            role: 'user',
            content: [{ type: 'input_image', image_url: `data:image/png;base64,${pixel}` }],
          })),
        ],
      } as JsonObject);
      return { body, besides: [tools, format, odd, result], answers: 1 };
    },
  ],
  generateContent: [
    generateContent,
    ({ system, turns, tool, result, shape, odd, pictures, limit, answers }) => {
      const tools =
        tool === undefined
          ? undefined
          : [
              {
                functionDeclarations: [
                  { name: tool.name, description: tool.description, parameters: schemaOf(tool.about) },
                ],
              },
            ];
      const body = given({
        systemInstruction: { parts: [{ text: system }] },
        tools,
        odd,
        generationConfig: given({
          maxOutputTokens: limit,
          candidateCount: answers,
          responseMimeType: shape === undefined ? undefined : 'application/json',
          responseSchema: shape === undefined ? undefined : schemaOf(shape),
        } as JsonObject),
        contents: [
          ...turns.map((one) => ({ role: 'user', parts: [{ text: one }] })),
          ...(result === undefined
            ? []
            : [
                { role: 'model', parts: [{ functionCall: { name: 'f', args: { result } } }] },
                { role: 'user', parts: [{ functionResponse: { name: 'f', response: { result } } }] },
              ]),
          ...times(pictures, () => ({
            role: 'user',
            parts: [{ inlineData: { mimeType: 'image/png', data: pixel } }],
          })),
        ],
      } as JsonObject);
      const called = result === undefined ? undefined : { result };
      const form = shape === undefined ? undefined : schemaOf(shape);
      return { body, besides: [tools, form, odd, called, called], answers };
    },
  ],
};

/** No picture has fewer than this at any large provider that counts them so, however small it is. */
const smallPicture = 85;

describe('the most that a chat may come to', () => {
  test.each(Object.entries(writers))('is no less than what is counted: %s', (_name, [format, write]) => {
    fc.assert(
      fc.property(requestFields, (one) => {
        const { body, besides, answers } = write(one);
        const call = callOf(format, 'chat', body, { model: 'm' });
        const words = [one.system, ...one.turns, ...(one.result === undefined ? [] : [one.result])];
        const turns = words.length + 1 + one.pictures;
        const counted =
          framing(turns) +
          [...words, ...besides].reduce<number>((sum, value) => sum + tokensOf(value), 0) +
          one.pictures * (smallPicture + tokensIn('See.'));
        const bound = boundOf(call, targets, assumed);
        expect(bound.input).toBeGreaterThanOrEqual(counted);
        expect(bound.input).toBeGreaterThanOrEqual(estimateInput(call));
        expect(bound.output.most).toBe(one.limit * answers);
        const long = longCallOf(format, 'chat', body, { model: 'm' });
        const ofLong = boundOf(long, targets, assumed);
        long.sent();
        expect(boundOf(long, targets, assumed), 'also when it is on its way').toEqual(ofLong);
        expect(ofLong.input).toBeGreaterThanOrEqual(counted);
        expect(ofLong.output).toEqual(bound.output);
      }),
      { numRuns: tries(300), endOnFailure: true },
    );
  });

  const plain = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };

  test('of calls with the same tools is the same, and of calls with longer tools more', () => {
    const toolsNamed = (value: string): JsonValue =>
      Array.from({ length: 20 }, (_, index) => ({
        type: 'function',
        function: {
          name: `tool${index}`,
          parameters: { type: 'object', properties: { text: { enum: [value, `größe ${index}`] } } },
        },
      }));
    const inputOf = (value: string): number =>
      boundOf(
        longCallOf(chatCompletions, 'chat', { ...plain, tools: toolsNamed(value) }, {}),
        targets,
        assumed,
      ).input;
    const first = inputOf('a');
    expect(inputOf('a')).toBe(first);
    expect(inputOf('ab')).toBe(first + 20);
    expect(
      boundOf(callOf(chatCompletions, 'chat', { ...plain, tools: toolsNamed('a') }), targets, assumed).input,
    ).toBe(first);
  });

  test('is little for a short question', () => {
    const { input, output } = boundOf(
      callOf(chatCompletions, 'chat', { ...plain, stream: false, max_tokens: 15 }),
      targets,
      assumed,
    );
    expect([input, output.most]).toEqual([10, 15]);
  });

  test.each<[string, JsonObject, number]>([
    ['the larger of two limits', { max_tokens: 900, max_completion_tokens: 20 }, 900],
    ['the larger, the other way round', { max_tokens: 20, max_completion_tokens: 900 }, 900],
    ['answers that nobody gets to see', { max_tokens: 20, n: 2, best_of: 5 }, 100],
    [
      'words that were predicted for the model',
      { max_tokens: 20, prediction: { content: 'x'.repeat(400) } },
      435,
    ],
  ])('has room for %s', (_what, more, most) => {
    expect(
      boundOf(callOf(chatCompletions, 'chat', { ...plain, ...more }), targets, assumed).output.most,
    ).toBe(most);
  });

  test.each<[string, JsonObject, number]>([
    ['one answer', { prompt: 'a' }, 20],
    ['the best of twenty', { prompt: 'a', best_of: 20 }, 400],
    ['three answers', { prompt: 'a', n: 3 }, 60],
    ['an answer to each of several prompts', { prompt: ['a', 'b', 'c'] }, 60],
    ['the best of two for each of them', { prompt: ['a', 'b', 'c'], best_of: 2 }, 120],
    ['a prompt that is written as tokens', { prompt: [1, 2, 3] }, 20],
    ['several of these', { prompt: [[1, 2], [3]] }, 40],
  ])('of a text completion has room for %s', (_what, more, most) => {
    const call = callOf(textCompletions, 'chat', { model: 'm', max_tokens: 20, ...more });
    expect(boundOf(call, targets, assumed).output.most).toBe(most);
  });

  test.each<[string, JsonObject]>([
    ['earlier turns that the provider keeps', { previous_response_id: 'resp_1', input: 'hi' }],
    ['a prompt that the provider keeps', { prompt: { id: 'pmpt_1' }, input: 'hi' }],
    ['an item that the provider keeps', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
    ['what the provider’s own tools find', { input: 'hi', tools: [{ type: 'web_search' }] }],
  ])('has room for %s: all that the model can read', (_what, more) => {
    const limited = [{ traits: { inputLimit: 30_000 }, channel: { speaks: {} } }] as unknown as Target[];
    const bound = boundOf(callOf(responses, 'chat', { model: 'm', ...more }), limited, assumed);
    expect(bound.input).toBeGreaterThan(30_000);
    expect(bound.input).toBeLessThan(32_000);
  });

  test.each<[string, Format, JsonObject]>([
    ['previous_response_id', responses, { input: 'hi', previous_response_id: 'resp_1' }],
    ['conversation', responses, { input: 'hi', conversation: 'conv_1' }],
    ['conversation', responses, { input: 'hi', conversation: { id: 'conv_1' } }],
    [
      'cachedContent',
      generateContent,
      { contents: [{ parts: [{ text: 'hi' }] }], cachedContent: 'cachedContents/1' },
    ],
    [
      'cached_content',
      generateContent,
      { contents: [{ parts: [{ text: 'hi' }] }], cached_content: 'cachedContents/1' },
    ],
    [
      'mcp_servers',
      messages,
      {
        max_tokens: 5,
        messages: [{ role: 'user', content: 'hi' }],
        mcp_servers: [{ type: 'url', url: 'https://mcp.example.com', name: 'example' }],
      },
    ],
  ])('has room for what "%s" brings, and needs none where it is null', (field, format, body) => {
    const limited = [{ traits: { inputLimit: 30_000 }, channel: { speaks: {} } }] as unknown as Target[];
    const params = { model: 'm' };
    const bound = (one: JsonObject) =>
      boundOf(callOf(format, 'chat', { model: 'm', ...one }, params), limited, assumed).input;
    expect(bound(body)).toBeGreaterThan(30_000);
    expect(bound({ ...body, [field]: null })).toBeLessThan(1_000);
  });

  test('of thinking that comes back is about its length, so that long conversations are not refused', () => {
    const thinking = { type: 'thinking', thinking: 'x'.repeat(4_000), signature: 's'.repeat(400) };
    const turns = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [thinking, { type: 'text', text: 'ho' }] },
      { role: 'user', content: 'hi' },
    ];
    const call = callOf(messages, 'chat', { model: 'm', max_tokens: 5, messages: turns });
    const { input } = boundOf(call, targets, assumed);
    expect(input).toBeGreaterThan(4_400);
    expect(input).toBeLessThan(4_400 + 400);
  });

  test('has room for what the operator tells each chat of a channel', () => {
    const target = [
      { traits: {}, channel: { speaks: {}, systemPrompt: { text: 'x'.repeat(500), place: 'before' } } },
    ] as unknown as Target[];
    expect(boundOf(callOf(chatCompletions, 'chat', plain), target, assumed).input).toBe(10 + 508);
  });

  test('has room for the description of each tool that the provider writes and the client runs', () => {
    const bound = (...types: readonly string[]): number =>
      boundOf(
        callOf(messages, 'chat', {
          ...plain,
          max_tokens: 5,
          tools: types.map((type) => ({ type, name: type.split('_')[0] ?? '' })),
        }),
        targets,
        assumed,
      ).input;
    const [none, one, two] = [bound(), bound('bash_20250124'), bound('bash_20250124', 'memory_20250818')];
    // Instructions before all tools, and a description of each.
    expect(one - none).toBeGreaterThan(1_600);
    expect(two - one).toBeGreaterThan(800);
    expect(two - none).toBeLessThan(3_000);
  });

  test('has room for a summary of the conversation where the gateway may ask for one', () => {
    const management = { context_management: [{ type: 'compaction' }] };
    const summary = { inputLimit: 100_000, outputLimit: 500 };
    const limited = [{ traits: summary, channel: { speaks: {} } }] as unknown as readonly Target[];
    const bound = (format: Format, operation: Operation, body: JsonObject): Bound =>
      boundOf(callOf(format, operation, body), limited, assumed);
    const request = { model: 'm', input: 'hi', max_output_tokens: 20 };
    const [without, summarised] = [
      bound(responses, 'chat', request),
      bound(responses, 'chat', { ...request, ...management }),
    ];
    expect(summarised.input).toBeGreaterThan(2 * without.input + 2_000);
    expect(summarised.output.most).toBe(without.output.most + 500);
    // Other formats have no such member, and counting asks for no summary.
    const chat = { ...plain, max_tokens: 20, ...management };
    expect(bound(chatCompletions, 'chat', chat).output.most).toBe(20);
    expect(bound(responses, 'count-tokens', { ...request, ...management }).input).toBeLessThan(2_000);
  });

  test('is at the prices of the media that stand in it, and at any of them where something is not seen', () => {
    const mediaOf = (...parts: readonly JsonObject[]): readonly string[] => {
      const greeting = { type: 'text', text: 'hi' };
      const body = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: [greeting, ...parts] }] };
      return [...(boundOf(callOf(chatCompletions, 'chat', body), targets, assumed).media ?? [])].toSorted();
    };
    const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } };
    const sound = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };
    const file = { type: 'file', file: { file_id: 'file-1' } };
    expect([mediaOf(), mediaOf(picture), mediaOf(sound), mediaOf(picture, sound), mediaOf(file)]).toEqual([
      [],
      ['image'],
      ['audio'],
      ['audio', 'image'],
      ['audio', 'image', 'video'],
    ]);
  });

  test.each<[string, JsonObject | undefined, Bound['units']]>([
    ['no search', undefined, {}],
    ['a search of the provider’s own size', {}, {}],
    ['a search of a size', { search_context_size: 'high' }, { callsAt: { high: 1 } }],
    ['a size that is no name', { search_context_size: 7 }, {}],
    ['a size that is too long for one', { search_context_size: 'x'.repeat(20) }, {}],
  ])('has the price of %s', (_what, options, units) => {
    const body = { ...plain, ...(options === undefined ? {} : { web_search_options: options }) };
    expect(boundOf(callOf(chatCompletions, 'chat', body), targets, assumed).units).toEqual(units);
  });

  test('has room for the limit that a responses channel is raised to', () => {
    const foreign = [{ traits: {}, channel: { speaks: { chat: ['responses'] } } }] as unknown as Target[];
    const call = callOf(chatCompletions, 'chat', { ...plain, max_tokens: 1 });
    expect(boundOf(call, foreign, assumed).output.most).toBe(16);
  });

  const withTraits = (traits: Target['traits']): Target[] =>
    [{ traits, channel: { speaks: { chat: ['chat-completions'] }, codecs: {} } }] as unknown as Target[];

  test('has room for the least limit that a model takes, to which a lower one is raised', () => {
    const raised = withTraits({ ranges: { maxOutput: { min: 200 } } });
    const call = callOf(chatCompletions, 'chat', { ...plain, max_tokens: 15, n: 2 });
    expect(boundOf(call, raised, assumed).output.most).toBe(400);
  });

  test.each<[string, Target['traits']]>([
    ['a refused setting', { refuses: ['maxOutput'] }],
    ['a refused member', { refusedMembers: ['max_tokens'] }],
    ['a refused member with its path', { refusedMembers: [{ path: 'generationConfig.maxOutputTokens' }] }],
  ])('has room for the longest answer of a model that is sent no limit: %s', (_how, traits) => {
    const call = callOf(chatCompletions, 'chat', { ...plain, max_tokens: 15 });
    const { output } = boundOf(call, withTraits({ ...traits, outputLimit: 8000 }), assumed);
    expect(output).toEqual({ most: 8000 });
  });

  test('is the limit where a model takes it under another name', () => {
    const renamed = withTraits({ refusedMembers: [{ path: 'max_tokens', as: 'max_completion_tokens' }] });
    const call = callOf(chatCompletions, 'chat', { ...plain, max_tokens: 15 });
    expect(boundOf(call, renamed, assumed).output.most).toBe(15);
  });
});

describe('the most that other requests may come to is no less than what is counted', () => {
  const counts = (format: Format, operation: Operation, body: JsonObject, counted: number) => ({
    call: callOf(format, operation, body, { model: 'm' }),
    counted,
  });
  const sum = (list: readonly string[]): number => list.reduce((all, one) => all + tokensIn(one), 0);

  test.each<[string, (texts: readonly string[]) => { readonly call: Call; readonly counted: number }]>([
    [
      'embeddings',
      (texts) =>
        counts(embeddings, 'embed', { model: 'm', input: [...texts] }, sum(texts) + 2 * texts.length),
    ],
    [
      'embedContent',
      (texts) =>
        counts(
          generateContent,
          'embed',
          { requests: texts.map((one) => ({ model: 'models/m', content: { parts: [{ text: one }] } })) },
          sum(texts) + 2 * texts.length,
        ),
    ],
    [
      'rerank',
      (texts) =>
        counts(
          rerank,
          'rerank',
          { model: 'm', query: texts[0] ?? '', documents: [...texts] },
          sum(texts) + texts.length * (tokensIn(texts[0] ?? '') + 4),
        ),
    ],
    [
      'moderations',
      (texts) =>
        counts(moderations, 'moderate', { model: 'm', input: [...texts] }, sum(texts) + 2 * texts.length),
    ],
    [
      'images',
      (texts) => {
        // One of blanks alone is refused.
        const prompt = `a ${texts.join(' ')}`;
        return counts(images, 'generate-image', { model: 'm', prompt }, tokensIn(prompt));
      },
    ],
    [
      'speech',
      (texts) =>
        counts(
          audio,
          'speak',
          { model: 'm', input: texts.join(' '), voice: 'nova', instructions: texts[0] ?? '' },
          tokensIn(texts.join(' ')) + tokensIn(texts[0] ?? ''),
        ),
    ],
  ])('%s', (_what, written) => {
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 5 }), (texts) => {
        const { call, counted } = written(texts);
        const bound = boundOf(call, targets, assumed);
        expect(bound.input).toBeGreaterThanOrEqual(counted);
        expect(bound.input).toBeGreaterThanOrEqual(estimateInput(call));
      }),
      { numRuns: tries(200), endOnFailure: true },
    );
  });

  test('and so are images by their number, and speech by its slowness', () => {
    const units = (body: JsonObject) =>
      boundOf(callOf(images, 'generate-image', { model: 'm', prompt: 'a hat', ...body }), targets, assumed);
    expect([units({}).units, units({ n: 4 }).units]).toEqual([{ images: 1 }, { images: 4 }]);
    expect(units({ n: 4 }).output.most).toBe(4 * units({}).output.most);
    const speechBound = (speed: number) =>
      boundOf(callOf(audio, 'speak', { model: 'm', input: '12', voice: 'nova', speed }), targets, assumed)
        .output.most;
    expect(speechBound(0.25)).toBe(4 * speechBound(1));
  });
});

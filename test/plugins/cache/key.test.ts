import { hash } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ChatRequest } from 'sluice';
import { makeCall } from '../../../core/sdk/testing/call.ts';
import { canonical } from '../../../plugins/cache/canonical.ts';
import { compactJson } from '../../../plugins/cache/compact-json.ts';
import { cacheOptions } from '../../../plugins/cache/options.ts';
import { Keys } from '../../../plugins/cache/key.ts';

const keys = new Keys(cacheOptions.parse({ toolCalls: true }));

/** The digest of a request as a client of a format writes it. */
async function digest(format: string, body: object, headers: Readonly<Record<string, string>> = {}) {
  const { call, read } = await makeCall({ format, body: body as never, model: 'm', headers });
  read();
  const key = keys.of(call);
  if (typeof key !== 'object') throw new Error(`This request is not cached: ${key}.`);
  return key.digest;
}

/** A conversation in no format's words. */
interface Talk {
  readonly system: string;
  readonly turns: readonly { readonly question: string; readonly answer: string }[];
  readonly last: string;
  readonly call: { readonly name: string; readonly city: string; readonly result: string } | undefined;
  readonly tools: boolean;
  readonly maxOutput: number;
  readonly temperature: number;
  readonly topP: number;
  readonly stop: readonly string[];
}

const word = fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' }).map((text) => `w${text}`);

/** A text that is short, or so long that a digest stands for it. */
const passage = fc.oneof(
  word,
  fc.tuple(word, word).map(([one, other]) => one.repeat(150) + other),
);

const talk: fc.Arbitrary<Talk> = fc.record({
  system: passage,
  turns: fc.array(fc.record({ question: passage, answer: passage }), { maxLength: 3 }),
  last: passage,
  call: fc.option(fc.record({ name: fc.constantFrom('weather', 'time'), city: word, result: word }), {
    nil: undefined,
  }),
  tools: fc.constant(true),
  maxOutput: fc.integer({ min: 1, max: 4_096 }),
  temperature: fc.integer({ min: 0, max: 10 }).map((tenths) => tenths / 10),
  topP: fc.integer({ min: 1, max: 10 }).map((tenths) => tenths / 10),
  stop: fc.array(word, { minLength: 1, maxLength: 3 }),
});

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const names = ['weather', 'time'];

/** The same talk in each format. `id` is what the client calls the tool call, `space` how it writes JSON. */
const written: Readonly<Record<string, (talk: Talk, id: string, space?: number) => object>> = {
  'chat-completions': ({ system, turns, last, call, maxOutput, temperature, topP, stop }, id, space) => ({
    model: 'm',
    max_tokens: maxOutput,
    temperature,
    top_p: topP,
    stop,
    tools: names.map((name) => ({
      type: 'function',
      function: { name, description: 'd', parameters: schema },
    })),
    messages: [
      { role: 'system', content: system },
      ...turns.flatMap(({ question, answer }) => [
        { role: 'user', content: question },
        { role: 'assistant', content: answer },
      ]),
      { role: 'user', content: last },
      ...(call === undefined
        ? []
        : [
            {
              role: 'assistant',
              content: null,
              tool_calls: [
                {
                  id,
                  type: 'function',
                  function: { name: call.name, arguments: JSON.stringify({ city: call.city }, null, space) },
                },
              ],
            },
            { role: 'tool', tool_call_id: id, content: call.result },
          ]),
    ],
  }),
  messages: ({ system, turns, last, call, maxOutput, temperature, topP, stop }, id) => ({
    model: 'm',
    max_tokens: maxOutput,
    temperature,
    top_p: topP,
    stop_sequences: stop,
    system,
    tools: names.map((name) => ({ name, description: 'd', input_schema: schema })),
    messages: [
      ...turns.flatMap(({ question, answer }) => [
        { role: 'user', content: question },
        { role: 'assistant', content: answer },
      ]),
      { role: 'user', content: [{ type: 'text', text: last }] },
      ...(call === undefined
        ? []
        : [
            {
              role: 'assistant',
              content: [{ type: 'tool_use', id, name: call.name, input: { city: call.city } }],
            },
            { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: call.result }] },
          ]),
    ],
  }),
  'generate-content': ({ system, turns, last, call, maxOutput, temperature, topP, stop }) => ({
    systemInstruction: { role: 'user', parts: [{ text: system }] },
    generationConfig: { maxOutputTokens: maxOutput, temperature, topP, stopSequences: stop },
    tools: [
      {
        functionDeclarations: names.map((name) => ({
          name,
          description: 'd',
          parameters: { type: 'OBJECT', properties: { city: { type: 'STRING' } }, required: ['city'] },
        })),
      },
    ],
    contents: [
      ...turns.flatMap(({ question, answer }) => [
        { role: 'user', parts: [{ text: question }] },
        { role: 'model', parts: [{ text: answer }] },
      ]),
      { role: 'user', parts: [{ text: last }] },
      ...(call === undefined
        ? []
        : [
            { role: 'model', parts: [{ functionCall: { name: call.name, args: { city: call.city } } }] },
            {
              role: 'user',
              parts: [{ functionResponse: { name: call.name, response: { output: call.result } } }],
            },
          ]),
    ],
  }),
};

/** Responses know no stop sequences. */
const inResponses = (
  { system, turns, last, call, maxOutput, temperature, topP }: Talk,
  id: string,
): object => ({
  model: 'm',
  instructions: system,
  max_output_tokens: maxOutput,
  temperature,
  top_p: topP,
  tools: names.map((name) => ({
    type: 'function',
    name,
    description: 'd',
    parameters: schema,
    strict: false,
  })),
  input: [
    ...turns.flatMap(({ question: bodyOf, answer }) => [
      { role: 'user', content: bodyOf },
      {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: answer, annotations: [] }],
      },
    ]),
    { role: 'user', content: [{ type: 'input_text', text: last }] },
    ...(call === undefined
      ? []
      : [
          {
            type: 'function_call',
            call_id: id,
            name: call.name,
            arguments: JSON.stringify({ city: call.city }),
          },
          { type: 'function_call_output', call_id: id, output: call.result },
        ]),
  ],
});

describe('equal requests', () => {
  test('have one key in all formats, whatever ids and white space their clients write', async () => {
    await fc.assert(
      fc.asyncProperty(talk, async (one) => {
        const digests = await Promise.all([
          digest('chat-completions', written['chat-completions']?.(one, 'call_a') ?? {}),
          digest('chat-completions', written['chat-completions']?.(one, 'call_b', 2) ?? {}),
          digest('messages', written['messages']?.(one, 'toolu_a') ?? {}),
          digest('generate-content', written['generate-content']?.(one, '') ?? {}),
        ]);
        expect(new Set(digests).size).toBe(1);
      }),
      { numRuns: 60 },
    );
  });

  test('have one key in Responses and chat completions', async () => {
    await fc.assert(
      fc.asyncProperty(talk, async (one) => {
        const { stop: _stop, ...chat } = (written['chat-completions']?.(one, 'call_a') ?? {}) as {
          stop?: unknown;
        };
        expect(await digest('responses', inResponses(one, 'call_b'))).toBe(
          await digest('chat-completions', chat),
        );
      }),
      { numRuns: 60 },
    );
  });

  test('have one key whether they are streamed or not', async () => {
    const body = { model: 'm', messages: [{ role: 'user', content: 'Go.' }] };
    const streamed = { ...body, stream: true, stream_options: { include_usage: true } };
    expect(await digest('chat-completions', streamed)).toBe(await digest('chat-completions', body));
  });
});

/** A change of a request that its provider would notice. */
type Change = readonly [name: string, change: (body: Json) => Json];
type Json = { [name: string]: unknown };

const question = (body: Json): Json => structuredClone(body);
const lastOf = (body: Json): Json => (body['messages'] as Json[]).at(-1) ?? {};

const changes: readonly Change[] = [
  ['model', (body) => ({ ...body, model: 'n' })],
  ['temperature', (body) => ({ ...body, temperature: Number(body['temperature']) + 0.05 })],
  ['top_p', (body) => ({ ...body, top_p: Number(body['top_p']) / 2 })],
  ['limit', (body) => ({ ...body, max_tokens: Number(body['max_tokens']) + 1 })],
  ['stop', (body) => ({ ...body, stop: [...(body['stop'] as string[]), 'z'] })],
  ['seed', (body) => ({ ...body, seed: 7 })],
  ['user', (body) => ({ ...body, user: 'u' })],
  ['metadata', (body) => ({ ...body, metadata: { a: 'b' } })],
  ['unknown member', (body) => ({ ...body, x_new: { a: 1 } })],
  ['unknown member that looks like a spelling', (body) => ({ ...body, $limit: 'x' })],
  ['logit_bias', (body) => ({ ...body, logit_bias: { '1': 2 } })],
  ['reasoning_effort', (body) => ({ ...body, reasoning_effort: 'low' })],
  ['response_format', (body) => ({ ...body, response_format: { type: 'json_object' } })],
  ['tool_choice', (body) => ({ ...body, tool_choice: 'none' })],
  ['tools left out', ({ tools: _tools, ...body }) => body],
  [
    'order of a schema',
    (body) => ({
      ...body,
      tools: (body['tools'] as Json[]).map((tool) => ({
        ...tool,
        function: {
          ...(tool['function'] as Json),
          parameters: Object.fromEntries(Object.entries(schema).toReversed()),
        },
      })),
    }),
  ],
  [
    'strict tool',
    (body) => ({
      ...body,
      tools: (body['tools'] as Json[]).map((tool) => ({
        ...tool,
        function: { ...(tool['function'] as Json), strict: true },
      })),
    }),
  ],
  ['turn left out', (body) => ({ ...body, messages: (body['messages'] as Json[]).slice(1) })],
  [
    'word added',
    (body) => ({ ...body, messages: [...(body['messages'] as Json[]), { role: 'user', content: 'And?' }] }),
  ],
  [
    'member of a message',
    (body) => ({
      ...body,
      messages: [...(body['messages'] as Json[]).slice(0, -1), { ...lastOf(body), x_new: 1 }],
    }),
  ],
  [
    'developer in place of system',
    (body) => ({
      ...body,
      messages: (body['messages'] as Json[]).map((message) =>
        message['role'] === 'system' ? { ...message, role: 'developer' } : message,
      ),
    }),
  ],
  [
    'name of a participant',
    (body) => ({
      ...body,
      messages: (body['messages'] as Json[]).map((message) =>
        message['role'] === 'user' ? { ...message, name: 'ann' } : message,
      ),
    }),
  ],
];

describe('requests that differ', () => {
  test('in anything that reaches the provider have different keys', async () => {
    await fc.assert(
      fc.asyncProperty(
        talk,
        fc.subarray([...changes.keys()], { minLength: 1, maxLength: 4 }),
        async (one, chosen) => {
          const body = (written['chat-completions']?.(one, 'call_a') ?? {}) as Json;
          const before = await digest('chat-completions', body);
          for (const index of chosen) {
            const [name, change] = changes[index] ?? ['', question];
            const changed = change(structuredClone(body));
            // A turn of tools alone cannot be the first.
            expect([name, (await digest('chat-completions', changed)) === before]).toEqual([name, false]);
          }
        },
      ),
      { numRuns: 100 },
    );
  });

  test('in one talk have different keys in every format', async () => {
    await fc.assert(
      fc.asyncProperty(talk, talk, async (one, other) => {
        fc.pre(JSON.stringify(one) !== JSON.stringify(other));
        for (const [format, write] of Object.entries(written))
          expect(await digest(format, write(one, 'call_a'))).not.toBe(
            await digest(format, write(other, 'call_a')),
          );
      }),
      { numRuns: 60 },
    );
  });

  test('in one word of a long text have different keys, also where a plugin changed the request', async () => {
    const body = (text: string, more: object = {}) => ({
      model: 'm',
      messages: [
        { role: 'user', content: text },
        { role: 'user', content: 'Go.' },
      ],
      ...more,
    });
    const one = 'word '.repeat(20_000);
    const other = `${one.slice(0, -5)}wore `;
    const first = await digest('chat-completions', body(one));
    expect(await digest('chat-completions', body(one))).toBe(first);
    // The same request in other bytes, which nobody remembers.
    expect(await digest('chat-completions', body(one, { stream: true }))).toBe(first);
    expect(await digest('chat-completions', body(other))).not.toBe(first);
    expect(await digest('chat-completions', body(one, { seed: 1 }))).not.toBe(first);
    const { call, read } = await makeCall({
      format: 'chat-completions',
      body: body(one) as never,
      model: 'm',
    });
    read();
    const edited = [{ settings: { temperature: 0.5 } }, { model: 'n' }, { system: [] }, { messages: [] }].map(
      (edits) => keys.of(call.with(edits)),
    );
    const digests = edited.map((key) => (typeof key === 'object' ? key.digest : key));
    // Instructions that are as they were change nothing.
    expect(digests[2]).toBe(first);
    expect(new Set([first, ...digests]).size).toBe(4);
  });

  test('in a lone surrogate of a long text, or in what stands for it, have different keys', async () => {
    const long = 'x'.repeat(1_000);
    const texts = [
      long,
      `${long}\ud800`,
      `${long}\ud801`,
      `${long}\ufffd`,
      hash('sha256', long, 'base64url'),
    ];
    const digests = await Promise.all(
      texts.map((content) =>
        digest('chat-completions', { model: 'm', messages: [{ role: 'user', content }] }),
      ),
    );
    expect(new Set(digests).size).toBe(texts.length);
  });

  test('in a header that reaches the provider have different keys', async () => {
    const body = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'Go.' }] };
    const headers = [
      {},
      { 'anthropic-beta': 'a' },
      { 'anthropic-beta': 'b' },
      { 'openai-beta': 'a' },
      { 'x-sluice-strict': 'true' },
    ];
    const digests = await Promise.all(headers.map((one) => digest('messages', body, one)));
    expect(new Set(digests).size).toBe(headers.length);
  });

  test('in which result belongs to which call have different keys', async () => {
    const bodyOf = (first: string, second: string) => ({
      model: 'm',
      messages: [
        { role: 'user', content: 'Go.' },
        {
          role: 'assistant',
          content: null,
          tool_calls: ['a', 'b'].map((id) => ({
            id,
            type: 'function',
            function: { name: 'time', arguments: '{}' },
          })),
        },
        { role: 'tool', tool_call_id: first, content: 'one' },
        { role: 'tool', tool_call_id: second, content: 'two' },
      ],
    });
    expect(await digest('chat-completions', bodyOf('a', 'b'))).not.toBe(
      await digest('chat-completions', bodyOf('b', 'a')),
    );
  });

  test('members of neutral requests are written in one order, and those of clients as they came', () => {
    const base = {
      operation: 'chat',
      format: 'x',
      stream: false,
      system: [],
      messages: [],
      tools: [],
    } as const;
    const one = { ...base, model: 'm', settings: { temperature: 1, topP: 0.5 } } satisfies ChatRequest;
    const other = { ...base, model: 'm', settings: { topP: 0.5, temperature: 1 } } satisfies ChatRequest;
    const none = new Set<string>();
    expect(JSON.stringify(canonical(one, none))).toBe(JSON.stringify(canonical(other, none)));
  });
});

test('white space between the tokens of JSON does not count, and nothing else is changed', () => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom(1, 2, '\t', '\n '), (text, space) => {
      const value: unknown = JSON.parse(text);
      expect(compactJson(JSON.stringify(value, null, space))).toBe(JSON.stringify(value));
    }),
  );
  expect(compactJson('{ "a" : 1.0e5, "b c": 12345678901234567890 }')).toBe(
    '{"a":1.0e5,"b c":12345678901234567890}',
  );
  expect(compactJson('{ no json')).toBe('{ no json');
});

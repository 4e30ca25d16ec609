/*
 * Law 1 for requests of this format. Accepted differences:
 * - `null` for an optional field means "not given" and is left out;
 * - `image_url` as an object comes back as the string it holds.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { parseSse } from '../../../core/formats/_shared/sse.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { allFormats, fixturesOf, requestOf } from '../../support/fixtures.ts';
import { codec, countCodec, decode, target, thereAndBack } from './support.ts';

const others = (await allFormats()).filter(({ name }) => name !== 'responses' && name !== 'text-completions');

const word = fc.string({ minLength: 1, maxLength: 8 });
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const record = (fields: { readonly [name: string]: fc.Arbitrary<unknown> }) =>
  fc.record(fields).map((value) => JSON.parse(JSON.stringify(value)) as JsonObject);

const formal = { id: optional(word), status: optional(fc.constantFrom('completed', 'incomplete')) };
const kindly = {
  x_unknown: optional(fc.jsonValue().filter((value) => !JSON.stringify(value).includes('null'))),
};
const image = record({
  type: fc.constant('input_image'),
  image_url: fc.constantFrom('https://example.com/a', 'data:image/png;base64,aaaa', 'data:text/plain,hi'),
  detail: optional(fc.constantFrom('auto', 'low', 'high')),
});
const inputText = record({
  type: fc.constant('input_text'),
  text: fc.string(),
  prompt_cache_breakpoint: optional(fc.constant({ mode: 'explicit' })),
  ...kindly,
});
const outputText = record({
  type: fc.constant('output_text'),
  text: fc.string(),
  annotations: optional(
    fc.constantFrom([], [{ type: 'file_citation', file_id: 'f', index: 0, filename: 'a' }]),
  ),
  logprobs: optional(fc.constant([])),
});
const refusal = record({ type: fc.constant('refusal'), refusal: fc.string() });
const message = fc.oneof(
  record({
    type: optional(fc.constant('message')),
    role: fc.constantFrom('user', 'system', 'developer'),
    content: fc.oneof(fc.string(), fc.array(fc.oneof(inputText, image), { maxLength: 3 })),
    ...formal,
    ...kindly,
  }),
  record({
    type: fc.constant('message'),
    role: fc.constant('assistant'),
    content: fc.oneof(fc.string(), fc.array(fc.oneof(outputText, refusal), { maxLength: 3 })),
    phase: optional(fc.constantFrom('commentary', 'final_answer')),
    ...formal,
    ...kindly,
  }),
);
const reasoning = record({
  type: fc.constant('reasoning'),
  summary: fc.array(record({ type: fc.constant('summary_text'), text: fc.string() }), { maxLength: 2 }),
  content: optional(
    fc.array(record({ type: fc.constant('reasoning_text'), text: fc.string() }), { maxLength: 2 }),
  ),
  encrypted_content: optional(word),
  ...formal,
});
const named = { call_id: word, name: word, namespace: optional(word), ...formal, ...kindly };
const action = record({ commands: fc.array(word), timeout_ms: optional(fc.nat()) });
const call = fc.oneof(
  record({ type: fc.constant('function_call'), arguments: fc.string(), ...named }),
  record({ type: fc.constant('custom_tool_call'), input: fc.string(), ...named }),
  record({ type: fc.constant('shell_call'), action, call_id: word, ...formal, ...kindly }),
);
const output = fc.oneof(
  record({
    type: fc.constantFrom('function_call_output', 'custom_tool_call_output'),
    call_id: word,
    name: optional(word),
    output: fc.oneof(fc.string(), fc.array(fc.oneof(inputText, image), { maxLength: 2 })),
    ...formal,
    ...kindly,
  }),
  record({
    type: fc.constant('apply_patch_call_output'),
    call_id: word,
    status: fc.constantFrom('completed', 'failed'),
    output: optional(fc.string()),
  }),
);
const hosted = record({
  type: fc.constantFrom('web_search_call', 'item_reference', 'compaction', 'of_tomorrow'),
  id: word,
});
const aside = fc.oneof(
  fc.constant({ type: 'configuration_update', reasoning: { effort: 'low' } }),
  record({
    type: fc.constant('additional_tools'),
    role: fc.constant('developer'),
    tools: fc.array(record({ type: fc.constantFrom('function', 'custom'), name: word }), { maxLength: 2 }),
  }),
);
const input = fc.array(fc.oneof(message, reasoning, call, output, hosted, aside), { maxLength: 8 });

describe('law 1', () => {
  it('any items come back as they were, in their order, with nothing reported', () => {
    fc.assert(
      fc.property(input, optional(word), (items, instructions) => {
        const body: JsonObject = {
          model: 'm',
          input: items,
          ...(instructions === undefined ? {} : { instructions }),
        };
        const to = target();
        expect(codec.encodeRequest(codec.decodeRequest(body, {}), to).body).toEqual(body);
        expect(to.losses).toEqual([]);
      }),
    );
  });

  it.each(fixturesOf('responses', 'requests', '.json'))('every piece says where it stood: $name', (file) => {
    const request = codec.decodeRequest(requestOf(file).body, {});
    const messages = [...request.system, ...request.messages];
    const pieces = [...messages, ...messages.flatMap(({ content }) => content)];
    expect(pieces.filter(({ at }) => !/^(input(\[\d+\]|$)|instructions$)/.test(at ?? ''))).toEqual([]);
    expect(request.tools.filter(({ at }) => !/^(tools|input\[\d+\]\.tools)\[\d+\]/.test(at ?? ''))).toEqual(
      [],
    );
  });

  it.each(fixturesOf('responses', 'requests', '.json'))('a count of it is the same body: $name', (file) => {
    const { body } = requestOf(file);
    const { stream: _, stream_options: __, ...rest } = body;
    const {
      stream: ___,
      stream_options: ____,
      ...counted
    } = countCodec.encodeRequest(countCodec.decodeRequest(body, {}), target()).body;
    expect(counted).toEqual(rest);
  });

  it('fields that look like marks of ours come back', () => {
    const body = { model: 'm', input: 'Hi', $kept: 1, 'text.format': 2, $fields: 3, 'tools[0].x': 4 };
    expect(thereAndBack(body)).toEqual(body);
  });
});

describe('whatever a client sends', () => {
  it('is read, or refused with 400 and the place', () => {
    const odd = fc.oneof(fc.jsonValue(), fc.array(fc.oneof(fc.jsonValue(), message, call, output)));
    const fields = [
      'input',
      'instructions',
      'tools',
      'tool_choice',
      'text',
      'reasoning',
      'include',
      'metadata',
      'stream_options',
    ];
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...fields), odd), (body) => {
        try {
          codec.encodeRequest(codec.validate({ model: 'm', ...body } as JsonObject, {}), target());
        } catch (error) {
          expect(error).toBeInstanceOf(GatewayError);
          expect((error as GatewayError).status).toBe(400);
          expect((error as GatewayError).param).toBeTruthy();
        }
      }),
    );
  });

  it.each(others.map(({ name, codecs }) => [name, codecs.chat] as const))(
    'goes to a %s channel, or is refused with 400 and the place',
    (_name, other) => {
      fc.assert(
        fc.property(input, (items) => {
          try {
            other?.encodeRequest(decode({ input: items }), target());
          } catch (error) {
            expect(error).toBeInstanceOf(GatewayError);
            expect((error as GatewayError).status).toBe(400);
            expect((error as GatewayError).param).toMatch(/^input/);
          }
        }),
      );
    },
  );
});

describe('turns for channels of other formats', () => {
  const tools = [{ type: 'function', name: 'f' }];
  const items = [
    { role: 'user', content: 'Hi' },
    { type: 'reasoning', summary: [], encrypted_content: 'x' },
    { role: 'assistant', content: 'One moment.' },
    { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
    { type: 'function_call', call_id: 'c2', name: 'f', arguments: '{}' },
    { role: 'user', content: 'Hurry.' },
    { type: 'function_call_output', call_id: 'c1', output: '1' },
    { type: 'function_call_output', call_id: 'c2', output: '2' },
    { type: 'function_call', call_id: 'c3', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c3', output: '3' },
  ];

  function rolesAt(name: string): unknown {
    const other = others.find((format) => format.name === name)?.codecs.chat;
    const body = other?.encodeRequest(decode({ tools, input: items }), target()).body;
    const list = (body?.messages ?? body?.contents) as JsonObject[];
    return list.map(({ role, content, parts, tool_calls: calls, tool_call_id: id }) => {
      const blocks = (Array.isArray(content) ? content : (parts ?? calls ?? [])) as JsonObject[];
      return `${String(role)} ${blocks.length > 0 ? blocks.length : String(id ?? content)}`;
    });
  }

  it('are one for what was thought, said and called, with the results right behind it', () => {
    expect(rolesAt('chat-completions')).toEqual([
      'user Hi',
      'assistant 2',
      'tool c1',
      'tool c2',
      'user Hurry.',
      'assistant 1',
      'tool c3',
    ]);
    expect(rolesAt('messages')).toEqual(['user Hi', 'assistant 3', 'user 3', 'assistant 1', 'user 1']);
    expect(rolesAt('generate-content')).toEqual(['user 1', 'model 3', 'user 3', 'model 1', 'user 1']);
  });
});

describe('a stream that passes through', () => {
  /** True when one of its frames is seen to end it. */
  const ends = (text: string): boolean =>
    parseSse(text).some(
      (frame) =>
        codec.marks.terminal.some((mark) => `${frame.event} ${frame.data}`.includes(mark)) &&
        codec.endsStream?.(frame) === true,
    );

  it.each(['completed', 'incomplete', 'failed'])('is seen to end however that is spelled: %s', (end) => {
    expect(ends(`data: {"type":"response.${end}"}`)).toBe(true);
    expect(ends(`data: {"sequence_number":1, "type" : "response.${end}"}`)).toBe(true);
    expect(ends(`event:response.${end}\ndata: {}`)).toBe(true);
    expect(ends(`event: response.${end}\ndata: {}`)).toBe(true);
  });

  it.each([
    'event: response.created\ndata: {"type":"response.created","response":{"error":null,"usage":null}}',
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"\\"response.completed\\" \\"usage\\":{}"}',
    'event: response.web_search_call.completed\ndata: {"type":"response.web_search_call.completed"}',
    'data: {"type":"response.output_item.done","item":{"type":"response.completed"}}',
  ])('goes on behind %s', (frame) => {
    expect(ends(frame)).toBe(false);
    expect(codec.marks.usage.some((mark) => frame.includes(mark))).toBe(false);
  });
});

import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { codec, failureOf, target, type JsonObject } from './support.ts';

const messages = [{ role: 'user', content: 'Hi' }];

function refusal(body: JsonObject): { readonly code: string; readonly param: string | undefined } {
  const { status, code, param, message } = failureOf(() => codec.validate(body, {}));
  expect(status).toBe(400);
  expect(message.length).toBeGreaterThan(5);
  return { code, param };
}

const user = (content: unknown): JsonObject =>
  ({ model: 'm', messages: [{ role: 'user', content }] }) as JsonObject;
const given = (more: JsonObject): JsonObject => ({ model: 'm', messages, ...more });
const assistant = (more: JsonObject): JsonObject => ({
  model: 'm',
  messages: [...messages, { role: 'assistant', ...more }],
});

describe('a bad request is refused with the path of what is wrong', () => {
  it.each<[string, string, JsonObject]>([
    ['model', 'missing_required_parameter', { messages }],
    ['model', 'invalid_type', { model: 5, messages }],
    ['model', 'missing_required_parameter', { model: '', messages }],
    ['messages', 'missing_required_parameter', { model: 'm' }],
    ['messages', 'invalid_type', { model: 'm', messages: 'Hi' }],
    ['messages', 'invalid_value', { model: 'm', messages: [] }],
    ['messages[0]', 'invalid_type', { model: 'm', messages: ['Hi'] }],
    ['messages[0].role', 'missing_required_parameter', { model: 'm', messages: [{ content: 'Hi' }] }],
    ['messages[0].role', 'invalid_value', { model: 'm', messages: [{ role: 'robot', content: 'Hi' }] }],
    ['messages[0].content', 'missing_required_parameter', { model: 'm', messages: [{ role: 'user' }] }],
    ['messages[0].content', 'invalid_type', user(5)],
    ['messages[0].content[0]', 'invalid_type', user(['Hi'])],
    ['messages[0].content[0].type', 'missing_required_parameter', user([{ text: 'Hi' }])],
    ['messages[0].content[0].text', 'missing_required_parameter', user([{ type: 'text' }])],
    ['messages[0].content[0].image_url', 'missing_required_parameter', user([{ type: 'image_url' }])],
    [
      'messages[0].content[1].image_url.url',
      'invalid_type',
      user([
        { type: 'text', text: '' },
        { type: 'image_url', image_url: { url: 5 } },
      ]),
    ],
    [
      'messages[0].content[0].image_url.detail',
      'invalid_type',
      user([{ type: 'image_url', image_url: { url: 'https://a', detail: 1 } }]),
    ],
    [
      'messages[0].content[0].input_audio.format',
      'missing_required_parameter',
      user([{ type: 'input_audio', input_audio: { data: 'AA' } }]),
    ],
    [
      'messages[0].content[0].file.file_data',
      'missing_required_parameter',
      user([{ type: 'file', file: {} }]),
    ],
    [
      'messages[0].content[0].video_url.url',
      'missing_required_parameter',
      user([{ type: 'video_url', video_url: {} }]),
    ],
    [
      'messages[0].tool_call_id',
      'missing_required_parameter',
      { model: 'm', messages: [{ role: 'tool', content: '1' }] },
    ],
    [
      'messages[0].content',
      'missing_required_parameter',
      { model: 'm', messages: [{ role: 'tool', tool_call_id: 'c' }] },
    ],
    ['messages[1].tool_calls', 'invalid_type', assistant({ tool_calls: {} })],
    ['messages[1].tool_calls[0]', 'invalid_type', assistant({ tool_calls: [1] })],
    [
      'messages[1].tool_calls[0].id',
      'missing_required_parameter',
      assistant({ tool_calls: [{ type: 'function', function: { name: 'f' } }] }),
    ],
    [
      'messages[1].tool_calls[0].function',
      'missing_required_parameter',
      assistant({ tool_calls: [{ id: 'c', type: 'function' }] }),
    ],
    [
      'messages[1].tool_calls[0].function.arguments',
      'invalid_type',
      assistant({ tool_calls: [{ id: 'c', function: { name: 'f', arguments: 5 } }] }),
    ],
    ['messages[1].reasoning_content', 'invalid_type', assistant({ content: '', reasoning_content: {} })],
    ['messages[1].audio.id', 'missing_required_parameter', assistant({ audio: {} })],
    ['temperature', 'invalid_value', given({ temperature: 2.1 })],
    ['temperature', 'invalid_type', given({ temperature: '1' })],
    ['top_p', 'invalid_value', given({ top_p: -0.1 })],
    ['frequency_penalty', 'invalid_value', given({ frequency_penalty: -2.5 })],
    ['presence_penalty', 'invalid_value', given({ presence_penalty: 3 })],
    ['top_logprobs', 'invalid_value', given({ logprobs: true, top_logprobs: 21 })],
    ['top_logprobs', 'invalid_value', given({ top_logprobs: 2 })],
    ['logprobs', 'invalid_type', given({ logprobs: 1 })],
    ['n', 'invalid_value', given({ n: 0 })],
    ['n', 'invalid_type', given({ n: 1.5 })],
    ['max_tokens', 'invalid_type', given({ max_tokens: 'all' })],
    ['max_completion_tokens', 'invalid_value', given({ max_completion_tokens: 0 })],
    ['stop[1]', 'invalid_type', given({ stop: ['a', 1] })],
    ['stop', 'invalid_type', given({ stop: 5 })],
    ['seed', 'invalid_type', given({ seed: 'x' })],
    ['stream', 'invalid_type', given({ stream: 'yes' })],
    ['stream_options', 'invalid_type', given({ stream: true, stream_options: true })],
    ['reasoning_effort', 'invalid_type', given({ reasoning_effort: 3 })],
    ['reasoning.max_tokens', 'invalid_type', given({ reasoning: { max_tokens: 'x' } })],
    [
      'metadata',
      'invalid_value',
      given({ metadata: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'v'])) }),
    ],
    ['metadata.a', 'invalid_type', given({ metadata: { a: 1 } })],
    ['metadata.a', 'invalid_value', given({ metadata: { a: 'x'.repeat(513) } })],
    ['response_format.type', 'missing_required_parameter', given({ response_format: {} })],
    ['response_format.type', 'invalid_value', given({ response_format: { type: 'yaml' } })],
    [
      'response_format.json_schema',
      'missing_required_parameter',
      given({ response_format: { type: 'json_schema' } }),
    ],
    [
      'response_format.json_schema.schema',
      'invalid_type',
      given({ response_format: { type: 'json_schema', json_schema: { schema: [] } } }),
    ],
    ['tools', 'invalid_type', given({ tools: {} })],
    ['tools[0]', 'invalid_type', given({ tools: ['f'] })],
    ['tools[0].type', 'missing_required_parameter', given({ tools: [{ function: { name: 'f' } }] })],
    ['tools[0].function', 'missing_required_parameter', given({ tools: [{ type: 'function' }] })],
    [
      'tools[0].function.name',
      'missing_required_parameter',
      given({ tools: [{ type: 'function', function: {} }] }),
    ],
    [
      'tools[0].function.parameters',
      'invalid_type',
      given({ tools: [{ type: 'function', function: { name: 'f', parameters: 'x' } }] }),
    ],
    ['tool_choice', 'invalid_type', given({ tool_choice: 5 })],
    ['tool_choice.type', 'missing_required_parameter', given({ tool_choice: {} })],
    [
      'tool_choice.function.name',
      'missing_required_parameter',
      given({ tool_choice: { type: 'function', function: {} } }),
    ],
  ])('%s: %s', (param, code, body) => {
    expect(refusal(body)).toEqual({ code, param });
  });
});

describe('what is accepted', () => {
  it.each<[string, JsonObject]>([
    [
      'null for every optional field',
      given({
        temperature: null,
        stop: null,
        tools: null,
        stream_options: null,
        metadata: null,
        reasoning: null,
        tool_choice: null,
      }),
    ],
    ['an unknown part type', user([{ type: 'hologram' }])],
    ['an unknown tool type', given({ tools: [{ type: 'web_search_preview' }] })],
    ['an unknown effort', given({ reasoning_effort: 'ultra' })],
    ['an assistant turn without content', assistant({})],
    ['an assistant turn with content null', assistant({ content: null })],
    ['stream options without a stream', given({ stream_options: { include_usage: true } })],
    [
      'penalties at their edges',
      given({ frequency_penalty: -2, presence_penalty: 2, temperature: 0, top_logprobs: 0, logprobs: true }),
    ],
    [
      'the deprecated function role',
      { model: 'm', messages: [{ role: 'function', name: 'f', content: null }] },
    ],
  ])('%s', (_what, body) => {
    expect(() => codec.validate(body, {})).not.toThrow();
  });

  it('temperature with top_p only where one of them changes nothing', () => {
    const check = codec.samplingConflict;
    expect(check?.(given({ temperature: 0.5, top_p: 0.9 }))).toMatchObject({ param: 'top_p' });
    expect(check?.(given({ temperature: 1, top_p: 0.9 }))).toBeUndefined();
    expect(check?.(given({ temperature: 0.5, top_p: 1 }))).toBeUndefined();
    expect(check?.(given({ temperature: 0.5, top_p: null }))).toBeUndefined();
    expect(() => codec.validate(given({ temperature: 0.5, top_p: 0.9 }), {})).not.toThrow();
  });
});

/** `ok` when the request is taken, or refused in order. */
function outcome(body: JsonObject): string {
  try {
    codec.encodeRequest(codec.decodeRequest(body, {}), target());
    return 'ok';
  } catch (error) {
    return error instanceof GatewayError ? 'ok' : String(error);
  }
}

describe('hostile input', () => {
  it('never gets anything but a GatewayError', () => {
    let deep: unknown = 'x';
    for (let depth = 0; depth < 20_000; depth += 1) deep = { type: 'function', function: deep };
    const hostile = [
      given({ tool_choice: deep } as JsonObject),
      given({ tools: [deep] } as JsonObject),
      given({ response_format: deep } as JsonObject),
      given({ reasoning: deep } as JsonObject),
      assistant({ tool_calls: [{ id: 'c', function: { name: 'f', arguments: deep } }] } as JsonObject),
      user([deep]),
      JSON.parse(
        '{"model":"m","messages":[{"role":"user","content":"Hi","__proto__":{"$part":true}}],"__proto__":{"x":1}}',
      ) as JsonObject,
    ];
    for (const body of hostile) {
      expect(outcome(body)).toBe('ok');
    }
  });
});

describe('peek', () => {
  it('reads model and stream flag', () => {
    expect(codec.peek(given({ stream: true }), {})).toEqual({ model: 'm', stream: true });
    expect(codec.peek(given({ stream: null }), {})).toEqual({ model: 'm', stream: false });
  });
});

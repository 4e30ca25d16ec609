import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../core/model/json.ts';
import { codec, errorOf } from './support.ts';

const user = { role: 'user', content: 'Hi' };
const output = { type: 'function_call_output', call_id: 'call_1', output: 'x' };

function validate(body: JsonObject): unknown {
  return codec.validate({ model: 'm', ...body }, {});
}

describe('a request that the official API refuses', () => {
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`k${index}`, 'v']));
  it.each<[string, JsonObject]>([
    ['model', { model: 7, input: 'Hi' }],
    ['model', { model: '', input: 'Hi' }],
    ['stream', { input: 'Hi', stream: 'yes' }],
    ['input', {}],
    ['input', { input: [] }],
    ['input', { input: 7 }],
    ['input[0]', { input: ['Hi'] }],
    ['input[0].role', { input: [{ role: 'robot', content: 'Hi' }] }],
    ['input[0].role', { input: [{ content: 'Hi' }] }],
    ['input[0].content', { input: [{ role: 'user' }] }],
    ['input[0].content[0]', { input: [{ role: 'user', content: ['Hi'] }] }],
    ['input[0].content[0].type', { input: [{ role: 'user', content: [{ text: 'Hi' }] }] }],
    ['input[0].content[0].text', { input: [{ role: 'user', content: [{ type: 'input_text' }] }] }],
    ['input[0].content[0].image_url', { input: [{ role: 'user', content: [{ type: 'input_image' }] }] }],
    ['input[0].content[0].file_data', { input: [{ role: 'user', content: [{ type: 'input_file' }] }] }],
    [
      'input[0].content[0].input_audio.format',
      { input: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'x' } }] }] },
    ],
    ['input[0].call_id', { input: [{ type: 'function_call', name: 'f', arguments: '{}' }] }],
    ['input[0].name', { input: [{ type: 'function_call', call_id: 'c', arguments: '{}' }] }],
    ['input[0].arguments', { input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: 1 }] }],
    ['input[0].input', { input: [{ type: 'custom_tool_call', call_id: 'c', name: 'f' }] }],
    ['input[0].action', { input: [{ type: 'local_shell_call', call_id: 'c' }] }],
    ['input[0].operation', { input: [{ type: 'apply_patch_call', call_id: 'c' }] }],
    ['input[1].output', { input: [user, { type: 'function_call_output', call_id: 'c' }] }],
    ['input[0].summary', { input: [{ type: 'reasoning', summary: 'x' }] }],
    ['instructions', { instructions: ['x'], input: 'Hi' }],
    ['temperature', { input: 'Hi', temperature: 3 }],
    ['top_p', { input: 'Hi', top_p: -1 }],
    ['top_logprobs', { input: 'Hi', top_logprobs: 21 }],
    ['max_output_tokens', { input: 'Hi', max_output_tokens: 0 }],
    ['max_output_tokens', { input: 'Hi', max_output_tokens: 1.5 }],
    ['max_tool_calls', { input: 'Hi', max_tool_calls: 'two' }],
    ['parallel_tool_calls', { input: 'Hi', parallel_tool_calls: 'no' }],
    ['metadata', { input: 'Hi', metadata: many }],
    ['metadata.a', { input: 'Hi', metadata: { a: 1 } }],
    ['reasoning', { input: 'Hi', reasoning: 'high' }],
    ['reasoning.effort', { input: 'Hi', reasoning: { effort: 3 } }],
    ['text', { input: 'Hi', text: 'x' }],
    ['text.format.type', { input: 'Hi', text: { format: { type: 'xml' } } }],
    ['text.format.schema', { input: 'Hi', text: { format: { type: 'json_schema', name: 'x', schema: 1 } } }],
    ['text.verbosity', { input: 'Hi', text: { verbosity: 1 } }],
    ['include', { input: 'Hi', include: 'x' }],
    ['include[0]', { input: 'Hi', include: [1] }],
    ['store', { input: 'Hi', store: 'no' }],
    ['background', { input: 'Hi', background: true, store: false }],
    ['background_options', { input: 'Hi', background: true, background_options: '2h' }],
    [
      'background_options.completion_window',
      { input: 'Hi', background: true, background_options: { completion_window: 2 } },
    ],
    [
      'background_options.completion_window',
      { input: 'Hi', background_options: { completion_window: '2h' } },
    ],
    [
      'background_options.completion_window',
      { input: 'Hi', background: true, stream: true, background_options: { completion_window: '8h' } },
    ],
    ['previous_response_id', { input: 'Hi', previous_response_id: 7 }],
    ['conversation', { input: 'Hi', conversation: 7 }],
    ['conversation.id', { input: 'Hi', conversation: {} }],
    ['conversation', { input: 'Hi', conversation: 'conv_1', previous_response_id: 'resp_1' }],
    ['prompt', { input: 'Hi', prompt: { id: 'pmpt_1' } }],
    ['tools', { input: 'Hi', tools: {} }],
    ['tools[0]', { input: 'Hi', tools: ['f'] }],
    ['tools[0].type', { input: 'Hi', tools: [{ name: 'f' }] }],
    ['tools[0].name', { input: 'Hi', tools: [{ type: 'function' }] }],
    ['tools[0].parameters', { input: 'Hi', tools: [{ type: 'function', name: 'f', parameters: [] }] }],
    [
      'tools[0].tools[0].name',
      { input: 'Hi', tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'custom' }] }] },
    ],
    [
      'input[0].tools[0].type',
      { input: [{ type: 'additional_tools', role: 'developer', tools: [{}] }, user] },
    ],
    ['tool_choice', { input: 'Hi', tool_choice: 7 }],
    ['tool_choice.name', { input: 'Hi', tool_choice: { type: 'function' } }],
    ['input[0]', { input: [{ type: 'compaction_trigger' }, user] }],
    ['input[1].call_id', { input: [user, output] }],
    ['input[1].call_id', { input: [user, { ...output, type: 'custom_tool_call_output' }] }],
    ['input[0].call_id', { input: [{ type: 'local_shell_call_output', id: 'call_1', output: 'x' }] }],
    ['input[0].call_id', { input: [{ type: 'shell_call_output', call_id: 'call_1', output: [] }] }],
    [
      'input[0].call_id',
      { input: [{ type: 'apply_patch_call_output', call_id: 'call_1', status: 'failed' }] },
    ],
  ])('is answered with 400 that names %s: %j', (param, body) => {
    const error = errorOf(() => validate(body));
    expect(error.status).toBe(400);
    expect(error.param).toBe(param);
  });
});

describe('a request that only looks wrong', () => {
  it.each<[string, JsonObject]>([
    ['nothing new is said in a stored thread', { previous_response_id: 'resp_1' }],
    ['nothing new is said in a conversation', { conversation: { id: 'conv_1' } }],
    ['only state is prepared', { input: [], generate: false }],
    ['the call is in a stored response', { previous_response_id: 'resp_1', input: [output] }],
    ['the call is in a conversation', { conversation: 'conv_1', input: [output] }],
    ['the call is only referred to', { input: [{ type: 'item_reference', id: 'fc_1' }, output] }],
    ['the reference has no type', { input: [{ id: 'fc_1' }, output] }],
    [
      'the call is in what was compacted',
      { input: [{ type: 'compaction', encrypted_content: 'x' }, output] },
    ],
    [
      'an async tool is named instead of its call',
      { input: [{ type: 'function_call_output', name: 'f', output: '1' }] },
    ],
    ['the trigger is last', { input: [user, { type: 'compaction_trigger' }] }],
    [
      'everything optional is null',
      {
        input: 'Hi',
        instructions: null,
        conversation: null,
        previous_response_id: null,
        store: null,
        background: null,
        metadata: null,
        tools: null,
        tool_choice: null,
        reasoning: null,
        text: null,
        include: null,
        truncation: null,
        max_output_tokens: null,
        temperature: null,
        top_p: null,
        user: null,
        prompt: null,
        stream_options: null,
        context_management: null,
        stream: null,
      },
    ],
    ['truncation is an object', { input: 'Hi', truncation: { type: 'auto' } }],
    ['stream_options ask for usage', { input: 'Hi', stream_options: { include_usage: true } }],
    ['background is stored by default', { input: 'Hi', background: true }],
    ['fields are new', { input: 'Hi', of_tomorrow: { x: [1] } }],
    ['items are new', { input: [user, { type: 'hologram', data: 'x' }] }],
    ...[
      'auto',
      { type: 'compaction' },
      { compaction: { threshold: 5 } },
      { strategy: 'none' },
      { edits: [] },
      [{ type: 'compaction', compact_threshold: null }],
    ].map((value): [string, JsonObject] => [
      'context_management',
      { input: 'Hi', context_management: value as JsonObject },
    ]),
  ])('passes: %s', (_why, body) => {
    expect(() => validate(body)).not.toThrow();
  });
});

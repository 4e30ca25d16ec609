import { describe, expect, it } from 'vitest';
import { codec, fixture, target, type JsonObject } from './support.ts';

const body = (more: JsonObject): JsonObject => ({
  model: 'm',
  messages: [{ role: 'user', content: 'Hi' }],
  ...more,
});
const settings = (more: JsonObject) => codec.decodeRequest(body(more), {}).settings;
const blocks = (content: readonly JsonObject[]) =>
  codec.decodeRequest({ model: 'm', messages: [{ role: 'user', content }] }, {}).messages[0]?.content;

describe('what a request means', () => {
  it('leading instructions stand apart, later ones in the history', () => {
    const request = codec.decodeRequest(
      {
        model: 'm',
        messages: [
          { role: 'system', content: 'a' },
          { role: 'developer', content: 'b' },
          { role: 'user', content: 'c' },
          { role: 'system', content: 'd' },
        ],
      },
      {},
    );
    expect(request.system.map(({ content }) => content[0])).toMatchObject([{ text: 'a' }, { text: 'b' }]);
    expect(request.messages.map(({ role }) => role)).toEqual(['user', 'system']);
  });

  it('an assistant turn in order: reasoning, text, refusal, calls', () => {
    const request = codec.decodeRequest(
      {
        model: 'm',
        messages: [
          { role: 'user', content: 'Hi' },
          {
            role: 'assistant',
            tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
            refusal: 'no',
            content: 'yes',
            reasoning_content: 'hm',
          },
        ],
      },
      {},
    );
    expect(request.messages[1]?.content.map(({ type }) => type)).toEqual([
      'reasoning',
      'text',
      'refusal',
      'tool-call',
    ]);
  });

  it('settings in neutral words', () => {
    expect(settings({ max_tokens: 5, max_completion_tokens: 7 }).maxOutput).toBe(7);
    expect(settings({ stop: 'END' }).stop).toEqual(['END']);
    expect(settings({ user: 'u', safety_identifier: 's' }).user).toBe('s');
    expect(
      settings({
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'n', schema: { type: 'object' }, strict: true },
        },
      }).responseFormat,
    ).toEqual({
      type: 'json-schema',
      name: 'n',
      schema: { type: 'object' },
      strict: true,
    });
    expect(settings({ temperature: null, seed: null })).toEqual({});
  });

  it.each<[JsonObject, JsonObject | undefined]>([
    [{ reasoning_effort: 'HIGH' }, { effort: 'high' }],
    [{ reasoning_effort: 'ultra' }, undefined],
    [{ reasoning: { effort: 'low', exclude: true } }, { effort: 'low', show: false }],
    [{ reasoning: { max_tokens: 500 } }, { budget: 500 }],
    [{ reasoning: { enabled: false } }, { mode: 'off' }],
    [{ thinking: { type: 'disabled' } }, { mode: 'off' }],
    [{ thinking: { type: 'enabled', budget_tokens: 900 } }, { mode: 'on', budget: 900 }],
    [
      { enable_thinking: true, thinking_budget: 100 },
      { mode: 'on', budget: 100 },
    ],
    [
      { reasoning_effort: 'low', thinking: { type: 'enabled' } },
      { effort: 'low', mode: 'on' },
    ],
  ])('reasoning as %j', (reasoning, meant) => {
    expect(settings(reasoning).reasoning).toEqual(meant);
  });

  it('media by their bytes, addresses and ids', () => {
    expect(blocks([{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }])).toMatchObject([
      { source: { kind: 'data', mimeType: 'image/png', data: 'AAAA' } },
    ]);
    expect(blocks([{ type: 'image_url', image_url: 'https://a/b.png' }])).toMatchObject([
      { source: { kind: 'url', url: 'https://a/b.png' } },
    ]);
    expect(blocks([{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } }])).toMatchObject([
      { type: 'audio', source: { mimeType: 'audio/mp3' } },
    ]);
    expect(blocks([{ type: 'file', file: { file_data: 'JVBERi0=' } }])).toMatchObject([
      { type: 'file', source: { mimeType: 'application/pdf' } },
    ]);
    expect(blocks([{ type: 'file', file: { file_id: 'f-1' } }])).toMatchObject([
      { source: { kind: 'file', id: 'f-1', format: 'chat-completions' } },
    ]);
    expect(blocks([{ type: 'video_url', video_url: { url: 'https://a/b.mp4' } }])).toMatchObject([
      { type: 'video' },
    ]);
    expect(blocks([{ type: 'hologram', x: 1 }])).toMatchObject([
      { type: 'opaque', format: 'chat-completions', value: { type: 'hologram', x: 1 } },
    ]);
  });

  it('the deprecated functions are tools, and answers find their calls', () => {
    const request = codec.decodeRequest(JSON.parse(fixture('tolerated/functions.json')) as JsonObject, {});
    expect(request.tools).toMatchObject([{ type: 'function', name: 'get_time', at: 'functions[0]' }]);
    expect(request.toolChoice).toEqual({ type: 'tool', name: 'get_time' });
    const [, turn, answer] = request.messages;
    expect(turn?.content[0]).toMatchObject({ type: 'tool-call', name: 'get_time', input: '{}' });
    expect(answer?.content[0]).toMatchObject({
      type: 'tool-result',
      id: turn?.content[0]?.type === 'tool-call' ? turn.content[0].id : '',
    });
    expect(codec.encodeRequest(request, target()).body).toMatchObject({
      tools: [{ type: 'function', function: { name: 'get_time', parameters: { type: 'object' }, x_old: 1 } }],
      tool_choice: { type: 'function', function: { name: 'get_time' } },
    });
  });

  it('a reasoning beside entries that bring no text is not lost, and comes back as it was', () => {
    const history = {
      model: 'm',
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          reasoning: 'Look it up.',
          reasoning_details: [
            { type: 'reasoning.encrypted', data: 'c2ln', id: 'c', format: 'google-gemini-v1' },
          ],
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
      ],
    };
    const request = codec.decodeRequest(history, {});
    expect(request.messages[1]?.content).toMatchObject([
      { type: 'reasoning', text: 'Look it up.' },
      { type: 'tool-call', proof: { format: 'generate-content', value: 'c2ln' } },
    ]);
    expect(codec.encodeRequest(request, target()).body).toEqual(history);
  });

  it('arguments as an object are tolerated', () => {
    const request = codec.decodeRequest(
      {
        model: 'm',
        messages: [
          { role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'f', arguments: { a: [1] } } }] },
        ],
      },
      {},
    );
    expect(request.messages[0]?.content[0]).toMatchObject({ input: '{"a":[1]}' });
  });
});

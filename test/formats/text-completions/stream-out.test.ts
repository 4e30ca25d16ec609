import { describe, expect, it } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { FinishReason, GatewayEvent } from '../../../core/model/event.ts';
import { checkLegal } from '../../support/legal-text-completions.ts';
import { answer, codec, context, encodeEvents, encodeWhole, head } from './support.ts';

const usage: GatewayEvent = {
  type: 'usage',
  usage: { input: 10, output: 4, cacheRead: 6, cacheWrite: 0, reasoning: 2 },
};

describe('the stream of a chat model', () => {
  it('is pieces of text, a finish and [DONE]', () => {
    const frames = encodeEvents([head, ...answer(['Hel', 'lo']), usage]);
    expect(checkLegal(frames)).toEqual([]);
    expect(frames).toEqual([
      { json: expect.objectContaining({ id: 'cmpl-abc', object: 'text_completion', model: 'm' }) },
      { json: expect.objectContaining({ created: 1_760_000_001 }) },
      {
        json: expect.objectContaining({
          choices: [{ text: '', index: 0, logprobs: null, finish_reason: 'stop' }],
        }),
      },
      { text: '[DONE]' },
    ]);
  });

  it('ends with usage when the client asked for it', () => {
    const frames = encodeEvents(
      [head, ...answer(['Hi']), usage],
      context({ stream_options: { include_usage: true } }),
    );
    expect(checkLegal(frames)).toEqual([]);
    expect(frames.map((frame) => ('json' in frame ? frame.json.usage : '[DONE]'))).toEqual([
      null,
      null,
      {
        prompt_tokens: 10,
        completion_tokens: 4,
        total_tokens: 14,
        prompt_tokens_details: { cached_tokens: 6 },
        completion_tokens_details: { reasoning_tokens: 2 },
      },
      '[DONE]',
    ]);
  });

  it('begins with the prompt when the client wants its echo, once for each answer', () => {
    const body = { prompt: ['ab', 'cd'], n: 2, echo: true };
    const events = [head, ...[0, 1, 2, 3].flatMap((choice) => answer(['!'], choice))];
    expect(encodeWhole(events, context(body)).choices).toMatchObject(
      ['ab!', 'ab!', 'cd!', 'cd!'].map((text, index) => ({ text, index })),
    );
    const frames = encodeEvents([head, ...answer(['!'])], context({ prompt: 'ab', echo: true }));
    expect(checkLegal(frames)).toEqual([]);
    expect(frames[0]).toMatchObject({ json: { choices: [{ text: 'ab', finish_reason: null }] } });
  });

  it('leaves the echo to a provider that has made it', () => {
    const whole = { id: 'cmpl-1', choices: [{ text: 'ab!', index: 0, finish_reason: 'stop' }] };
    const events = codec.decodeWhole(whole, {});
    expect(encodeWhole(events, context({ prompt: 'ab', echo: true })).choices).toMatchObject([
      { text: 'ab!' },
    ]);
  });

  it('shows the words of a refusal, and reports what has no place', () => {
    const position = { block: 0, choice: 0 };
    const encodeContext = context();
    const frames = encodeEvents(
      [
        head,
        { type: 'reasoning-start', ...position },
        { type: 'reasoning-delta', ...position, text: 'hm' },
        { type: 'reasoning-delta', ...position, text: 'hm' },
        { type: 'reasoning-end', ...position },
        { type: 'tool-start', block: 1, choice: 0, id: 'c', name: 'f' },
        { type: 'tool-end', block: 1, choice: 0 },
        { type: 'media-start', block: 2, choice: 0, media: 'image' },
        { type: 'media-end', block: 2, choice: 0 },
        { type: 'opaque', format: 'messages', value: { type: 'server_tool_use' } },
        { type: 'refusal-start', block: 3, choice: 0 },
        { type: 'refusal-delta', block: 3, choice: 0, text: 'I cannot.' },
        { type: 'refusal-end', block: 3, choice: 0 },
        { type: 'finish', choice: 0, reason: 'refusal' },
      ],
      encodeContext,
    );
    expect(encodeContext.losses).toEqual(['reasoning', 'tool-call', 'media.image', 'opaque.server_tool_use']);
    expect(checkLegal(frames)).toEqual([]);
    expect(frames).toMatchObject([
      { json: { choices: [{ text: 'I cannot.' }] } },
      { json: { choices: [{ finish_reason: 'content_filter' }] } },
      { text: '[DONE]' },
    ]);
  });

  it.each<[FinishReason, string]>([
    ['stop', 'stop'],
    ['stop-sequence', 'stop'],
    ['length', 'length'],
    ['context-window', 'length'],
    ['tool-calls', 'stop'],
    ['content-filter', 'content_filter'],
    ['refusal', 'content_filter'],
    ['pause', 'stop'],
    ['malformed', 'stop'],
    ['other', 'stop'],
  ])('spells the end %s as %s', (reason, word) => {
    expect(encodeWhole([head, { type: 'finish', choice: 0, reason }]).choices).toEqual([
      { text: '', index: 0, logprobs: null, finish_reason: word },
    ]);
  });

  it('is legal when nothing came, and when it broke', () => {
    expect(checkLegal(encodeEvents([]))).toEqual([]);
    const encoder = codec.encodeStream?.(context());
    const frames = [
      ...[head, ...answer(['Hi'])].flatMap((event) => [...(encoder?.event(event) ?? [])]),
      ...(encoder?.error(new GatewayError('upstream_cut', 'Cut.', { origin: 'upstream' })) ?? []),
    ];
    expect(checkLegal(frames)).toEqual([]);
    expect(frames.at(-1)).toEqual({
      json: { error: { message: 'Cut.', type: 'server_error', param: null, code: 'upstream_cut' } },
    });
    expect(encoder?.end()).toEqual([]);
  });

  it('says nothing more of an answer that has ended', () => {
    const frames = encodeEvents([head, ...answer(['a']), ...answer(['b'], 0, 1)]);
    expect(checkLegal(frames)).toEqual([]);
  });
});

it('a whole reply has usage also when the provider told none', () => {
  expect(encodeWhole([head, ...answer(['Hi'])]).usage).toEqual({
    prompt_tokens: 0,
    completion_tokens: 0,
    total_tokens: 0,
  });
});

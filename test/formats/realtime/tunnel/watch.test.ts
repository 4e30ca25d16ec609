import { describe, expect, it } from 'vitest';
import { RealtimeWatch } from '../../../../core/formats/realtime/tunnel/watch.ts';
import { leadingType } from '../../../../core/formats/realtime/wire.ts';
import { responseDone } from '../../../support/realtime-upstream.ts';

const text = (value: unknown) => ({
  data: Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)),
  binary: false,
});
const created = { type: 'response.created', response: { id: 'a' } };
const audio = (bytes: number) => ({ type: 'response.output_audio.delta', delta: 'A'.repeat(bytes) });

describe('what was used', () => {
  it('is read from an answer that has ended, with every detail kept', () => {
    const usage = {
      total_tokens: 30,
      input_tokens: 20,
      output_tokens: 10,
      input_token_details: { text_tokens: 5, audio_tokens: 15, cached_tokens: 4 },
      output_token_details: { text_tokens: 2, audio_tokens: 8 },
    };
    expect(new RealtimeWatch().read(text(responseDone('a', 0, 0, { usage })))).toEqual({
      input: 20,
      output: 10,
      cacheRead: 4,
      cacheWrite: 0,
      reasoning: 0,
      byModality: { input: { text: 5, audio: 15 }, output: { text: 2, audio: 8 } },
      format: 'realtime',
      raw: usage,
    });
  });

  it.each([
    [
      'with the type at the end',
      '{"event_id":"e","response":{"id":"a","usage":{"input_tokens":1}},"type":"response.done"}',
    ],
    ['with space', ' {\n "type" : "response.done", "response": {"id": "a", "usage": {"input_tokens": 1}}}'],
    [
      'behind an escaped id',
      '{"event_id":"\\"x","type":"response.done","response":{"usage":{"input_tokens":1}}}',
    ],
  ])('is found %s', (_where, message) => {
    expect(new RealtimeWatch().read(text(message))).toMatchObject({ input: 1 });
  });

  it('is told once for each answer and each transcription', () => {
    const watch = new RealtimeWatch();
    const transcription = (item: string) =>
      text({
        type: 'conversation.item.input_audio_transcription.completed',
        item_id: item,
        content_index: 0,
        usage: { type: 'duration', seconds: 2.5 },
      });
    expect(watch.read(text(responseDone('a', 1, 1)))).toBeDefined();
    expect(watch.read(text(responseDone('a', 1, 1)))).toBeUndefined();
    expect(watch.read(text(responseDone('b', 1, 1)))).toBeDefined();
    expect(watch.read(transcription('i'))).toMatchObject({ input: 0, units: { seconds: 2.5 } });
    expect(watch.read(transcription('i'))).toBeUndefined();
    expect(watch.read(transcription('j'))).toBeDefined();
  });

  it.each([
    ['a word in a text', '{"type":"response.output_text.delta","delta":"\\"response.done\\""}'],
    ['a word in an unknown message', '{"kind":1,"text":"\\"response.done\\""}'],
    ['no JSON', 'so "response.done" and {'],
    ['an answer that is none', '{"type":"response.done","response":7}'],
    ['usage of the wrong type', '{"type":"response.done","response":{"usage":[1]}}'],
  ])('is not read from %s', (_what, message) => {
    expect(new RealtimeWatch().read(text(message))).toBeUndefined();
  });

  it('is not read from binary messages', () => {
    expect(new RealtimeWatch().read({ ...text(responseDone('a', 1, 1)), binary: true })).toBeUndefined();
  });

  it('is never negative, and never beyond reason', () => {
    const usage = { input_tokens: -5, output_tokens: 1e300, input_token_details: { cached_tokens: 'x' } };
    expect(new RealtimeWatch().read(text(responseDone('a', 0, 0, { usage })))).toMatchObject({
      input: 0,
      output: 1e9,
      cacheRead: 0,
    });
  });
});

describe('an answer that is cut off', () => {
  it('is estimated by what was heard, until it has ended', () => {
    const watch = new RealtimeWatch();
    expect(watch.unfinished).toBeUndefined();
    watch.read(text(responseDone('before', 100, 20)));
    watch.read(text(created));
    watch.read(text({ type: 'response.output_audio_transcript.delta', delta: 'word' }));
    watch.read(text(audio(32_000)));
    expect(watch.unfinished).toMatchObject({ input: 120, output: 12, estimated: true });
    watch.read(text(responseDone('a', 130, 9)));
    expect(watch.unfinished).toBeUndefined();
  });

  it('costs what was heard when it was cancelled without figures, and nothing when it failed', () => {
    const watch = new RealtimeWatch();
    watch.read(text(created));
    watch.read(text(audio(3000)));
    expect(watch.read(text(responseDone('a', 0, 0, { status: 'cancelled', usage: null })))).toMatchObject({
      output: 1,
      estimated: true,
    });
    watch.read(text({ ...created, response: { id: 'b' } }));
    watch.read(text(audio(3000)));
    expect(watch.read(text(responseDone('b', 0, 0, { status: 'failed', usage: null })))).toBeUndefined();
  });
});

it('looks at the beginning of a message alone', () => {
  const long = `{"type":"input_audio_buffer.append","audio":"${'A'.repeat(1_000_000)}"}`;
  expect(leadingType(Buffer.from(long))).toBe('input_audio_buffer.append');
  expect(leadingType(Buffer.from('{"other":1,"type":"x"}'))).toBeUndefined();
  expect(leadingType(Buffer.alloc(0))).toBeUndefined();
});

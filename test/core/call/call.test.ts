import { describe, expect, test, vi } from 'vitest';
import { callKey } from '../../../core/sdk/call-key.ts';
import { chatOf, type Call } from '../../../core/sdk/call.ts';
import { makeCall } from '../../../core/sdk/testing/call.ts';
import { estimateTokens } from '../../../core/tokens/index.ts';
import { testCall } from '../../support/call.ts';

describe('a view of a call', () => {
  test('was complete at one moment, whoever asks for it, and however late', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_900_000_000_000 });
    try {
      const { call } = testCall({ model: 'x' });
      expect(call.replyContext().completed).toBe(1_900_000_000);
      vi.setSystemTime(1_900_000_009_000);
      expect(call.with({ model: 'y' }).replyContext().completed).toBe(1_900_000_000);
    } finally {
      vi.useRealTimers();
    }
  });

  test('changes what it names and leaves the call as it is', () => {
    const { call } = testCall({ model: 'x', settings: { temperature: 1, topP: 0.5 } });
    const view = call.with({ model: 'y', settings: { temperature: 0 } });
    expect(view).toMatchObject({ model: 'y', askedModel: 'x', id: call.id });
    expect(view.request).toMatchObject({ model: 'y', settings: { temperature: 0, topP: 0.5 } });
    expect(call.model).toBe('x');
    expect(call.request).toMatchObject({ model: 'x', settings: { temperature: 1, topP: 0.5 } });
  });

  test('adds its settings to those of the view before', () => {
    const { call } = testCall({ model: 'x' });
    const view = call
      .with({ settings: { temperature: 0 } })
      .with({ settings: { maxOutput: 5 } })
      .with({ model: 'y' });
    expect(view.edits).toEqual({ model: 'y', settings: { temperature: 0, maxOutput: 5 } });
  });

  test('replaces instructions and messages as a whole', () => {
    const { call } = testCall({ model: 'x' });
    const system = [{ role: 'system', content: [{ type: 'text', text: 'Be kind.' }] }] as const;
    expect(chatOf(call.with({ system })).system).toEqual(system);
    expect(chatOf(call).system).toEqual([]);
  });

  test('passes through only while the edits are few', () => {
    const { call } = testCall({ model: 'x' });
    expect(call.patchable).toBe(true);
    expect(
      call.with({ model: 'y', settings: { reasoning: { effort: 'low' }, maxOutput: 5 } }).patchable,
    ).toBe(true);
    expect(call.with({ settings: { temperature: 0 } }).patchable).toBe(false);
    expect(call.with({ messages: [] }).patchable).toBe(false);
    expect(call.with({ system: [] }).patchable).toBe(false);
    const systemPrompt = { text: 'Be kind.', place: 'before' } as const;
    expect(call.with({ systemPrompt }).patchable).toBe(false);
  });

  test('tells the operator’s instructions beside the client’s, until a plugin replaces them all', () => {
    const { call } = testCall({ model: 'x' });
    const systemTextsOf = (view: Call): unknown => chatOf(view).system.flatMap(({ content }) => content);
    const view = call.with({ systemPrompt: { text: 'Be kind.', place: 'before' } });
    expect(systemTextsOf(view)).toEqual([{ type: 'text', text: 'Be kind.' }]);
    expect(systemTextsOf(view.with({ model: 'y' }))).toEqual(systemTextsOf(view));
    const system = [{ role: 'system', content: [{ type: 'text', text: 'Be short.' }] }] as const;
    const replaced = view.with({ model: 'y', decoded: true }).with({ system });
    expect(systemTextsOf(replaced)).toEqual([{ type: 'text', text: 'Be short.' }]);
    expect(replaced.edits).toEqual({ model: 'y', decoded: true, system });
  });

  test('estimates the input by the words of a chat, and by the bytes of what nobody has decoded', async () => {
    const words = testCall({ model: 'x' });
    const bytes = words.exchange.wire.bytes.length;
    expect(words.call.replyContext().inputEstimate).toBe(estimateTokens(bytes));
    expect(chatOf(words.call).messages).toEqual([]);
    expect(words.call.replyContext().inputEstimate).toBe(0);
    const input = { model: 'x', input: ['one', 'two'] };
    const embeddings = await makeCall({ operation: 'embed', format: 'embeddings', body: input });
    embeddings.read();
    expect(embeddings.call.request.operation).toBe('embed');
    expect(embeddings.call.replyContext().inputEstimate).toBe(estimateTokens(JSON.stringify(input).length));
  });

  test('reads another body as if the client had written it, and the old one stays the client’s', () => {
    const { call } = testCall({ model: 'x', settings: { temperature: 1 } });
    const view = call.with({ body: { model: 'x', settings: { temperature: 0 } } });
    expect(chatOf(view).settings).toEqual({ temperature: 0 });
    expect(view.body).toEqual({ model: 'x', settings: { temperature: 0 } });
    expect(chatOf(call).settings).toEqual({ temperature: 1 });
    expect(view.replyContext().body).toBe(call.body);
  });

  test('wants events when it says so, and when another codec reads it', () => {
    const { call } = testCall({ model: 'x', stream: true });
    expect(call.with({ decoded: true }).patchable).toBe(false);
    const other = call.with({ codec: { ...call.codec, operation: 'compact' } });
    expect(other.patchable).toBe(false);
    expect([other.operation, other.stream]).toEqual(['compact', false]);
    expect([call.operation, call.stream]).toEqual(['chat', true]);
  });

  test('may be given a life of its own, which outlasts the call and knows what it knew', () => {
    const color = callKey<string>('color');
    const { call, exchange } = testCall({ model: 'x' });
    call.set(color, 'red');
    const { call: twin, end } = call.with({ model: 'y' }).detached();
    const job = vi.fn<() => void>();
    twin.onEnd(job);
    exchange.end();
    expect(job).not.toHaveBeenCalled();
    expect(twin.signal.aborted).toBe(false);
    expect([twin.model, twin.get(color), twin.id]).toEqual(['y', 'red', call.id]);
    call.gate.close();
    expect(twin.gate.closed).toBe(false);
    end();
    expect(job).toHaveBeenCalledOnce();
    expect(twin.signal.aborted).toBe(true);
  });

  test('shares what plugins leave for others', () => {
    const color = callKey<string>('color');
    const { call } = testCall({ model: 'x' });
    const view = call.with({ model: 'y' });
    expect(view.get(color)).toBeUndefined();
    view.set(color, 'red');
    expect(call.get(color)).toBe('red');
    expect(call.get(callKey<string>('color'))).toBeUndefined();
  });
});

test('the body may not be asked for before it was read', () => {
  const { call } = testCall();
  expect(() => call.body).toThrow('it is read after the identify stage');
});

describe('the end of a call', () => {
  test('runs every job once, and aborts its signal', () => {
    const { call, exchange } = testCall({ model: 'x' });
    const job = vi.fn<() => void>();
    const other = vi.fn<() => void>();
    const { signal } = call;
    call.onEnd(job);
    call.with({ model: 'y' }).onEnd(other)();
    exchange.end();
    exchange.end();
    expect(job).toHaveBeenCalledTimes(1);
    expect(other).not.toHaveBeenCalled();
    expect(signal.aborted).toBe(true);
  });

  test('reaches every job, also when one of them takes itself back', () => {
    const { call, exchange } = testCall({ model: 'x' });
    const job = vi.fn<() => void>();
    const takeBack = call.onEnd(() => takeBack());
    call.onEnd(job);
    exchange.end();
    expect(job).toHaveBeenCalledTimes(1);
  });

  test('is told to those who come late', () => {
    const { call, exchange } = testCall({ model: 'x' });
    exchange.end();
    const job = vi.fn<() => void>();
    call.onEnd(job);
    expect(job).toHaveBeenCalledTimes(1);
    expect(call.signal.aborted).toBe(true);
  });
});

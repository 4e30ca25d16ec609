import { describe, expect, test } from 'vitest';
import { GatewayError, type GatewayEvent } from '../../../core/sdk/index.ts';
import { fail, reply, testPlugins, text, toolCall } from '../../../core/sdk/testing/index.ts';
import telemetry from '../../../plugins/telemetry/index.ts';
import type { Losses } from '../../../plugins/telemetry/losses.ts';
import { Room } from '../../../plugins/telemetry/queue.ts';
import { startCollector } from './_collector.ts';

type Options = NonNullable<Parameters<typeof telemetry>[0]>;
type Run = Awaited<ReturnType<typeof testPlugins>>['run'];

/** Returns the exports of one call. */
async function exportsOf(options: Options, call: Parameters<Run>[0], answer: Parameters<Run>[1] = {}) {
  const collector = await startCollector();
  const tested = await testPlugins(telemetry({ endpoint: collector.url, ...options }));
  await tested.run(call, answer);
  await tested.close();
  return collector;
}

const lossOf = (path: string): GatewayEvent => ({
  type: 'loss',
  loss: { path, kind: 'setting', from: 'a', to: 'b' },
});

/** Names of the attributes with a text that is longer than a word may be. */
function longTexts(attributes: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(attributes).flatMap(([name, value]) =>
    [value].flat().some((one) => typeof one === 'string' && one.length > 300) ? [name] : [],
  );
}

describe('error messages', () => {
  test('are redacted like other texts, in spans and log records, and cut', async () => {
    const message = `No account of bob@example.com with sk-abcdefghijklmnop1234. ${'x'.repeat(5_000)}`;
    const error = new GatewayError('upstream_error', message, { origin: 'upstream' });
    const { spans, records } = await exportsOf({ content: 'metadata', redact: ['/[\\w.]+@[\\w.]+/'] }, 'Hi', {
      reply: reply(fail(error)),
    });
    const shown = [...spans, ...records].flatMap(
      ({ attributes }) => attributes['sluice.error.message'] ?? [],
    );
    expect(shown).toHaveLength(2);
    for (const one of shown) {
      expect(one).toMatch(/^No account of … with sk-…/);
      expect(String(one).length).toBeLessThan(1_010);
    }
  });
});

describe('texts that clients and providers choose', () => {
  const long = 'n'.repeat(20_000);

  test('are cut, wherever they stand', async () => {
    const headers = { 'user-agent': long };
    const settings = { user: long, serviceTier: long, stop: [long] };
    const { spans, records } = await exportsOf(
      { content: 'metadata' },
      { messages: ['Hi'], settings, headers },
      { reply: [lossOf(`messages.0.${long}`), ...reply(text('Hi'))] },
    );
    expect([spans.length, records.length]).toEqual([1, 1]);
    expect(spans[0]?.attributes).toMatchObject({
      'sluice.dropped': [expect.stringMatching(/^messages.0.n+…$/)],
      'user.id': expect.stringMatching(/^n+…$/),
      'gen_ai.response.finish_reasons': ['stop'],
    });
    for (const { attributes, name } of [...spans, ...records.map((one) => ({ ...one, name: '' }))])
      expect([longTexts(attributes), name.length < 300]).toEqual([[], true]);
  });

  test('are cut in messages, too', async () => {
    const call = { type: 'tool-call', id: long, name: long, input: '{}' } as const;
    const { spans } = await exportsOf(
      { content: 'full', maxBytes: 4_096 },
      { messages: ['Hi', { role: 'assistant', content: [call] }] },
      { reply: reply(toolCall(long, {})) },
    );
    const [span] = spans;
    for (const name of ['gen_ai.input.messages', 'gen_ai.output.messages']) {
      const shown = String(span?.attributes[name]);
      expect([shown.length < 4_097, shown.includes('"tool_call"'), shown.includes('"id"')]).toEqual([
        true,
        true,
        true,
      ]);
    }
  });
});

test('lists count in the queue as texts do', () => {
  const dropped: number[] = [];
  const losses = { add: (_signal: string, _reason: string, count: number) => dropped.push(count) };
  const room = new Room('traces', { records: 100, bytes: 10_000 }, losses as unknown as Losses);
  const record = { attributes: { 'sluice.dropped': Array.from({ length: 10 }, () => 'x'.repeat(250)) } };
  expect([room.take(record), room.take(record), dropped]).toEqual([true, false, [1]]);
  room.release([record]);
  expect(room.take(record)).toBe(true);
});

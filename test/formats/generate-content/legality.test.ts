import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { isObject } from '../../../core/model/json.ts';
import { checkLegal } from '../../support/legal-generate-content.ts';
import { chat, chunks, context, decodeSse, encode, encodeWhole, names, readStream } from './support.ts';
import { tries } from '../../support/tries.ts';

const position = { block: fc.integer({ min: 0, max: 3 }), choice: fc.constantFrom(0, 0, 0, 1) };
const words = fc.constantFrom('', 'Hi', ' 🌍', '{"a":', '1}', 'null');
const proofs = fc.constantFrom(
  undefined,
  { format: 'messages', kind: 'signature', value: 'sig' } as const,
  { format: 'generate-content', kind: 'signature', value: 'c2ln' } as const,
  { format: 'responses', kind: 'encrypted', value: 'gAAAA' } as const,
);
const withProof = (type: string) =>
  fc
    .record({ type: fc.constant(type), ...position, proof: proofs })
    .map(({ proof, ...event }) => (proof === undefined ? event : { ...event, proof }));
const of = (type: string, members: Record<string, fc.Arbitrary<unknown>> = {}) =>
  fc.record({ type: fc.constant(type), ...position, ...members });

const reasons = fc.constantFrom(
  'stop',
  'stop-sequence',
  'length',
  'tool-calls',
  'content-filter',
  'refusal',
  'pause',
  'other',
  'malformed',
);
const anyEvent = fc.oneof(
  fc.record({
    type: fc.constant('head'),
    id: fc.constantFrom('', 'msg_01abc', 'chatcmpl-x'),
    model: fc.constant('up'),
  }),
  of('text-start'),
  of('text-delta', { text: words, logprobs: fc.constant([{ token: 'a', logprob: -1 }]) }),
  of('text-delta', { text: words }),
  withProof('text-end'),
  of('citation', { citation: fc.constant({ url: 'https://a.example', title: 'A', start: 0, end: 1 }) }),
  of('refusal-start'),
  of('refusal-delta', { text: words }),
  of('refusal-end'),
  of('reasoning-start'),
  of('reasoning-delta', { text: words }),
  withProof('reasoning-end'),
  of('tool-start', { id: fc.constantFrom('a', 'b'), name: fc.constantFrom('f', 'g') }),
  of('tool-delta', { input: words }),
  of('tool-end'),
  of('media-start', { media: fc.constantFrom('image', 'audio') }),
  of('media-delta', { data: fc.constantFrom('', 'AAAA'), transcript: fc.constant('la') }),
  of('media-end', { url: fc.constant('https://a.example/x.png') }),
  of('media-end'),
  fc.record({ type: fc.constant('finish'), choice: position.choice, reason: reasons }),
  fc.constant({ type: 'usage', usage: { input: 3, output: 5, cacheRead: 1, cacheWrite: 0, reasoning: 2 } }),
  fc.constant({ type: 'opaque', format: 'messages', value: { type: 'server_tool_use' }, choice: 0 }),
  fc.constant({ type: 'loss', loss: { path: 'x', kind: 'setting', from: 'a', to: 'b' } }),
) as unknown as fc.Arbitrary<GatewayEvent>;

const anyEvents = fc.array(anyEvent, { maxLength: 40 });

describe('whatever events come', () => {
  test('the client gets a legal stream', () => {
    fc.assert(
      fc.property(anyEvents, (events) => {
        expect(checkLegal(encode(events))).toEqual([]);
      }),
      { numRuns: tries(2000) },
    );
  });

  test('every chunk of another provider has a part, so that no client drops the answer from its history', () => {
    fc.assert(
      fc.property(anyEvents, (events) => {
        for (const chunk of chunks(encode(events))) {
          for (const candidate of (chunk.candidates ?? []) as {
            content?: { role?: string; parts?: object[] };
          }[]) {
            expect(candidate.content?.role).toBe('model');
            expect(candidate.content?.parts?.length).toBeGreaterThan(0);
          }
        }
      }),
    );
  });

  test('a broken reply ends with one error', () => {
    fc.assert(
      fc.property(anyEvents, (events) => {
        const encoder = chat.encodeStream!(context());
        const frames = events.flatMap((event) => [...encoder.event(event)]);
        frames.push(...encoder.error(new GatewayError('upstream_cut', 'Cut.')));
        expect(checkLegal(frames)).toEqual([]);
        const last = frames.at(-1)!;
        expect('json' in last && isObject(last.json.error)).toBe(true);
        expect([...encoder.event({ type: 'finish', choice: 0, reason: 'stop' }), ...encoder.end()]).toEqual(
          [],
        );
      }),
    );
  });

  test('the whole reply is what the stream says, put together', () => {
    fc.assert(
      fc.property(anyEvents, (events) => {
        const whole = encodeWhole(events);
        expect(checkLegal([{ json: whole }])).toEqual([]);
        // Texts that interleave stand in another order: only their pieces are the same.
        expect([...textOf([whole])].toSorted()).toEqual([...textOf(chunks(encode(events)))].toSorted());
      }),
    );
  });
});

describe('the provider’s own streams', () => {
  test.each(names('streams', '.sse'))('%s stays legal', (name) => {
    expect(checkLegal(encode(decodeSse(readStream(name))))).toEqual([]);
  });
});

/** All plain text of candidate 0 and its end. */
function textOf(replies: readonly object[]): string {
  let text = '';
  for (const reply of replies as {
    candidates?: { index: number; finishReason?: string; content?: { parts?: { text?: string }[] } }[];
  }[]) {
    for (const candidate of reply.candidates ?? []) {
      if (candidate.index !== 0) continue;
      for (const part of candidate.content?.parts ?? []) text += part.text ?? '';
      if (candidate.finishReason !== undefined) text += `/${candidate.finishReason}`;
    }
  }
  return text;
}

import { describe, expect, test } from 'vitest';
import { ConverseStreamDecoder } from '../../../core/formats/converse/stream-in.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { JsonObject } from '../../../core/model/json.ts';

/** The events of a stream that is sent in these frames, from the first block on. */
function eventsOf(...frames: readonly (readonly [string, JsonObject])[]): readonly GatewayEvent[] {
  const decoder = new ConverseStreamDecoder();
  const all: typeof frames = [
    ['messageStart', { role: 'assistant' }],
    ...frames,
    ['messageStop', { stopReason: 'end_turn' }],
  ];
  const events = all.flatMap(([event, body]) => decoder.frame({ event, data: JSON.stringify(body) }));
  return [...events, ...decoder.end()];
}

const think = (index: number, reasoningContent: JsonObject): readonly [string, JsonObject] => [
  'contentBlockDelta',
  { contentBlockIndex: index, delta: { reasoningContent } },
];
const stop = (index: number): readonly [string, JsonObject] => [
  'contentBlockStop',
  { contentBlockIndex: index },
];
const proofs = (events: readonly GatewayEvent[]): unknown[] =>
  events.flatMap((event) => (event.type === 'reasoning-end' ? [event.proof] : []));

describe('reasoning that only its provider can read', () => {
  // Base64 of 400 bytes, cut where a provider's buffers may end.
  const sealed = Buffer.from(Uint8Array.from({ length: 399 }, (_, index) => index % 256)).toString('base64');
  const pieces = [sealed.slice(0, 8), sealed.slice(8, 300), '', sealed.slice(300)];

  test('is whole when it comes in several pieces', () => {
    const deltas = pieces.map((redactedContent) => think(0, { redactedContent }));
    expect(proofs(eventsOf(...deltas, stop(0)))).toEqual([
      { format: 'converse', kind: 'encrypted', value: sealed },
    ]);
  });

  test('is whole when no frame says that the block ends', () => {
    const deltas = pieces.map((redactedContent) => think(0, { redactedContent }));
    expect(proofs(eventsOf(...deltas))).toEqual([{ format: 'converse', kind: 'encrypted', value: sealed }]);
  });

  test('of two blocks stays apart, also where their pieces come by turns', () => {
    const events = eventsOf(
      think(0, { redactedContent: 'AAAA' }),
      think(1, { redactedContent: 'CCCC' }),
      think(0, { redactedContent: 'BBBB' }),
      think(1, { redactedContent: 'DDDD' }),
      stop(0),
      stop(1),
    );
    expect(proofs(events)).toEqual([
      { format: 'converse', kind: 'encrypted', value: 'AAAABBBB' },
      { format: 'converse', kind: 'encrypted', value: 'CCCCDDDD' },
    ]);
  });
});

test('a signature in several pieces is whole, and is no text', () => {
  const events = eventsOf(
    think(0, { text: 'Hm, ' }),
    think(0, { text: 'well.' }),
    think(0, { signature: 'sig' }),
    think(0, { signature: 'nature' }),
    stop(0),
  );
  expect(events.flatMap((event) => (event.type === 'reasoning-delta' ? [event.text] : []))).toEqual([
    'Hm, ',
    'well.',
  ]);
  expect(proofs(events)).toEqual([{ format: 'converse', kind: 'signature', value: 'signature' }]);
});

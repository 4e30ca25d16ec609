import { expect, test } from 'vitest';
import { chat } from '../../../core/formats/converse/codec.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { WireFrame } from '../../../core/sdk/format.ts';
import { checkLegal } from '../../support/legal-converse.ts';

const events: readonly GatewayEvent[] = [
  { type: 'head', id: '', model: 'm' },
  { type: 'reasoning-start', block: 0, choice: 0 },
  { type: 'reasoning-delta', block: 0, choice: 0, text: 'Hm.' },
  {
    type: 'reasoning-end',
    block: 0,
    choice: 0,
    proof: { format: 'messages', kind: 'signature', value: 's' },
  },
  { type: 'text-start', block: 1, choice: 0 },
  { type: 'text-delta', block: 1, choice: 0, text: 'Hello' },
  { type: 'text-end', block: 1, choice: 0 },
  { type: 'tool-start', block: 2, choice: 0, id: 'c', name: 'look' },
  { type: 'tool-delta', block: 2, choice: 0, input: '{"a":1}' },
  { type: 'tool-end', block: 2, choice: 0 },
  { type: 'finish', choice: 0, reason: 'tool-calls' },
];

test('a silence may be filled at any time, and the stream stays legal', () => {
  const encoder = chat.encodeStream?.({
    model: 'm',
    body: {},
    requestId: 'r',
    created: 1_760_000_000,
    inputEstimate: 7,
    drop: () => {},
  });
  const frames: WireFrame[] = [];
  let fillings = 0;
  for (const event of events) {
    frames.push(...(encoder?.event(event) ?? []));
    const filling = encoder?.keepAlive() ?? [];
    fillings += filling.length;
    frames.push(...filling);
  }
  frames.push(...(encoder?.end() ?? []));
  expect(checkLegal(frames)).toEqual([]);
  expect(fillings).toBeGreaterThan(3);
});

import { expect, test } from 'vitest';
import type { CallEdits } from '../../../core/sdk/call.ts';
import type { Operation } from '../../../core/sdk/format.ts';
import { mostHedges } from '../../../core/routing/hedge.ts';
import { testCall } from '../../support/call.ts';

const hedge = { after: 100, most: 2 };
const most = (
  operation: Operation,
  body: CallEdits['body'] = {},
  edits: CallEdits = {},
  format = 'plain',
): number => {
  const { call } = testCall({ operation, model: 'm', format });
  return mostHedges(call.with({ ...edits, body: { model: 'm', ...body } }), { hedge });
};

test('none is asked beside the first unless the settings say so', () => {
  const { call } = testCall({ model: 'm' });
  expect(mostHedges(call, { hedge: false })).toBe(0);
  expect(mostHedges(call, { hedge })).toBe(2);
});

test('what makes or changes something is asked for once', () => {
  for (const operation of [
    'create-video',
    'delete-video',
    'get-video',
    'generate-image',
    'realtime',
    'compact',
  ] as const)
    expect([operation, most(operation)]).toEqual([operation, 0]);
  for (const operation of ['chat', 'embed', 'rerank', 'moderate', 'transcribe', 'speak'] as const)
    expect([operation, most(operation)]).toEqual([operation, 2]);
});

test('what the provider keeps, follows or works on in the background is asked for once', () => {
  expect(most('chat', { store: true })).toBe(0);
  expect(most('chat', { background: true })).toBe(0);
  expect(most('chat', { previous_response_id: 'resp_1', store: false })).toBe(0);
  expect(most('chat', { conversation: 'conv_1', store: false })).toBe(0);
  expect(most('chat', { store: false, previous_response_id: null })).toBe(2);
  // Responses are kept unless the request says otherwise.
  expect(most('chat', {}, {}, 'responses')).toBe(0);
  expect(most('chat', { store: false }, {}, 'responses')).toBe(2);
});

test('what belongs to one place goes there alone, but for a warm cache', () => {
  expect(most('chat', {}, { affinity: { channel: 'x', only: true } })).toBe(0);
  expect(most('chat', {}, { affinity: { channel: 'x', key: 'a' } })).toBe(0);
  expect(most('chat', {}, { affinity: { channel: 'x', key: 'a', warm: true } })).toBe(2);
});

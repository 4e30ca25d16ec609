import { virtualClock } from 'sluice/testing';
import type { Call, GatewayEvent } from 'sluice';
import { expect, onTestFinished, test } from 'vitest';
import { Gate } from '../../../core/sdk/gate.ts';
import { piecesOf } from '../../../plugins/cache/pieces.ts';
import { replayed } from '../../../plugins/cache/replay.ts';
import { eventually } from '../../support/eventually.ts';
import { call, wordsIn } from './_calls.ts';
import { running, startedByHand } from './_held.ts';

const long = 'word'.repeat(250_000);

/** A hit that is streamed at a pace of a thousand events a second, with what its client was sent so far. */
function paced(events: readonly GatewayEvent[]) {
  const clock = virtualClock();
  onTestFinished(() => clock.restore());
  const gate = new Gate();
  const client = { id: 'own', created: 1, stream: true, gate, format: { name: 'messages' } } as Partial<Call>;
  const entry = { digest: '', scope: '', at: 0, format: 'messages', events, bytes: 0 };
  const seen: GatewayEvent[] = [];
  let isComplete = false;
  const subscription = replayed(entry, client as Call, 1_000).subscribe({
    next: (event) => seen.push(event),
    complete: () => (isComplete = true),
  });
  const texts = () => seen.flatMap((event) => (event.type === 'text-delta' ? [event.text] : []));
  return { clock, gate, seen, texts, subscription, isComplete: () => isComplete };
}

const delta = (text: string): GatewayEvent => ({ type: 'text-delta', choice: 0, block: 0, text });

test('a paced hit waits while its client does not read, and goes on at its pace', async () => {
  const { clock, gate, texts, isComplete } = paced([delta('abcdefgh'), delta('ij')]);
  await clock.advance(1);
  expect(texts()).toEqual(['abcd']);
  gate.close();
  await clock.advance(1_000);
  expect(texts()).toEqual(['abcd']);
  gate.open();
  await clock.advance(0);
  expect(texts()).toEqual(['abcd', 'efgh']);
  await clock.advance(1);
  expect([texts().join(''), isComplete()]).toEqual(['abcdefghij', true]);
});

test('a paced hit whose client leaves ends', async () => {
  const { clock, texts, subscription } = paced([delta(long)]);
  for (let step = 0; step < 3; step += 1) await clock.advance(1);
  subscription.unsubscribe();
  for (let step = 0; step < 3; step += 1) await clock.advance(1);
  expect(texts()).toHaveLength(3);
});

test('no character is cut', () => {
  const texts = [...piecesOf(delta('ab🙂🙂🙂cd'))].map((event) =>
    event.type === 'text-delta' ? event.text : '',
  );
  expect(texts).toEqual(['ab🙂', '🙂🙂', 'cd']);
});

test.each([{}, { pace: 10_000 }])('a client that reads a hit slowly gets all of it (%j)', async (options) => {
  const words = 'word'.repeat(2_000);
  const { gateway, provider, taps } = await startedByHand({ ...options, maxEntryBytes: 32 * 1024 * 1024 });
  const first = call(gateway, { stream: true });
  await eventually(() => taps.length === 1);
  const count = 'pace' in options ? 1 : 1_000;
  for (let index = 0; index < count; index += 1) taps[0]?.emit(words);
  taps[0]?.end();
  await first.body;
  await running(gateway, 0);
  const slow = call(gateway, { stream: true, slowly: true });
  const response = await slow.response;
  expect(response.headers['x-sluice-cache']).toBe('hit');
  const fast = call(gateway, { stream: true });
  expect(wordsIn(await fast.body)).toHaveLength(count * words.length);
  let read = '';
  response.on('data', (chunk: string) => (read += chunk));
  response.resume();
  await slow.body;
  expect(wordsIn(read)).toBe(words.repeat(count));
  expect(provider.requests).toHaveLength(1);
});

import { expect, test } from 'vitest';
import { eventsOf } from '../../../plugins/mcp/endpoint/http.ts';
import { ownUpstream } from '../../../plugins/mcp/endpoint/own-upstream.ts';
import { testCall } from '../../support/call.ts';

test('a client that leaves while it does not read counts as congested no longer', async () => {
  const { call } = testCall();
  const seen: unknown[] = [];
  call.gate.close();
  const reading = eventsOf(call, new Response('data: 1\n\n'), {
    opened: () => void seen.push('opened'),
    congested: (isFull) => void seen.push(isFull),
    closed: () => void seen.push('closed'),
  }).subscribe();
  expect(seen).toEqual(['opened', true]);
  reading.unsubscribe();
  expect(seen).toEqual(['opened', true, false, 'closed']);
  call.gate.open();
  await Promise.resolve();
  expect(seen).toEqual(['opened', true, false, 'closed']);
});

test('a session that has ended opens no connection of its own', () => {
  const session = { isClosed: true } as Parameters<typeof ownUpstream>[0];
  const connect = ownUpstream(session, {} as never, {} as never);
  expect(connect).toThrow('The session has ended.');
});

import { NEVER, of, Subject, take, throwError, type Observable } from 'rxjs';
import { expect, test } from 'vitest';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { observe, startWithEvents } from '../../../core/sdk/operators.ts';

const text = (word: string): GatewayEvent => ({ type: 'text-delta', block: 0, choice: 0, text: word });
const wordOf = (event: GatewayEvent): string => (event.type === 'text-delta' ? event.text : event.type);

/** Notes what an observer of this name is told, among what the others are. */
const noting = (notes: string[], name: string) =>
  observe({
    event: (event) => notes.push(`${name} ${wordOf(event)}`),
    end: (how) => notes.push(`${name} ${how}`),
  });

const read = (reply: Observable<GatewayEvent>, notes: string[]) =>
  reply.subscribe({
    next: (event) => notes.push(`client ${wordOf(event)}`),
    error: () => notes.push('client error'),
    complete: () => notes.push('client complete'),
  });

test('whoever stands nearer to the provider is told first, and only of what comes from further in', () => {
  const notes: string[] = [];
  const inner = startWithEvents([text('1')], of(text('2'))).pipe(noting(notes, 'inner'));
  const outer = startWithEvents([text('0')], inner).pipe(noting(notes, 'outer'));
  read(startWithEvents([text('-1')], outer), notes);
  expect(notes).toEqual([
    'client -1',
    'outer 0',
    'client 0',
    'inner 1',
    'outer 1',
    'client 1',
    'inner 2',
    'outer 2',
    'client 2',
    'inner complete',
    'outer complete',
    'client complete',
  ]);
});

test('one reply may be followed in two ways that know nothing of each other', () => {
  const notes: string[] = [];
  const reply = of(text('a')).pipe(noting(notes, 'shared'));
  read(reply.pipe(noting(notes, 'one')), notes);
  read(reply.pipe(noting(notes, 'other')), notes);
  expect(notes.filter((note) => note.startsWith('shared'))).toHaveLength(4);
  expect(notes.filter((note) => note.startsWith('one'))).toEqual(['one a', 'one complete']);
  expect(notes.filter((note) => note.startsWith('other'))).toEqual(['other a', 'other complete']);
});

test('all are told of a failure, before the client is', () => {
  const notes: string[] = [];
  const broken = throwError(() => new Error('broken'));
  read(broken.pipe(noting(notes, 'inner'), noting(notes, 'outer')), notes);
  expect(notes).toEqual(['inner error', 'outer error', 'client error']);
});

test('a client that leaves among the first events gets no more, and the provider is let go of', () => {
  const notes: string[] = [];
  const source = new Subject<GatewayEvent>();
  const inner = source.pipe(noting(notes, 'inner'));
  const reply = startWithEvents([text('a'), text('b')], inner).pipe(noting(notes, 'observer'));
  read(reply.pipe(take(1)), notes);
  expect(notes).toEqual(['observer a', 'client a', 'client complete', 'observer left', 'inner left']);
  expect(source.observed).toBe(false);
});

test('a reply that nobody wants any more is let go of all the same', () => {
  const notes: string[] = [];
  const left = NEVER.subscribe();
  left.unsubscribe();
  const source = new Subject<GatewayEvent>();
  source.pipe(noting(notes, 'observer')).subscribe(left as never);
  expect(notes).toEqual(['observer left']);
  expect(source.observed).toBe(false);
});

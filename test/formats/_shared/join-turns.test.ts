import { describe, expect, it } from 'vitest';
import { joinedTurns } from '../../../core/formats/_shared/join-turns.ts';
import type { Block, ChatRequest, Message } from '../../../core/model/chat.ts';
import type { Proof } from '../../../core/model/extra.ts';

const proof: Proof = { format: 'messages', kind: 'signature', value: 's' };
const text = (said: string): Block => ({ type: 'text', text: said });
const thought = (said: string, proved = false): Block => ({
  type: 'reasoning',
  text: said,
  ...(proved ? { proof } : {}),
});
const call: Block = { type: 'tool-call', id: 'c', name: 'f', input: '{}' };
const turn = (role: Message['role'], ...content: Block[]): Message => ({ role, content });

function joined(messages: readonly Message[], format = 'generate-content'): readonly Message[] {
  const request: ChatRequest = {
    operation: 'chat',
    format,
    model: 'm',
    stream: false,
    system: [],
    messages,
    tools: [],
    settings: {},
  };
  return joinedTurns(request);
}

it('makes one reasoning of its pieces, with the proof that stands on the last', () => {
  const pieces = turn('assistant', thought('I '), thought('think'), thought('.', true), call);
  expect(joined([pieces])).toEqual([turn('assistant', thought('I think.', true), call)]);
});

it('keeps what comes behind a proof apart', () => {
  const two = turn('assistant', thought('a', true), thought('b', true));
  expect(joined([two])).toEqual([two]);
});

it('makes one turn of a message for each chunk, and stops at the next speaker', () => {
  const chunks = [
    turn('user', text('Hi')),
    turn('assistant', thought('I ')),
    turn('assistant', thought('think.', true)),
    turn('assistant', text('Hel')),
    turn('assistant', text('lo')),
    turn('user', text('a'), text('b')),
    turn('assistant', text('Bye')),
  ];
  expect(joined(chunks)).toEqual([
    turn('user', text('Hi')),
    turn('assistant', thought('I think.', true), text('Hello')),
    turn('user', text('a'), text('b')),
    turn('assistant', text('Bye')),
  ]);
});

it('loses no white space that came as a piece of its own, and leaves two texts of one message two', () => {
  expect(joined([turn('assistant', text('one'), text('\n\n'), text('two'))])).toEqual([
    turn('assistant', text('one\n\n'), text('two')),
  ]);
  const two = turn('assistant', text('one'), text('two'));
  expect(joined([two])).toEqual([two]);
});

it('leaves clients alone that write whole turns', () => {
  const messages = [turn('assistant', thought('a'), thought('b', true)), turn('assistant', text('c'))];
  expect(joined(messages, 'messages')).toBe(messages);
});

describe('where every item is a message', () => {
  const result = (id: string): Block => ({ type: 'tool-result', id, content: [] });
  const calling = (id: string): Block => ({ type: 'tool-call', id, name: 'f', input: '{}' });
  const items = (...messages: Message[]): readonly Message[] => joined(messages, 'responses');

  it('makes one turn of what was thought, said and called, and leaves its texts apart', () => {
    const thoughts = [thought('Hm', true), text('a'), text('b'), calling('1'), calling('2')];
    expect(items(...thoughts.map((block) => turn('assistant', block)), turn('user', text('c')))).toEqual([
      turn('assistant', ...thoughts),
      turn('user', text('c')),
    ]);
  });

  it('puts results right behind the turn that called, whatever was said in between', () => {
    expect(
      items(
        turn('assistant', calling('1')),
        turn('user', text('Hurry.')),
        turn('tool', result('1')),
        turn('assistant', calling('2')),
        turn('tool', result('2')),
        turn('tool', result('stray')),
      ),
    ).toEqual([
      turn('assistant', calling('1')),
      turn('tool', result('1')),
      turn('user', text('Hurry.')),
      turn('assistant', calling('2')),
      turn('tool', result('2')),
      turn('tool', result('stray')),
    ]);
  });

  it('begins a new turn where a result came between two calls', () => {
    const messages = ['1', '2'].flatMap((id) => [turn('assistant', calling(id)), turn('tool', result(id))]);
    expect(items(...messages)).toEqual(messages);
  });

  it('keeps a message apart whose own fields have to be reported', () => {
    const marked = { ...turn('assistant', text('b')), extra: { responses: { $id: 1 } } };
    const known = { ...turn('assistant', text('c')), extra: { responses: { mood: 1 } } };
    expect(items(turn('assistant', text('a')), marked, known)).toEqual([
      turn('assistant', text('a'), text('b')),
      known,
    ]);
  });
});

import { describe, expect, it } from 'vitest';
import { joinedTurns } from '../../../core/formats/_shared/join-turns.ts';
import type { Block, ChatRequest, Message } from '../../../core/model/chat.ts';
import type { Proof } from '../../../core/model/extra.ts';

const proof: Proof = { format: 'messages', kind: 'signature', value: 's' };
const text = (words: string): Block => ({ type: 'text', text: words });
const thought = (words: string, proved = false): Block => ({
  type: 'reasoning',
  text: words,
  ...(proved ? { proof } : {}),
});
const call: Block = { type: 'tool-call', id: 'c', name: 'f', input: '{}' };
const message = (role: Message['role'], ...content: Block[]): Message => ({ role, content });

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
  const pieces = message('assistant', thought('I '), thought('think'), thought('.', true), call);
  expect(joined([pieces])).toEqual([message('assistant', thought('I think.', true), call)]);
});

it('keeps what comes behind a proof apart', () => {
  const two = message('assistant', thought('a', true), thought('b', true));
  expect(joined([two])).toEqual([two]);
});

it('makes one turn of a message for each chunk, and stops at the next speaker', () => {
  const chunks = [
    message('user', text('Hi')),
    message('assistant', thought('I ')),
    message('assistant', thought('think.', true)),
    message('assistant', text('Hel')),
    message('assistant', text('lo')),
    message('user', text('a'), text('b')),
    message('assistant', text('Bye')),
  ];
  expect(joined(chunks)).toEqual([
    message('user', text('Hi')),
    message('assistant', thought('I think.', true), text('Hello')),
    message('user', text('a'), text('b')),
    message('assistant', text('Bye')),
  ]);
});

it('loses no white space that came as a piece of its own, and leaves two texts of one message two', () => {
  expect(joined([message('assistant', text('one'), text('\n\n'), text('two'))])).toEqual([
    message('assistant', text('one\n\n'), text('two')),
  ]);
  const two = message('assistant', text('one'), text('two'));
  expect(joined([two])).toEqual([two]);
});

it('leaves clients alone that write whole turns', () => {
  const messages = [message('assistant', thought('a'), thought('b', true)), message('assistant', text('c'))];
  expect(joined(messages, 'messages')).toBe(messages);
});

describe('where every item is a message', () => {
  const result = (id: string): Block => ({ type: 'tool-result', id, content: [] });
  const calling = (id: string): Block => ({ type: 'tool-call', id, name: 'f', input: '{}' });
  const items = (...messages: Message[]): readonly Message[] => joined(messages, 'responses');

  it('makes one turn of what was thought, said and called, and leaves its texts apart', () => {
    const thoughts = [thought('Hm', true), text('a'), text('b'), calling('1'), calling('2')];
    expect(
      items(...thoughts.map((block) => message('assistant', block)), message('user', text('c'))),
    ).toEqual([message('assistant', ...thoughts), message('user', text('c'))]);
  });

  it('puts results right behind the turn that called, whatever was said in between', () => {
    expect(
      items(
        message('assistant', calling('1')),
        message('user', text('Hurry.')),
        message('tool', result('1')),
        message('assistant', calling('2')),
        message('tool', result('2')),
        message('tool', result('stray')),
      ),
    ).toEqual([
      message('assistant', calling('1')),
      message('tool', result('1')),
      message('user', text('Hurry.')),
      message('assistant', calling('2')),
      message('tool', result('2')),
      message('tool', result('stray')),
    ]);
  });

  it('begins a new turn where a result came between two calls', () => {
    const messages = ['1', '2'].flatMap((id) => [
      message('assistant', calling(id)),
      message('tool', result(id)),
    ]);
    expect(items(...messages)).toEqual(messages);
  });

  it('keeps a message apart whose own fields have to be reported', () => {
    const marked = { ...message('assistant', text('b')), extra: { responses: { $id: 1 } } };
    const known = { ...message('assistant', text('c')), extra: { responses: { mood: 1 } } };
    expect(items(message('assistant', text('a')), marked, known)).toEqual([
      message('assistant', text('a'), text('b')),
      known,
    ]);
  });
});

import { expect, it } from 'vitest';
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

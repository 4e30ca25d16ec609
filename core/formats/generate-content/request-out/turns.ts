import type { Message } from '../../../model/chat.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import type { MutableObject } from '../../../model/json.ts';
import { encodeBlock } from './parts.ts';
import { asksByLevel, type Writing } from './scope.ts';
import { putBack } from '../../_shared/extra.ts';
import { placeholderSignature } from '../reasoning.ts';
import { requestPathOf, refuse } from '../../_shared/writing.ts';
import { formatName, own } from '../wire.ts';

/** A turn under construction: `parts` is also what `content` holds. */
interface Turn {
  readonly content: MutableObject;
  readonly parts: MutableObject[];
}

/** Returns the history as `contents`: turns of other formats alternate, those of a native client stay as they are. */
export function writeContents(messages: readonly Message[], writing: Writing): MutableObject[] {
  const { native, unproved } = writing;
  const turns: Turn[] = [];
  for (const message of messages) {
    const turn = message.role === 'system' ? midSystem(message, writing) : writeTurn(message, writing);
    if (turn === undefined) continue;
    const last = turns.at(-1);
    if (!native && last !== undefined && last.content.role === turn.content.role)
      for (const part of turn.parts) last.parts.push(part);
    else turns.push(turn);
  }
  if (asksByLevel(writing)) signSteps(turns, native ? unproved : undefined);
  return turns.map(({ content }) => content);
}

function writeTurn(message: Message, writing: Writing): Turn | undefined {
  const { native, target } = writing;
  reportForeign(message.extra, formatName, message.at, target.drop);
  if (message.cache !== undefined) target.drop(`${requestPathOf(message)}.cache`);
  const parts: MutableObject[] = [];
  for (const block of message.content) for (const part of encodeBlock(block, writing)) parts.push(part);
  if (parts.length === 0 && !(native && message.content.length === 0)) return undefined;
  const fields = own(message.extra);
  const content: MutableObject = {};
  const role = fields.$role === undefined ? (message.role === 'assistant' ? 'model' : 'user') : fields.$role;
  if (role !== null) content.role = role;
  content.parts = parts;
  putBack(content, fields);
  return { content, parts };
}

/** This format has no system turns. Instructions in the middle of the history are sent as a user turn, wrapped in a tag that marks them. */
function midSystem(message: Message, writing: Writing): Turn | undefined {
  const { drop } = writing.target;
  reportForeign(message.extra, formatName, message.at, drop);
  if (message.content.length > 0) drop(`${requestPathOf(message)}.role`);
  const texts: string[] = [];
  for (const block of message.content) {
    if (block.type === 'text') texts.push(block.text);
    else refuse(block, 'anything but text as an instruction', writing);
  }
  const text = texts.join('\n');
  if (text === '') return undefined;
  const parts = [{ text: `<system>${text}</system>` }];
  return { content: { role: 'user', parts }, parts };
}

/** Gives the placeholder to the first call of each step of the current turn, where that has no signature. `only`: among these parts, whose own signature could not be sent. */
function signSteps(turns: readonly Turn[], only: ReadonlySet<MutableObject> | undefined): void {
  for (let index = turns.length - 1; index >= 0; index -= 1) {
    const turn = turns[index];
    if (turn === undefined) continue;
    if (turn.content.role !== 'model') {
      if (turn.parts.some((part) => part.functionResponse === undefined)) return;
      continue;
    }
    const first = turn.parts.find((part) => part.functionCall !== undefined);
    if (first === undefined || first.thoughtSignature !== undefined) continue;
    if (only === undefined || only.has(first)) first.thoughtSignature = placeholderSignature;
  }
}

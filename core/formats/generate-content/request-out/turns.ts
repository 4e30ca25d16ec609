import { cannotCarry } from '../../../sdk/errors.ts';
import type { Message } from '../../../model/chat.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import type { MutableObject } from '../../../model/json.ts';
import { encodeBlock } from './parts.ts';
import type { Encoding } from './scope.ts';
import { putBack } from '../../_shared/extra.ts';
import { placeholderSignature } from '../reasoning.ts';
import { formatName, own } from '../wire.ts';

/** A turn under construction: `parts` is also what `content` holds. */
interface Turn {
  readonly content: MutableObject;
  readonly parts: MutableObject[];
}

/** The history as `contents`: turns of other formats alternate, those of a native client stay as they are. */
export function writeContents(messages: readonly Message[], encoding: Encoding): MutableObject[] {
  const turns: Turn[] = [];
  const unproved = new Set<MutableObject>();
  for (const message of messages) {
    const turn =
      message.role === 'system' ? midSystem(message, encoding) : writeTurn(message, encoding, unproved);
    if (turn === undefined) continue;
    const last = turns.at(-1);
    if (!encoding.native && last !== undefined && last.content.role === turn.content.role)
      for (const part of turn.parts) last.parts.push(part);
    else turns.push(turn);
  }
  if (needsSignatures(encoding)) signSteps(turns, encoding.native ? unproved : undefined);
  return turns.map(({ content }) => content);
}

function writeTurn(message: Message, encoding: Encoding, unproved: Set<MutableObject>): Turn | undefined {
  const { native, target } = encoding;
  loseForeign(message.extra, formatName, message.at, target.lose);
  if (message.cache !== undefined) target.lose(`${message.at}.cache`);
  const parts: MutableObject[] = [];
  for (const block of message.content) {
    for (const written of encodeBlock(block, encoding)) {
      parts.push(written.part);
      if (written.unproved === true) unproved.add(written.part);
    }
  }
  if (parts.length === 0 && !(native && message.content.length === 0)) return undefined;
  const fields = own(message.extra);
  const content: MutableObject = {};
  const role = fields.$role === undefined ? (message.role === 'assistant' ? 'model' : 'user') : fields.$role;
  if (role !== null) content.role = role;
  content.parts = parts;
  putBack(content, fields);
  return { content, parts };
}

/** There is no system turn here: instructions in mid-history are told by the user, in a wrapping that says what they are. */
function midSystem(message: Message, encoding: Encoding): Turn | undefined {
  const { target } = encoding;
  loseForeign(message.extra, formatName, message.at, target.lose);
  target.lose(`${message.at}.role`);
  const texts: string[] = [];
  for (const block of message.content) {
    if (block.type === 'text') texts.push(block.text);
    else if (target.unsupported === 'refuse')
      throw cannotCarry(block.at ?? 'messages', 'anything but text as an instruction', formatName);
    else target.lose(block.at ?? 'messages', 'content');
  }
  const text = texts.join('\n');
  if (text === '') return undefined;
  const parts = [{ text: `<system>${text}</system>` }];
  return { content: { role: 'user', parts }, parts };
}

/** Models that are asked by level want a signature on the first call of each step of the current turn. */
function needsSignatures({ target }: Encoding): boolean {
  return target.traits.reasoning === undefined || target.traits.reasoning === 'level';
}

/** Gives the placeholder to first calls that have no signature. `only`: among these parts, whose own signature could not be sent. */
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

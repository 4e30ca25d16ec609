import type { Block, ChatRequest, Message, ToolResultBlock } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import { joinedTurns } from '../../_shared/join-turns.ts';
import { writeAssistant } from './assistant.ts';
import { orderedTurns } from '../../_openai/turn-order.ts';
import { writeContent } from './parts.ts';
import { putBack } from '../../_shared/extra.ts';
import { formatName, own } from '../wire.ts';
import { idOf, dropBeside, dropField, markFor, withCache, type Scope } from '../../_openai/scope.ts';
import { markFailed, labelledOutput } from '../../_openai/calls.ts';
import { listOf, objectsOf, textOf } from '../../_shared/fields.ts';

/** Returns the whole history in this format's messages. */
export function writeMessages(request: ChatRequest, scope: Scope): JsonObject[] {
  const wire: JsonObject[] = [];
  for (const message of request.system) {
    dropBeside(message, scope);
    const instructions = writeSystem(message, scope);
    if (!scope.foreign || !isEmpty(instructions.content)) wire.push(instructions);
  }
  for (const message of scope.foreign ? joinedTurns(request) : request.messages) {
    dropBeside(message, scope);
    for (const written of writeMessage(message, scope)) wire.push(written);
  }
  return orderedTurns(scope.foreign ? withoutOrphans(wire) : wire, scope.target.traits);
}

function writeMessage(message: Message, scope: Scope): readonly JsonObject[] {
  switch (message.role) {
    case 'system':
      // The turn only configures the response to the following turns.
      if (scope.foreign && message.content.length === 0) return [];
      return [(scope.target.traits.midSystem === false ? wrapSystem : writeSystem)(message, scope)];
    case 'assistant': {
      const turn = writeAssistant(message, scope);
      return turn === undefined ? [] : [turn];
    }
    case 'user':
    case 'tool':
      return writeUser(message, scope);
  }
}

function writeSystem(message: Message, scope: Scope): JsonObject {
  const spelled = own(message.extra).$role === 'developer' ? 'developer' : 'system';
  const wire: MutableObject = { role: scope.target.traits.systemRole ?? spelled };
  wire.content = writeContent(message.content, message.plain, scope);
  putBack(wire, own(message.extra));
  return wire;
}

/** Wraps an instruction as a user turn, for models that accept instructions at the beginning only. */
function wrapSystem(message: Message, scope: Scope): JsonObject {
  dropField(message, 'role', scope);
  const content = writeContent(message.content, message.plain, scope);
  if (typeof content === 'string') return { role: 'user', content: `<system>${content}</system>` };
  const text = (tag: string): JsonObject => ({ type: 'text', text: tag });
  return { role: 'user', content: [text('<system>'), ...listOf(content), text('</system>')] };
}

/** Encodes a user turn: first one `tool` message per result, then the other content, with images that a `tool` message cannot contain. */
function writeUser(message: Message, scope: Scope): readonly JsonObject[] {
  const wire: JsonObject[] = [];
  const rest: Block[] = [];
  const moved: Block[] = [];
  for (const block of message.content) {
    if (block.type === 'tool-result') wire.push(writeResult(block, message, moved, scope));
    else rest.push(block);
  }
  if (rest.length > 0 || moved.length > 0 || wire.length === 0) {
    const user: MutableObject = { role: 'user' };
    user.content = writeContent([...moved, ...rest], moved.length > 0 ? false : message.plain, scope);
    putBack(user, own(message.extra));
    // A turn of which nothing is left (an empty text, dropped content) is no turn.
    if (!scope.foreign || !isEmpty(user.content)) wire.push(user);
  }
  return wire;
}

function isEmpty(content: JsonValue | undefined): boolean {
  return content === '' || (Array.isArray(content) && content.length === 0);
}

function writeResult(block: ToolResultBlock, message: Message, moved: Block[], scope: Scope): JsonObject {
  const id = idOf(block, scope);
  const wire: MutableObject = { role: 'tool', tool_call_id: id };
  if (block.name !== undefined && !scope.foreign) wire.name = block.name;
  wire.content = markedResult(writeResultContent(block, id, moved, scope), block, scope);
  if (message.role === 'tool') putBack(wire, own(message.extra));
  reportForeign(block.extra, formatName, block.at, scope.target.drop);
  return wire;
}

/** Marks the last part of what a tool gave. Breakpoints stand there, too: OpenAiOfficialPromptCacheBreakpoint of langchain4j 1.21. */
function markedResult(content: JsonValue, block: ToolResultBlock, scope: Scope): JsonValue {
  if (block.cache === undefined) return content;
  const parts = typeof content === 'string' && content !== '' ? [{ type: 'text', text: content }] : content;
  const last = Array.isArray(parts) ? (parts.at(-1) as JsonValue | undefined) : undefined;
  if (!isObject(last) || markFor(block, scope) === undefined) {
    dropField(block, 'cache', scope);
    return content;
  }
  return [...listOf(parts).slice(0, -1), withCache({ ...last }, block, scope)];
}

function writeResultContent(block: ToolResultBlock, id: string, moved: Block[], scope: Scope): JsonValue {
  const here: Block[] = [];
  const media: Block[] = [];
  for (const inner of block.content) (isMedia(inner) && scope.foreign ? media : here).push(inner);
  if (media.length > 0) {
    moved.push({ type: 'text', text: `Output of ${id}:` });
    for (const inner of media) moved.push(inner);
    here.push({
      type: 'text',
      text: `[${media.map((inner) => inner.type).join(', ')}: see the next user message]`,
    });
  }
  const content = writeContent(here, block.plain, scope);
  if (block.failed !== true) return content;
  dropField(block, 'failed', scope);
  return markFailed(content, 'text');
}

function isMedia(block: Block): boolean {
  return block.type === 'image' || block.type === 'audio' || block.type === 'video' || block.type === 'file';
}

/**
 * Matches tool calls and results, because providers require a result for every call directly after its turn, and a call for every result. A
 * call without a result gets an empty one. A result without a call, or after another turn, becomes user text.
 */
function withoutOrphans(wire: readonly JsonObject[]): JsonObject[] {
  const out: JsonObject[] = [];
  /** Number of calls of the last turn without a result, by id. */
  const open = new Map<string, number>();
  const close = (): void => {
    for (const [id, count] of open)
      for (let index = 0; index < count; index += 1)
        out.push({ role: 'tool', tool_call_id: id, content: '(no output)' });
    open.clear();
  };
  for (const message of wire) {
    if (message.role === 'tool') {
      const id = String(message.tool_call_id);
      const count = open.get(id) ?? 0;
      if (count > 1) open.set(id, count - 1);
      else open.delete(id);
      if (count > 0) out.push(message);
      else {
        close();
        out.push({ role: 'user', content: labelledOutput(message.tool_call_id, message.content, 'text') });
      }
      continue;
    }
    close();
    out.push(message);
    if (message.role === 'assistant')
      for (const call of objectsOf(message.tool_calls)) {
        const id = textOf(call.id);
        open.set(id, (open.get(id) ?? 0) + 1);
      }
  }
  close();
  return out;
}

import type { Block, ChatRequest, Message } from '../../../model/chat.ts';
import type { JsonObject } from '../../../model/json.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import { joinedTurns } from '../../_shared/join-turns.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import { noResult, opening, orderTurns, type Turn, type TurnWords } from '../../_shared/turn-order.ts';
import { name, own, restore } from '../wire.ts';
import { encodeBlock } from './parts.ts';
import { cachePoint, placeOf, refuse, type Writing } from './scope.ts';

/** `system` and `messages` of the wire. */
export interface EncodedHistory {
  readonly system?: readonly JsonObject[];
  readonly messages?: readonly JsonObject[];
}

/** The instructions and the history: as they were for a client of this format, put in the provider's order for any other. */
export function encodeHistory(request: ChatRequest, writing: Writing): EncodedHistory {
  for (const message of [...request.system, ...request.messages])
    loseForeign(message.extra, name, message.at, writing.target.lose);
  if (writing.native) return nativeHistory(request, writing);
  const system = request.system.flatMap((entry) => systemBlocks(entry, writing));
  const turns = orderTurns(
    joinedTurns(request).map((message) => turnOf(message, writing)),
    { ...turnWords, lose: writing.target.lose },
  );
  if (turns.length > 0) return { ...(system.length === 0 ? {} : { system }), messages: turns.map(wireOf) };
  // With nothing but instructions to send, they are what the user says.
  if (system.length > 0) writing.target.lose(`${request.system.at(-1)?.at ?? 'messages'}.role`);
  return { messages: system.length === 0 ? [] : [{ role: 'user', content: system }] };
}

const turnWords: Omit<TurnWords, 'lose'> = {
  text: (text) => ({ text }),
  textIn: ({ text }) => (typeof text === 'string' ? text : undefined),
  noResult: (id) => ({
    toolResult: { toolUseId: spellToolId(id), content: [{ text: noResult }], status: 'error' },
  }),
};

function nativeHistory(request: ChatRequest, writing: Writing): EncodedHistory {
  const standing = request.system.filter((entry) => own(entry.extra).$message !== true);
  const leading = request.system.filter((entry) => own(entry.extra).$message === true);
  const messages = [...leading, ...request.messages].map((message) => nativeMessage(message, writing));
  return {
    ...(standing.length === 0 ? {} : { system: standing.flatMap((entry) => contentOf(entry, writing)) }),
    ...(messages.length === 0 ? {} : { messages }),
  };
}

function nativeMessage(message: Message, writing: Writing): JsonObject {
  if (message.role === 'system' && writing.target.traits.midSystem === false)
    return wireOf(wrapped(message, writing));
  const role = message.role === 'tool' ? 'user' : message.role;
  const wire: MutableObject = { role, content: contentOf(message, writing) };
  restore(wire, own(message.extra));
  return wire;
}

/** Only text may instruct. */
function systemBlocks(message: Message, writing: Writing): JsonObject[] {
  const fit = message.content.filter((block) => {
    const allowed = block.type === 'text' || block.type === 'refusal';
    if (!allowed) refuse(block, `a ${block.type} in instructions`, writing);
    return allowed;
  });
  return contentOf({ ...message, content: fit }, writing);
}

function contentOf(message: Message, writing: Writing): JsonObject[] {
  const blocks = message.content.flatMap((block): readonly JsonObject[] => {
    const misplaced = !writing.native && isMisplaced(block, message.role);
    if (misplaced) refuse(block, `a ${block.type} part of the ${message.role}`, writing);
    return misplaced ? [] : encodeBlock(block, writing);
  });
  // A mark on a whole message stands on its last block.
  return message.cache === undefined || blocks.length === 0 || blocks.at(-1)?.cachePoint !== undefined
    ? blocks
    : [...blocks, ...cachePoint(message.cache, message.at ?? 'messages', writing)];
}

/** The model shows nothing and hands nothing over, and only the model calls tools. */
function isMisplaced(block: Block, role: Message['role']): boolean {
  if (role === 'assistant') return 'source' in block || block.type === 'tool-result';
  return block.type === 'tool-call';
}

function turnOf(message: Message, writing: Writing): Turn {
  const at = message.at ?? 'messages';
  const said = { at, calls: [], results: [], plain: false };
  switch (message.role) {
    case 'system':
      return writing.target.traits.midSystem === false
        ? wrapped(message, writing)
        : { ...said, role: 'system', content: systemBlocks(message, writing) };
    case 'assistant': {
      const calls = message.content.filter((block) => block.type === 'tool-call').map(({ id }) => id);
      return { ...said, role: 'assistant', content: contentOf(message, writing), calls };
    }
    default: {
      const results: Turn['results'][number][] = [];
      const rest: Block[] = [];
      for (const block of message.content) {
        if (block.type !== 'tool-result') rest.push(block);
        else results.push({ id: block.id, at: placeOf(block), wire: encodeBlock(block, writing) });
      }
      return { ...said, role: 'user', content: contentOf({ ...message, content: rest }, writing), results };
    }
  }
}

/** A system message for a model that takes none in the middle: the user's words, marked as what they are. */
function wrapped(message: Message, writing: Writing): Turn {
  const at = message.at ?? 'messages';
  writing.target.lose(`${at}.role`);
  const texts = systemBlocks(message, writing).flatMap(({ text }) =>
    typeof text === 'string' ? [text] : [],
  );
  const content = texts.length === 0 ? [] : [{ text: `<system>${texts.join('\n')}</system>` }];
  return { role: 'user', at, content, calls: [], results: [], plain: false };
}

/** A turn that shows a document must also say something. */
function wireOf({ role, content }: Turn): JsonObject {
  const needsText =
    content.some(({ document }) => document !== undefined) &&
    !content.some(({ text, guardContent }) => text !== undefined || guardContent !== undefined);
  return { role, content: needsText ? [...content, { text: opening }] : content };
}

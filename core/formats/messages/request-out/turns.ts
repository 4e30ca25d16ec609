import type { Block, ChatRequest, Message } from '../../../model/chat.ts';
import type { JsonObject } from '../../../model/json.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import { joinedTurns } from '../../_shared/join-turns.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { encodeBlock } from './parts.ts';
import { noResult, orderTurns, type Turn, type TurnWords } from '../../_shared/turn-order.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import { name } from '../wire.ts';
import { addCache, placeOf, refuse, type Writing } from './scope.ts';
import { own } from '../extra.ts';
import { putBack } from '../../_shared/extra.ts';

/** `system` and `messages` of the wire. */
export interface EncodedHistory {
  readonly system?: string | readonly JsonObject[];
  readonly messages: readonly JsonObject[];
}

/** The instructions and the history: as they were for a client of this format, put in the provider's order for any other. */
export function encodeHistory(request: ChatRequest, writing: Writing): EncodedHistory {
  for (const message of [...request.system, ...request.messages]) {
    loseForeign(message.extra, name, message.at, writing.target.lose);
  }
  if (writing.native) return nativeHistory(request, writing);
  const system = encodeSystem(request.system, writing);
  const turns = orderTurns(
    joinedTurns(request).map((message) => turnOf(message, writing)),
    { ...turnWords, lose: writing.target.lose },
  );
  if (turns.length > 0) return { ...(system === undefined ? {} : { system }), messages: turns.map(wireOf) };
  return { messages: turnsFromSystem(request.system, system, writing) };
}

const turnWords: Omit<TurnWords, 'lose'> = {
  text: (text) => ({ type: 'text', text }),
  textIn: ({ type, text }) => (type === 'text' && typeof text === 'string' ? text : undefined),
  noResult: (id) => ({
    type: 'tool_result',
    tool_use_id: spellToolId(id),
    content: noResult,
    is_error: true,
  }),
};

function nativeHistory(request: ChatRequest, writing: Writing): EncodedHistory {
  const standing = request.system.filter((entry) => own(entry.extra).$message !== true);
  const leading = request.system.filter((entry) => own(entry.extra).$message === true);
  const system = encodeSystem(standing, writing);
  const messages: JsonObject[] = [];
  for (const message of [...leading, ...request.messages]) {
    const wire = nativeMessage(message, writing);
    if (wire !== undefined) messages.push(wire);
  }
  return { ...(system === undefined ? {} : { system }), messages };
}

/** One message as it was; undefined when nothing of it may be sent. */
function nativeMessage(message: Message, writing: Writing): JsonObject | undefined {
  if (message.role === 'system' && writing.target.traits.midSystem === false) {
    return wireOf(wrapped(message, writing));
  }
  const content = contentOf(message, writing);
  if (content.length === 0 && message.content.length > 0) return undefined;
  const role = message.role === 'tool' ? 'user' : message.role;
  const wire: MutableObject = {
    role,
    content: isPlain(message, content) ? message.content[0].text : content,
  };
  putBack(wire, own(message.extra));
  return wire;
}

/** Instructions before the first turn: a string where the client wrote one, else text blocks; undefined when there are none. */
function encodeSystem(
  entries: readonly Message[],
  writing: Writing,
): string | readonly JsonObject[] | undefined {
  const [first] = entries;
  if (first === undefined) return undefined;
  const blocks = entries.flatMap((entry) => systemBlocks(entry, writing));
  if (entries.length === 1 && isPlain(first, blocks)) return first.content[0].text;
  return blocks.length === 0 && !writing.native ? undefined : blocks;
}

/** Only text may instruct. */
function systemBlocks(message: Message, writing: Writing): JsonObject[] {
  if (writing.native) return contentOf(message, writing);
  const fit = message.content.filter((block) => {
    const allowed = block.type === 'text' || block.type === 'refusal';
    if (!allowed) refuse(block, `a ${block.type} in instructions`, writing);
    return allowed;
  });
  return contentOf({ ...message, content: fit }, writing);
}

function contentOf(message: Message, writing: Writing): JsonObject[] {
  const blocks: JsonObject[] = [];
  for (const block of message.content) {
    const misplaced = !writing.native && isMisplaced(block, message.role);
    const wire = misplaced
      ? refuse(block, `a ${block.type} part of the ${message.role}`, writing)
      : encodeBlock(block, writing);
    if (wire !== undefined) blocks.push(wire);
  }
  return cachedAtEnd(message, blocks, writing);
}

/** The model shows nothing and hands nothing over, and only the model calls tools. */
function isMisplaced(block: Block, role: Message['role']): boolean {
  if (role === 'assistant')
    return block.type === 'image' || block.type === 'file' || block.type === 'tool-result';
  return block.type === 'tool-call';
}

/** A mark on a whole message stands on its last block. */
function cachedAtEnd(message: Message, blocks: JsonObject[], writing: Writing): JsonObject[] {
  const last = blocks.at(-1);
  if (message.cache === undefined || last === undefined || last.cache_control !== undefined) return blocks;
  const marked: MutableObject = { ...last };
  addCache(marked, message, writing, message.at ?? 'messages');
  return [...blocks.slice(0, -1), marked];
}

/** True when the client wrote one string and nothing has to be said about it that a string cannot say. */
function isPlain(
  message: Message,
  wire: readonly JsonObject[],
): message is Message & { content: readonly [Block & { type: 'text' }] } {
  const [block] = wire;
  return (
    message.plain === true &&
    message.content.length === 1 &&
    message.content[0]?.type === 'text' &&
    wire.length === 1 &&
    block?.cache_control === undefined
  );
}

function turnOf(message: Message, writing: Writing): Turn {
  const at = message.at ?? 'messages';
  switch (message.role) {
    case 'system':
      return writing.target.traits.midSystem === false
        ? wrapped(message, writing)
        : {
            role: 'system',
            at,
            content: systemBlocks(message, writing),
            calls: [],
            results: [],
            plain: message.plain === true,
          };
    case 'assistant': {
      const content = contentOf(message, writing);
      const calls = message.content.filter((block) => block.type === 'tool-call').map(({ id }) => id);
      return { role: 'assistant', at, content, calls, results: [], plain: message.plain === true };
    }
    default:
      return userTurn(message, at, writing);
  }
}

function userTurn(message: Message, at: string, writing: Writing): Turn {
  const results: Turn['results'][number][] = [];
  const rest: Block[] = [];
  for (const block of message.content) {
    if (block.type !== 'tool-result') rest.push(block);
    else results.push({ id: block.id, at: placeOf(block), wire: [encodeBlock(block, writing) ?? {}] });
  }
  const content = contentOf({ ...message, content: rest }, writing);
  return { role: 'user', at, content, calls: [], results, plain: message.plain === true };
}

/** A system message for a model that takes none in the middle: the user's words, marked as what they are. */
function wrapped(message: Message, writing: Writing): Turn {
  const at = message.at ?? 'messages';
  writing.target.lose(`${at}.role`);
  const texts = systemBlocks(message, writing)
    .map(({ text }) => text)
    .join('\n');
  const content = texts === '' ? [] : [{ type: 'text', text: `<system>${texts}</system>` }];
  return { role: 'user', at, content, calls: [], results: [], plain: false };
}

/** With nothing but instructions to send, the last of them is what the user says. */
function turnsFromSystem(
  entries: readonly Message[],
  system: EncodedHistory['system'],
  writing: Writing,
): JsonObject[] {
  if (system === undefined) return [];
  writing.target.lose(`${entries.at(-1)?.at ?? 'messages'}.role`);
  return [{ role: 'user', content: system }];
}

function wireOf({ role, content, plain }: Turn): JsonObject {
  const [only] = content;
  const bare = plain && content.length === 1 && only?.type === 'text' && Object.keys(only).length === 2;
  return { role, content: bare ? only.text : content };
}

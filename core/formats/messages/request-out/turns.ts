import type { Block, ChatRequest, Message } from '../../../model/chat.ts';
import type { JsonObject } from '../../../model/json.ts';
import { putBack } from '../../_shared/extra.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import { HistoryWriter, placeOf, type HistoryWords } from '../../_shared/history.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import { noResult, type Turn } from '../../_shared/turn-order.ts';
import { name, own } from '../wire.ts';
import { encodeBlock } from './parts.ts';
import { addCache, type Writing } from './scope.ts';

/** `system` and `messages` of the wire. */
export interface EncodedHistory {
  readonly system?: string | readonly JsonObject[];
  readonly messages: readonly JsonObject[];
}

const historyWords: HistoryWords<Writing> = {
  text: (text) => ({ type: 'text', text }),
  textIn: ({ type, text }) => (type === 'text' && typeof text === 'string' ? text : undefined),
  noResult: (id) => ({
    type: 'tool_result',
    tool_use_id: spellToolId(id),
    content: noResult,
    is_error: true,
  }),
  blocks(block, writing) {
    const wire = encodeBlock(block, writing);
    return wire === undefined ? [] : [wire];
  },
  marked(message, blocks, writing) {
    const last: MutableObject = { ...blocks.at(-1) };
    if (last.cache_control !== undefined) return blocks;
    addCache(last, message, writing, placeOf(message));
    return [...blocks.slice(0, -1), last];
  },
};

type Writer = HistoryWriter<Writing>;

/** The instructions and the history: as they were for a client of this format, put in the provider's order for any other. */
export function encodeHistory(request: ChatRequest, writing: Writing): EncodedHistory {
  for (const message of [...request.system, ...request.messages])
    loseForeign(message.extra, name, message.at, writing.target.lose);
  const writer = new HistoryWriter(historyWords, writing);
  if (writing.native) return nativeHistory(request, writer, writing);
  const system = encodeSystem(request.system, writer, writing);
  const standing = system === undefined ? {} : { system };
  const turns = writer.turns(request);
  if (turns.length > 0 || system === undefined) return { ...standing, messages: turns.map(wireOf) };
  // With nothing but instructions to send, the last of them is what the user says.
  writing.target.lose(`${placeOf(request.system.at(-1) ?? {})}.role`);
  return { messages: [{ role: 'user', content: system }] };
}

function nativeHistory(request: ChatRequest, writer: Writer, writing: Writing): EncodedHistory {
  const isTurn = ({ extra }: Message): boolean => own(extra).$message === true;
  const leading = request.system.filter(isTurn);
  const standing = request.system.filter((entry) => !isTurn(entry));
  const system = encodeSystem(standing, writer, writing);
  const messages = [...leading, ...request.messages].flatMap((message) =>
    nativeMessage(message, writer, writing),
  );
  return { ...(system === undefined ? {} : { system }), messages };
}

/** One message as it was; none when nothing of it may be sent. */
function nativeMessage(message: Message, writer: Writer, { target }: Writing): readonly JsonObject[] {
  if (message.role === 'system' && target.traits.midSystem === false)
    return [wireOf(writer.wrapped(message))];
  const content = writer.content(message);
  if (content.length === 0 && message.content.length > 0) return [];
  const wire: MutableObject = {
    role: message.role === 'tool' ? 'user' : message.role,
    content: isPlain(message, content) ? message.content[0].text : content,
  };
  putBack(wire, own(message.extra));
  return [wire];
}

/** Instructions before the first turn: a string where the client wrote one, else text blocks; undefined when there are none. */
function encodeSystem(
  entries: readonly Message[],
  writer: Writer,
  { native }: Writing,
): string | readonly JsonObject[] | undefined {
  const [first] = entries;
  if (first === undefined) return undefined;
  const blocks = entries.flatMap((entry) => (native ? writer.content(entry) : writer.instructions(entry)));
  if (entries.length === 1 && isPlain(first, blocks)) return first.content[0].text;
  return blocks.length === 0 && !native ? undefined : blocks;
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

function wireOf({ role, content, plain }: Turn): JsonObject {
  const [only] = content;
  const bare = plain && content.length === 1 && only?.type === 'text' && Object.keys(only).length === 2;
  return { role, content: bare ? only.text : content };
}

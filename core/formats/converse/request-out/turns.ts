import type { ChatRequest, Message } from '../../../model/chat.ts';
import type { JsonObject } from '../../../model/json.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import { HistoryWriter, placeOf, type HistoryWords } from '../../_shared/history.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import { noResult, opening, type Turn } from '../../_shared/turn-order.ts';
import { name, own, restore } from '../wire.ts';
import { encodeBlock } from './parts.ts';
import { cachePoint, type Writing } from './scope.ts';

/** `system` and `messages` of the wire. */
export interface EncodedHistory {
  readonly system?: readonly JsonObject[];
  readonly messages?: readonly JsonObject[];
}

const historyWords: HistoryWords<Writing> = {
  text: (text) => ({ text }),
  textIn: ({ text }) => (typeof text === 'string' ? text : undefined),
  noResult: (id) => ({
    toolResult: { toolUseId: spellToolId(id), content: [{ text: noResult }], status: 'error' },
  }),
  blocks: encodeBlock,
  marked: (message, blocks, writing) =>
    blocks.at(-1)?.cachePoint === undefined
      ? [...blocks, ...cachePoint(message.cache, placeOf(message), writing)]
      : blocks,
};

/** The instructions and the history: as they were for a client of this format, put in the provider's order for any other. */
export function encodeHistory(request: ChatRequest, writing: Writing): EncodedHistory {
  for (const message of [...request.system, ...request.messages])
    loseForeign(message.extra, name, message.at, writing.target.lose);
  const writer = new HistoryWriter(historyWords, writing);
  if (writing.native) return nativeHistory(request, writer, writing);
  const system = request.system.flatMap((entry) => writer.instructions(entry));
  const turns = writer.turns(request);
  if (turns.length > 0) return { ...(system.length === 0 ? {} : { system }), messages: turns.map(wireOf) };
  // With nothing but instructions to send, they are what the user says.
  if (system.length > 0) writing.target.lose(`${placeOf(request.system.at(-1) ?? {})}.role`);
  return { messages: system.length === 0 ? [] : [{ role: 'user', content: system }] };
}

function nativeHistory(
  request: ChatRequest,
  writer: HistoryWriter<Writing>,
  { target }: Writing,
): EncodedHistory {
  const isTurn = ({ extra }: Message): boolean => own(extra).$message === true;
  const standing = request.system.filter((entry) => !isTurn(entry));
  const messages = [...request.system.filter(isTurn), ...request.messages].map((message): JsonObject => {
    if (message.role === 'system' && target.traits.midSystem === false)
      return wireOf(writer.wrapped(message));
    const role = message.role === 'tool' ? 'user' : message.role;
    const wire: MutableObject = { role, content: writer.content(message) };
    restore(wire, own(message.extra));
    return wire;
  });
  return {
    ...(standing.length === 0 ? {} : { system: standing.flatMap((entry) => writer.content(entry)) }),
    ...(messages.length === 0 ? {} : { messages }),
  };
}

/** A turn that shows a document must also say something. */
function wireOf({ role, content }: Turn): JsonObject {
  const needsText =
    content.some(({ document }) => document !== undefined) &&
    !content.some(({ text, guardContent }) => text !== undefined || guardContent !== undefined);
  return { role, content: needsText ? [...content, { text: opening }] : content };
}

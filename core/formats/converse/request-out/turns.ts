/** Writes the history of a Converse request. */
import type { ChatRequest } from '../../../model/chat.ts';
import { HistoryWriter, type HistoryWords, type WrittenHistory } from '../../_shared/history.ts';
import { requestPathOf } from '../../_shared/writing.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import { noResult, opening } from '../../_shared/turn-order.ts';
import { encodeBlock } from './parts.ts';
import { cachePoint, type Writing } from './scope.ts';

const historyWords: HistoryWords<Writing> = {
  text: (text) => ({ text }),
  textIn: ({ text }) => (typeof text === 'string' ? text : undefined),
  noResult: (id) => ({
    toolResult: { toolUseId: spellToolId(id), content: [{ text: noResult }], status: 'error' },
  }),
  blocks: encodeBlock,
  marked: (message, blocks, writing) =>
    blocks.at(-1)?.cachePoint === undefined
      ? [...blocks, ...cachePoint(message.cache, requestPathOf(message), writing)]
      : blocks,
  system: (_entries, blocks) => blocks,
  encodeContent: (_message, blocks) => blocks,
  // A turn with a document must also have text.
  turn({ role, content }) {
    const needsText =
      content.some(({ document }) => document !== undefined) &&
      !content.some(({ text, guardContent }) => text !== undefined || guardContent !== undefined);
    return { role, content: needsText ? [...content, { text: opening }] : content };
  },
};

/** Returns `system` and `messages` of the body. */
export function encodeHistory(request: ChatRequest, writing: Writing): WrittenHistory {
  return new HistoryWriter(historyWords, writing).write(request);
}

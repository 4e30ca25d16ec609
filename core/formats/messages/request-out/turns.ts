/** Writes the history of a messages request. */
import type { ChatRequest, Message } from '../../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../../model/json.ts';
import { thinksAbout } from '../../../model/thinks.ts';
import { objectsOf } from '../../_shared/fields.ts';
import { HistoryWriter, type HistoryWords, type WrittenHistory } from '../../_shared/history.ts';
import { requestPathOf } from '../../_shared/writing.ts';
import { spellToolId } from '../../_shared/tool-ids.ts';
import { noResult } from '../../_shared/turn-order.ts';
import { encodeBlock } from './parts.ts';
import { addCache, type Writing } from './scope.ts';

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
    addCache(last, message, writing, requestPathOf(message));
    return [...blocks.slice(0, -1), last];
  },
  system: ([first, ...others], blocks) =>
    (first !== undefined && others.length === 0 ? plainText(first, blocks) : undefined) ?? blocks,
  encodeContent: (message, blocks) => plainText(message, blocks) ?? blocks,
  turn({ role, content, plain }) {
    const [only] = content;
    const bare = plain && content.length === 1 && only?.type === 'text' && Object.keys(only).length === 2;
    return { role, content: bare ? only.text : content };
  },
};

/** Returns `system` and `messages` of the body. For models that require their reasoning, each turn with tool calls has a thought. */
export function encodeHistory(request: ChatRequest, writing: Writing): WrittenHistory {
  const history = new HistoryWriter(historyWords, writing).write(request);
  const { traits } = writing.target;
  const { messages } = history;
  if (traits.replaysReasoning !== true || messages === undefined) return history;
  if (!thinksAbout(request.settings.reasoning, traits)) return history;
  return { ...history, messages: messages.map(withThought) };
}

/** Stands for a thought that the client does not have. The providers that insist on one do not check its signature: github:musistudio/claude-code-router#1639 */
const standIn: JsonObject = { type: 'thinking', thinking: 'The reasoning is not available.', signature: '' };

function withThought(message: JsonObject): JsonObject {
  if (message.role !== 'assistant') return message;
  const blocks = objectsOf(message.content);
  if (!blocks.some(({ type }) => type === 'tool_use') || blocks.some(isThought)) return message;
  return { ...message, content: [standIn, ...blocks] };
}

/** Returns true for a thought with words, or with the provider's proof in their place. */
function isThought({ type, thinking, signature }: JsonObject): boolean {
  if (type === 'redacted_thinking') return true;
  return type === 'thinking' && [thinking, signature].some((text) => typeof text === 'string' && text !== '');
}

/** Returns the client's string if the content needs no member beside the text; otherwise undefined. */
function plainText({ plain, content }: Message, wire: readonly JsonObject[]): string | undefined {
  if (plain !== true || content.length !== 1 || wire.length !== 1) return undefined;
  const [only] = content;
  return only?.type === 'text' && wire[0]?.cache_control === undefined ? only.text : undefined;
}

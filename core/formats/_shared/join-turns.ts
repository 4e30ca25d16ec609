import type { Block, ChatRequest, Message, ReasoningBlock, TextBlock } from '../../model/chat.ts';

/** Formats whose streams are whole replies in pieces: their clients send back what they got, piece by piece. */
const piecewise: ReadonlySet<string> = new Set(['generate-content']);

/**
 * A request's history in which the pieces of a stream are what they were before it was cut. Clients of some formats keep every chunk as a
 * part, or as a message, of its own: their neighbouring assistant messages become one turn, and neighbouring reasoning becomes one block
 * with the proof that stands on its last piece. For encoders of another format.
 */
export function joinedTurns({ format, messages }: ChatRequest): readonly Message[] {
  return piecewise.has(format) ? joined(messages) : messages;
}

function joined(messages: readonly Message[]): readonly Message[] {
  const turns: Message[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (last === undefined || !isPiece(last) || !isPiece(message)) {
      turns.push(
        message.role === 'assistant'
          ? { ...message, content: joinedBlocks(message.content, inside) }
          : message,
      );
      continue;
    }
    const { plain: _, ...turn } = last;
    const more = joinedBlocks(message.content, inside);
    turns[turns.length - 1] = { ...turn, content: joinedBlocks([...last.content, ...more], across) };
  }
  return turns;
}

/** An assistant message with nothing of its own that a joined one would lose. */
function isPiece({ role, extra, cache }: Message): boolean {
  return role === 'assistant' && extra === undefined && cache === undefined;
}

type Joins = (before: TextBlock, after: TextBlock) => boolean;

/** Within one message two texts may well be meant as two; white space alone never is. */
const inside: Joins = (before, after) => before.text.trim() === '' || after.text.trim() === '';
const across: Joins = () => true;

function joinedBlocks(blocks: readonly Block[], joins: Joins): readonly Block[] {
  const kept: Block[] = [];
  for (const block of blocks) {
    const last = kept.at(-1);
    const whole = last === undefined ? undefined : joinedPair(last, block, joins);
    if (whole === undefined) kept.push(block);
    else kept[kept.length - 1] = whole;
  }
  return kept.length === blocks.length ? blocks : kept;
}

function joinedPair(before: Block, after: Block, joins: Joins): Block | undefined {
  if (before.type === 'reasoning' && after.type === 'reasoning' && isBare(before) && isPlain(after)) {
    return { ...after, ...before, text: before.text + after.text };
  }
  if (before.type !== 'text' || after.type !== 'text' || !isBare(before) || !isPlain(after)) return undefined;
  return joins(before, after) ? { ...after, ...before, text: before.text + after.text } : undefined;
}

/** A proof ends a block: what comes behind it is another. */
function isBare(block: TextBlock | ReasoningBlock): boolean {
  return block.proof === undefined && isPlain(block);
}

function isPlain(block: TextBlock | ReasoningBlock): boolean {
  return (
    block.extra === undefined &&
    block.cache === undefined &&
    (block.type === 'reasoning' || block.citations === undefined)
  );
}

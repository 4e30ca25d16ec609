import type { Block, Message, ReasoningBlock, TextBlock } from '../../model/chat.ts';

/**
 * A history in which the pieces of a stream are what they were before it was cut: some clients keep every chunk as a part, or as a message,
 * of its own. Neighbouring assistant messages become one turn, neighbouring reasoning becomes one block with the proof that stands on its
 * last piece. For encoders whose format has no such pieces; what a client of the same format wrote is left alone.
 */
export function joinedTurns(messages: readonly Message[]): readonly Message[] {
  const joined: Message[] = [];
  for (const message of messages) {
    const last = joined.at(-1);
    if (last === undefined || !isPiece(last) || !isPiece(message)) {
      joined.push(
        message.role === 'assistant'
          ? { ...message, content: joinedBlocks(message.content, inside) }
          : message,
      );
      continue;
    }
    const { plain: _, ...turn } = last;
    const more = joinedBlocks(message.content, inside);
    joined[joined.length - 1] = { ...turn, content: joinedBlocks([...last.content, ...more], across) };
  }
  return joined;
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
  const joined: Block[] = [];
  for (const block of blocks) {
    const last = joined.at(-1);
    const whole = last === undefined ? undefined : joinedPair(last, block, joins);
    if (whole === undefined) joined.push(block);
    else joined[joined.length - 1] = whole;
  }
  return joined.length === blocks.length ? blocks : joined;
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

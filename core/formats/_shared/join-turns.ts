import type { Block, ChatRequest, Message, ReasoningBlock, TextBlock } from '../../model/chat.ts';

/** Formats whose streams are whole replies in pieces: their clients send back what they got, piece by piece. */
const piecewise: ReadonlySet<string> = new Set(['generate-content']);
/** Formats that encode a turn as items, each of which is a message here: reasoning, texts, tool calls and results. */
const itemwise: ReadonlySet<string> = new Set(['responses']);

/**
 * Returns a request's history in whole turns, for encoders of another format. Some clients store every chunk as a part or a message of its
 * own. Adjacent assistant messages become one turn, and adjacent reasoning becomes one block with the proof of its last piece. If every
 * item is a message, adjacent items become one turn, directly followed by its results.
 */
export function joinedTurns({ format, messages }: ChatRequest): readonly Message[] {
  if (itemwise.has(format)) return ofItems(messages);
  return piecewise.has(format) ? joined(messages) : messages;
}

/** A turn that is being joined. */
interface Turn {
  readonly message: Message;
  /** The content of all that was joined; undefined while the message stands alone. */
  content?: Block[];
  readonly results: Message[];
}

function ofItems(messages: readonly Message[]): readonly Message[] {
  const turns: Turn[] = [];
  const callers = new Map<string, Turn>();
  let open = false;
  for (const message of messages) {
    const last = turns.at(-1);
    const caller = message.role === 'tool' ? callers.get(resultId(message)) : undefined;
    if (caller !== undefined) {
      caller.results.push(message);
      if (caller === last) open = false;
      continue;
    }
    let turn = last;
    if (turn !== undefined && open && isItem(message)) add(turn, message);
    else turns.push((turn = { message, results: [] }));
    open = message.role === 'assistant';
    for (const block of message.content) if (block.type === 'tool-call') callers.set(block.id, turn);
  }
  return turns.flatMap((turn) => [messageOf(turn), ...turn.results]);
}

function add(turn: Turn, { content }: Message): void {
  turn.content ??= [...turn.message.content];
  for (const block of content) turn.content.push(block);
}

function messageOf({ message, content }: Turn): Message {
  if (content === undefined) return message;
  const { plain: _, ...rest } = message;
  return { ...rest, content };
}

function resultId({ content: [block] }: Message): string {
  return block?.type === 'tool-result' ? block.id : '';
}

/** Returns true for an assistant message that can be joined without losing anything that must be reported. */
function isItem({ role, extra, cache }: Message): boolean {
  if (role !== 'assistant' || cache !== undefined) return false;
  return Object.values(extra ?? {}).every((fields) =>
    Object.keys(fields).every((key) => key.startsWith('$')),
  );
}

function joined(messages: readonly Message[]): readonly Message[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    const compact =
      message.role === 'assistant' ? { ...message, content: joinedBlocks(message.content, inside) } : message;
    if (last !== undefined && isPiece(last.message) && isPiece(message)) add(last, compact);
    else turns.push({ message: compact, results: [] });
  }
  return turns.map((turn) => {
    if (turn.content !== undefined) turn.content = [...joinedBlocks(turn.content, across)];
    return messageOf(turn);
  });
}

/** Returns true for an assistant message without members that joining would lose. */
function isPiece({ role, extra, cache }: Message): boolean {
  return role === 'assistant' && extra === undefined && cache === undefined;
}

type Joins = (before: TextBlock, after: TextBlock) => boolean;

/** Two texts of one message may be intended as two, except white space. The joined text is checked last, because it may be long. */
const inside: Joins = (before, after) => after.text.trim() === '' || before.text.trim() === '';
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

/** Returns true for a block that can be continued: one without a signature, because a signature ends its block. */
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

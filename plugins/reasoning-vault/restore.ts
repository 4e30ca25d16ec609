/** Puts the stored reasoning and proofs of a turn into the content of a message. */
import type { Block, JsonObject, Message, ReasoningBlock, ToolCallBlock } from 'sluice';
import type { Thought, Turn } from './turn.ts';

/** Returns true for a block with a proof. */
export function isProved(block: Block): boolean {
  return (block as { readonly proof?: unknown }).proof !== undefined;
}

/** Returns true for a block of reasoning. */
export function isReasoning(block: Block): block is ReasoningBlock {
  return block.type === 'reasoning';
}

/**
 * Returns the content of a message with its reasoning; undefined where nothing is missing. `told`: number of thoughts that earlier messages of the
 * same turn got. `present`: proofs that other messages have, which are not added again.
 */
export function restored(
  message: Message,
  turn: Turn,
  restoredThoughts: Map<Turn, number>,
  present: ReadonlySet<string>,
): readonly Block[] | undefined {
  const content: Block[] = [];
  let next = restoredThoughts.get(turn) ?? 0;
  let missing = 0;
  const addThoughts = (ready: (thought: Thought) => boolean): void => {
    for (
      let thought = turn.thoughts[next];
      thought !== undefined && ready(thought);
      thought = turn.thoughts[next]
    ) {
      next += 1;
      if (thought.proof !== undefined && present.has(thought.proof.value)) continue;
      content.push(blockOf(thought, message));
      missing += 1;
    }
  };
  const calls = message.content.filter((block) => block.type === 'tool-call');
  const first = calls.reduce((least, { id }) => Math.min(least, indexOfCall(id, turn)), Infinity);
  for (const block of message.content) {
    if (isReasoning(block)) continue;
    if (block.type === 'tool-call') {
      addThoughts((thought) => thought.calls <= indexOfCall(block.id, turn));
      content.push(proved(block, turn));
    } else {
      addThoughts((thought) => thought.calls <= first && !thought.spoken);
      content.push(block);
    }
  }
  if (calls.some(({ id }) => indexOfCall(id, turn) === turn.calls.length - 1)) addThoughts(() => true);
  restoredThoughts.set(turn, next);
  return missing > 0 || content.some(isProved) ? content : undefined;
}

/** Returns the index of a call in its turn; 0 for a call that the turn does not have. */
function indexOfCall(id: string, turn: Turn): number {
  return callIndexes(turn).get(id) ?? 0;
}

/** Returns the index of the first call of each id in a turn. Cached, because a turn may be split into as many messages as it has calls. */
function callIndexes(turn: Turn): ReadonlyMap<string, number> {
  let indexes = cachedIndexes.get(turn);
  if (indexes === undefined) {
    const found = new Map<string, number>();
    turn.calls.forEach(({ id }, index) => {
      if (!found.has(id)) found.set(id, index);
    });
    cachedIndexes.set(turn, (indexes = found));
  }
  return indexes;
}

const cachedIndexes = new WeakMap<Turn, ReadonlyMap<string, number>>();

function blockOf({ text, proof, extra }: Thought, message: Message): Block {
  return {
    type: 'reasoning',
    text,
    at: `${message.at ?? 'messages'}.reasoning`,
    ...(proof === undefined ? {} : { proof }),
    ...(extra === undefined ? {} : { extra }),
  };
}

function proved(block: ToolCallBlock, turn: Turn): ToolCallBlock {
  const index = callIndexes(turn).get(block.id);
  const call = index === undefined ? undefined : turn.calls[index];
  if (call?.proof === undefined) return block;
  if (call.beside === undefined) return { ...block, proof: call.proof };
  const own: JsonObject = { ...block.extra?.['chat-completions'], $extra_content: call.beside };
  return { ...block, proof: call.proof, extra: { ...block.extra, 'chat-completions': own } };
}

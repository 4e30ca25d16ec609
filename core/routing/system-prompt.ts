import type { SystemPrompt } from '../sdk/channel.ts';
import type { Block, Message } from '../model/chat.ts';

/**
 * Instructions with the operator's own among them. They become one with the client's: providers differ in how many system messages they
 * take. Text that the client marked (for a cache, say) keeps its mark to itself.
 */
export function withSystemPrompt(
  system: readonly Message[],
  { text, place }: SystemPrompt,
): readonly Message[] {
  const own: Message = { role: 'system', content: [{ type: 'text', text }], plain: true };
  const [first] = system;
  const last = system.at(-1);
  if (place === 'instead' || first === undefined || last === undefined) return [own];
  return place === 'before'
    ? [joined(first, text, place), ...system.slice(1)]
    : [...system.slice(0, -1), joined(last, text, place)];
}

function joined(message: Message, text: string, position: 'before' | 'after'): Message {
  const [only] = message.content;
  if (message.content.length === 1 && only !== undefined && isBare(only)) {
    const words = position === 'before' ? `${text}\n\n${only.text}` : `${only.text}\n\n${text}`;
    return { ...message, content: [{ ...only, text: words }] };
  }
  const block: Block = { type: 'text', text };
  const { plain: _, ...rest } = message;
  return {
    ...rest,
    content: position === 'before' ? [block, ...message.content] : [...message.content, block],
  };
}

function isBare(block: Block): block is Extract<Block, { readonly type: 'text' }> {
  return (
    block.type === 'text' &&
    block.cache === undefined &&
    block.citations === undefined &&
    block.proof === undefined
  );
}

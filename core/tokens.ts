import type { Block, ChatRequest } from './model/chat.ts';

/** Tokens an image is taken for when only the gateway counts: what a mid-sized picture costs at the large providers. */
const imageTokens = 1_000;

/** A first guess without a tokenizer: four bytes a token. For numbers that must be said before the true ones are known. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / 4);
}

/**
 * Counts a request's input tokens with the o200k tokenizer. Providers that do not publish theirs come out up to a sixth higher, so the
 * figure is an estimate; the tables are loaded on first use.
 */
export async function countTokens(request: ChatRequest): Promise<number> {
  const { countTokens: count } = await import('gpt-tokenizer/encoding/o200k_base');
  let tokens = 3;
  const text = (value: string): void => {
    tokens += value.length === 0 ? 0 : count(value);
  };
  const blocks = (list: readonly Block[]): void => {
    for (const block of list) {
      switch (block.type) {
        case 'text':
        case 'refusal':
        case 'reasoning':
          text(block.text);
          break;
        case 'tool-call':
          text(block.name);
          text(block.input);
          tokens += 4;
          break;
        case 'tool-result':
          blocks(block.content);
          tokens += 4;
          break;
        case 'opaque':
          text(JSON.stringify(block.value));
          break;
        default:
          tokens +=
            block.source.kind === 'data' && block.type !== 'image'
              ? Math.ceil(block.source.data.length / 64)
              : imageTokens;
      }
    }
  };
  for (const message of [...request.system, ...request.messages]) {
    tokens += 4;
    blocks(message.content);
  }
  for (const tool of request.tools) {
    tokens += 8;
    text(tool.name ?? '');
    if ('description' in tool) text(tool.description ?? '');
    if (tool.type === 'function') text(JSON.stringify(tool.schema ?? {}));
    if (tool.type === 'opaque') text(JSON.stringify(tool.value));
  }
  return tokens;
}

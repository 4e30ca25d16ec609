/** Counts the input tokens of a chat request to the demo channel, with those that a prompt cache would read and write. */
import { isObject, type Block, type ChatRequest, type Usage } from 'sluice';
import { countWords } from './words.ts';

/** The input side of usage. */
export type InputUsage = Omit<Usage, 'output' | 'reasoning'>;

/** Number of tokens that a picture, a sound or a file counts as. */
const mediaTokens = 100;

/** Number of tokens that a block of stored cached content (`cachedContent`) counts as. */
const storedTokens = 64;

/**
 * Counts the tokens of a request, and simulates a prompt cache: hints write the cache on the first turn; on later turns everything
 * before the last answer is read from it and the rest, up to the last hint, is written. No state is kept, so the figures never vary.
 */
export function inputUsage(request: ChatRequest): InputUsage {
  let total = 0;
  let hinted = 0;
  let lifetime: string | undefined;
  let beforeAnswer: number | undefined;
  const hint = (piece: { readonly cache?: { readonly ttl?: string } }): void => {
    if (piece.cache === undefined) return;
    hinted = total;
    lifetime = piece.cache.ttl;
  };
  for (const tool of request.tools) {
    total += countWords(
      JSON.stringify([
        tool.name,
        'description' in tool ? tool.description : '',
        'schema' in tool ? tool.schema : {},
      ]),
    );
    hint(tool);
  }
  for (const message of [...request.system, ...request.messages]) {
    if (message.role === 'assistant') beforeAnswer = total;
    for (const block of message.content) {
      total += weight(block);
      hint(block);
    }
    hint(message);
  }
  const whole = wholeHint(request);
  if (whole !== undefined) hint(whole);
  const stored = typeof request.extra?.['generate-content']?.cachedContent === 'string' ? storedTokens : 0;
  const cacheRead = Math.min(beforeAnswer ?? 0, hinted);
  const cacheWrite = hinted - cacheRead;
  return {
    input: total + stored,
    cacheRead: cacheRead + stored,
    cacheWrite,
    ...(lifetime === '1h' ? { cacheWriteLong: cacheWrite } : {}),
  };
}

/** Returns the cache hint for the whole prompt: a cache key, or `cache_control` beside the messages. */
function wholeHint({
  settings,
  extra,
}: ChatRequest): { readonly cache: { readonly ttl?: string } } | undefined {
  const control = extra?.messages?.cache_control;
  if (isObject(control)) return { cache: typeof control.ttl === 'string' ? { ttl: control.ttl } : {} };
  return settings.promptCacheKey === undefined ? undefined : { cache: {} };
}

function weight(block: Block): number {
  switch (block.type) {
    case 'text':
    case 'refusal':
    case 'reasoning':
      return countWords(block.text);
    case 'tool-call':
      return countWords(block.name) + countWords(block.input);
    case 'tool-result':
      return block.content.reduce((sum, part) => sum + weight(part), 0);
    case 'opaque':
      return countWords(JSON.stringify(block.value));
    default:
      return mediaTokens;
  }
}

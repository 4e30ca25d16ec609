import { createHash } from 'node:crypto';
import type { ChatRequest } from 'sluice';
import { countWords } from './words.ts';
import type { InputUsage } from './usage.ts';

/** The shortest beginning of a prompt that is cached, in the demo's tokens. */
const leastTokens = 512;

/** Beginnings that are remembered; the one that was not used for longest goes first. */
const mostBeginnings = 1000;

/**
 * Simulates an automatic prompt cache: a request reads as much of its beginning as an earlier request had in common
 * with it, turn by turn. Each process has its own, and short prompts are never cached.
 */
export class PromptCache {
  readonly #known = new Map<string, true>();

  /** Remembers the beginnings of a request, and gives its usage with what an earlier one had in common with it. */
  read(request: ChatRequest, usage: InputUsage): InputUsage {
    if (usage.input < leastTokens) return usage;
    const digest = createHash('sha256');
    let tokens = 0;
    let read = 0;
    const turns = [...request.system, ...request.messages];
    digest.update(JSON.stringify([request.model, request.tools]));
    turns.forEach(({ role, content }, index) => {
      const json = JSON.stringify([role, content.map(({ at: _at, cache: _cache, ...block }) => block)]);
      digest.update(json);
      tokens += content.reduce((sum, block) => sum + ('text' in block ? countWords(block.text) : 0), 0);
      const key = digest.copy().digest('base64');
      // The last turn is never read from the cache.
      if (this.#known.delete(key) && index < turns.length - 1 && tokens >= leastTokens) read = tokens;
      this.#known.set(key, true);
    });
    for (const key of this.#known.keys()) {
      if (this.#known.size <= mostBeginnings) break;
      this.#known.delete(key);
    }
    const cacheRead = Math.max(usage.cacheRead, Math.min(read, usage.input));
    const { cacheWriteLong, ...rest } = usage;
    const cacheWrite = Math.max(0, usage.cacheWrite - (cacheRead - usage.cacheRead));
    return {
      ...rest,
      cacheRead,
      cacheWrite,
      ...(cacheWriteLong === undefined ? {} : { cacheWriteLong: cacheWrite }),
    };
  }
}

/** Extracts the text of the last user message, which is compared by its embedding, and the digest of the rest, which must be equal. */
import { isChat, type Call, type GatewayRequest } from 'sluice';
import { canonical, type Ignored } from '../canonical.ts';
import { digestOf, type CacheKey } from '../key.ts';
import type { SemanticOptions } from '../options.ts';

/** Text of the last user message, and a digest of everything else that must be equal for a stored response to be used. */
export interface Question {
  readonly text: string;
  /** Digest of the request without its last turn, of its headers and its scope, and of the model that embeds. */
  readonly partition: string;
}

/**
 * Returns the question of a chat whose last turn is nothing but text of the user's, up to so many characters. Throws for numbers that have no
 * canonical form.
 */
export function questionOf(
  call: Call,
  key: CacheKey,
  { longest, model }: Pick<SemanticOptions, 'longest' | 'model'>,
  ignored: Ignored,
): Question | undefined {
  const { request } = call;
  const text = lastWords(request);
  if (text === undefined || text.length > longest || text.trim() === '' || !isChat(request)) return undefined;
  const messages = [...request.messages.slice(0, -1), { role: 'user' as const, content: [] }];
  const rest = canonical({ ...request, messages }, ignored);
  return { text, partition: digestOf('question', model, key.scope, key.headers, rest) };
}

function lastWords(request: GatewayRequest): string | undefined {
  if (!isChat(request) || request.operation !== 'chat') return undefined;
  const last = request.messages.at(-1);
  if (last?.role !== 'user') return undefined;
  const texts: string[] = [];
  for (const block of last.content) {
    if (block.type !== 'text') return undefined;
    texts.push(block.text);
  }
  return texts.join('\n');
}
